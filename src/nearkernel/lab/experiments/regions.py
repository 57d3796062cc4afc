"""The linear regions of a relu network in the plane, exactly, and how training moves them."""

import dataclasses

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Cells, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.program import program
from .parts.regions import DRAW, DRAW_TRAINED, START, TRAIN

WIDEST = 32
POINTS = 80
PARTS = 100  # of the training, between which it can be stopped
COLORS = ("output", "slope", "direction", "region")


@dataclasses.dataclass(frozen=True)
class Regions(Experiment):
    """A relu network is linear on polygons. Each neuron of the first layer draws a straight line; lines of later
    layers bend where they cross earlier ones. Move the width: the number of regions grows like the square of the
    number of neurons, far below the upper bound, and along a line each neuron switches less than once on average.
    Then train the network: its lines move to where the classes meet."""

    title = "Linear regions"
    menu = "Regions"
    formulas = (
        r"z(x) = G_r \, x + c_r \quad \text{on region } r",
        r"\text{regions} \le \prod_{l=1}^{L} \sum_{k=0}^{2} \binom{n_l}{k}",
        r"\text{switches per neuron} = \frac{1}{\pi} \left[ \arctan"
        r"\frac{A t + B}{\sqrt{A C - B^2}} \right]_{t=0}^{1} \le 1",
    )
    button = "Train the network"
    movie = "width"
    presets = (
        Preset("One layer", {"depth": 1, "width": 12}, "Every neuron draws a straight line."),
        Preset(
            "Three layers",
            {"depth": 3, "width": 12},
            "Lines of later layers bend where they cross earlier ones.",
        ),
        Preset("From afar", {"window": 20.0}, "Far from the origin few regions are left."),
        Preset(
            "Rings", {"task": "rings", "width": 24}, "Train the network: lines gather where the rings meet."
        ),
    )

    width: int = setting(16, "Neurons in each hidden layer.", low=1, high=WIDEST)
    depth: int = setting(2, "Hidden layers.", low=1, high=3)
    bias_var: float = setting(1.0, "Variance of the biases.", low=0.0, high=2.0)
    window: float = setting(2.0, "Inputs range from minus this to this.", low=0.5, high=20.0, log=True)
    color: str = setting("output", "Quantity that the color shows.", choices=COLORS)
    direction: float = setting(20.0, "Angle of the dashed line, in degrees.", low=0.0, high=180.0)
    task: str = setting("moons", "Task to learn.", choices=("moons", "rings", "stripes"))
    steps: int = setting(4000, "Steps of gradient descent.", low=200, high=20_000, log=True)
    seed: int = setting(0, "Draws the network and the data.", low=0, high=99)

    @property
    def _net(self) -> nk.MLP:
        return nk.MLP(2, (self.width,) * self.depth, 1, "relu", weight_var=2.0, bias_var=self.bias_var)

    def theory(self) -> Answer:
        return self._shown(drawn(self._net, self.seed))

    def _shown(self, params: list[dict[str, np.ndarray]]) -> Answer:
        net, end = self._net, self._end()
        box = ((-self.window, self.window),) * 2
        found = nk.geometry.regions(net, params, box)
        bends = 2 * nk.theory.breakpoints(net, params, -end, end) - 1
        switches = nk.theory.crossings(net, params, -end, end).per_layer(self.depth) / self.width
        expected = nk.theory.mean_crossings(net, -end, end)
        places = np.array([-1.0, *bends, 1.0])
        at = places[:, None] * end
        where = found.locate(at)
        outputs = np.einsum("pc,pc->p", found.gradients[where, 0], at) + found.offsets[where, 0]
        along, layers = self.window * places, np.arange(1, self.depth + 1)
        pictures = (
            Picture(
                "Regions",
                (
                    Cells(self.color, found.vertices, colored(found, self.color), self.color == "output"),
                    Curve("line", [-end[0], end[0]], [-end[1], end[1]], "dashes", 0),
                ),
                "first input",
                "second input",
                x_range=box[0],
                y_range=box[1],
                square=True,
            ),
            Picture(
                "Output along the line",
                (
                    Curve("output", along, outputs, "line", 1),
                    Curve("bends", along[1:-1], outputs[1:-1], "dots", 2),
                ),
                "position on the line",
                "output",
            ),
            Picture(
                "Switches per neuron along the line",
                (
                    Curve("infinitely wide", layers, expected, "dashes", 1),
                    Curve("this network", layers, switches, "dots", 2),
                ),
                "hidden layer",
                "switches per neuron",
                x_range=(0.5, self.depth + 0.5),
                y_range=(0.0, 1.5),
            ),
        )
        bounds = nk.theory.region_bounds(net)
        numbers = (
            Number("regions", found.count, "parts of this window on which the gradient is constant"),
            Number("neurons", self.width * self.depth, "each switches on one line, which may bend"),
            Number("upper bound", float(bounds.layers), "in the whole plane, for any weights"),
            Number(
                "one layer",
                nk.theory.zaslavsky(self.width * self.depth, 2),
                "regions in the whole plane if all these neurons were in one layer",
            ),
            Number("pieces on the line", len(bends) + 1, "linear pieces of the output in the second picture"),
            Number(
                "pieces expected",
                1 + self.width * float(expected.sum()),
                "at infinite width, if every switch is visible",
            ),
        )
        return Answer(pictures, numbers)

    def _end(self) -> np.ndarray:
        angle = np.radians(self.direction)
        return self.window * np.array([np.cos(angle), np.sin(angle)])

    def check(self, watch: Watch) -> Answer:
        net, params, (x, y) = self._net, drawn(self._net, self.seed), data(self.task, self.seed)
        watch(0.0, "compiling")
        fastest = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, params)(x))[-1]
        descent = nk.GradientDescent(0.5 / fastest, self.steps // PARTS)
        losses: list[float] = []
        counts = [self._count(params)]
        for part in range(1, PARTS + 1):
            run = nk.simulate(net, params, x, y, descent, nk.Record(every=descent.steps))
            params, losses = run.params, [*losses[: part - 1], *run.history["loss"][[0, -1]] / POINTS]
            words = f"step {part * descent.steps} of {PARTS * descent.steps}"
            if part != len(counts) ** 2:
                watch(part / PARTS, words)
                continue
            counts.append(self._count(params))  # often at first, when lines move most
            watch(part / PARTS, words, self._trained(params, losses, counts))
        return self._trained(params, losses, counts)

    def _count(self, params: list[dict[str, np.ndarray]]) -> int:
        return nk.geometry.regions(self._net, params, ((-self.window, self.window),) * 2).count

    def _trained(self, params: list[dict[str, np.ndarray]], losses: list[float], counts: list[int]) -> Answer:
        shown, (x, y), every = self._shown(params), data(self.task, self.seed), self.steps // PARTS
        classes = [
            Curve(f"class {sign}", x[y == sign, 0], x[y == sign, 1], "dots", 4 + (sign > 0))
            for sign in (-1, 1)
        ]
        looked = every * np.arange(len(counts)) ** 2
        trained = np.arange(len(losses)) * every
        pictures = (
            shown.pictures[0].plus(*classes),
            *shown.pictures[1:],
            Picture("Regions during training", (Curve("regions", looked, counts),), "step", "regions"),
            Picture("Loss", (Curve("loss", trained, losses),), "step", "loss per point", log_y=True),
        )
        loss = Number("loss per point", losses[-1], "half the squared distance from -1 or 1")
        return Answer(pictures, (*shown.numbers, loss))

    def python(self, checked: bool = False) -> str:
        lines = START + TRAIN * checked + DRAW + DRAW_TRAINED * checked
        return program(__name__, lines, panels=5 if checked else 3, **self.values())


def drawn(net: nk.MLP, seed: int) -> list[dict[str, np.ndarray]]:
    """Parameters at initialization; a wider network has the neurons of a narrower one."""
    params = []
    for layer, (fan_in, fan_out) in enumerate(zip(net.sizes[:-1], net.sizes[1:], strict=True)):
        draw = np.random.default_rng([seed, layer]).normal(size=(WIDEST + 1, WIDEST))
        params.append({"weight": draw[:fan_in, :fan_out], "bias": draw[WIDEST, :fan_out]})
    return params


def data(task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) and their classes, -1 or 1."""
    rng = np.random.default_rng([seed, 9])
    if task == "moons":
        side = np.where(np.arange(POINTS) % 2, 1.0, -1.0)
        angle = np.pi * rng.uniform(size=POINTS)
        x = side[:, None] * np.column_stack([np.cos(angle) - 0.5, np.sin(angle) - 0.25])
        return x + 0.1 * rng.normal(size=x.shape), side
    x = rng.uniform(-2, 2, size=(POINTS, 2))
    along = 2.2 * np.linalg.norm(x, axis=1) if task == "rings" else 2.5 * (x[:, 0] + x[:, 1])
    return x, np.where(np.sin(along) > 0, 1.0, -1.0)


def colored(found: nk.results.RegionsResult, color: str) -> np.ndarray:
    """One value per polygon."""
    slope = found.gradients[:, 0]
    if color == "slope":
        return np.linalg.norm(slope, axis=1)
    if color == "direction":
        return np.degrees(np.arctan2(slope[:, 1], slope[:, 0]))
    if color == "region":
        return found.labels * 0.618034 % 1.0  # neighbors far apart
    middles = np.array([polygon.mean(axis=0) for polygon in found.vertices])
    return np.einsum("pc,pc->p", slope, middles) + found.offsets[:, 0]
