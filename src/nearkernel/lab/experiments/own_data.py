"""Your own rows: what wide networks learn from them, and how well they would do on a new row."""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from ..pasted_rows import LONGEST, Table, table
from .parts.program import program
from .parts.ridge import PART, descended, pace

PLACES = 101
RIDGES = np.geomspace(1e-4, 1e2, 13)
NETWORKS, WIDTH = 10, 128
_SAMPLE = """x,y
-1.7,-0.9
-1.3,-1.0
-1.0,-0.8
-0.6,-0.4
-0.3,-0.4
0.1,0.2
0.4,0.3
0.8,0.9
1.1,0.8
1.6,1.1"""
_STEP = "x,y\n" + "\n".join(f"{x:.1f},{int(x > 0)}" for x in np.linspace(-1.5, 1.5, 16))
_TWO = "width,length,price\n" + "\n".join(
    f"{a},{b},{a * b + ((7 * a + 3 * b) % 5) / 5:.1f}" for a in (2, 3, 4, 5) for b in (4, 6, 8, 10)
)


@dataclasses.dataclass(frozen=True)
class OwnData(Experiment):
    """Paste rows of numbers or open a file: inputs first, target last, with or without a line of names. Columns are
    standardized to mean 0 and variance 1. The first picture varies one input with the others at their means, and
    shows mean and band of infinitely wide networks trained on your rows. The second predicts each row from all
    others. Then train networks: each is one curve. Nothing is stored, and nothing is sent to other machines."""

    title = "Your own data"
    menu = "Your data"
    formulas = (
        r"\overline{z}(x) = \Theta(x, X) (\Theta + \lambda)^{-1} y, \qquad "
        r"y_i - \hat{y}_{-i} = \frac{[(\Theta + \lambda)^{-1} y]_i}{[(\Theta + \lambda)^{-1}]_{ii}}",
    )
    button = f"Train {NETWORKS} networks"
    movie = "ridge"
    presets = (
        Preset(
            "A step",
            {"rows": _STEP, "ridge": 1e-3},
            "A kernel rounds the corner; more layers make it sharper.",
        ),
        Preset(
            "Two inputs",
            {"rows": _TWO, "ridge": 0.01},
            "Price is width times length, plus noise.",
        ),
        Preset("Too smooth", {"ridge": 30.0}, "A large ridge treats everything as noise."),
        Preset("Deep", {"depth": 4, "ridge": 1e-3}, "A deep network bends where rows disagree."),
    )

    rows: str = setting(_SAMPLE, "4 to 200 rows: 1 to 10 inputs, then the target.", high=LONGEST)
    column: int = setting(1, "Input that varies in the first picture.", low=1, high=10)
    ridge: float = setting(0.1, "Noise variance of the targets.", low=1e-4, high=1e2, log=True)
    depth: int = setting(2, "Hidden layers.", low=1, high=4)
    activation: str = setting("relu", "Activation of the hidden layers.", choices=("relu", "erf", "gelu"))
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.5, high=4)
    bias_var: float = setting(0.1, "Variance of the biases.", low=0, high=2)

    def theory(self) -> Answer:
        found, x, y = self._scaled()
        kernel, places = nk.kernels.NTK(self._net(x)), self._places(found)
        law = nk.forecast(self._net(x), x, y, nk.Ridge(self.ridge), self._along(found))
        center, unit = found.y.mean(), found.y.std()
        mean, std = center + unit * law.mean, unit * law.std
        errors = [nk.solve(kernel, x, y, nk.Ridge(float(ridge))).leave_one_out().error for ridge in RIDGES]
        left = nk.solve(kernel, x, y, nk.Ridge(self.ridge)).leave_one_out()
        name = found.names[self.column - 1]
        pictures = (
            Picture(
                "Functions learned",
                (
                    Curve(
                        "NTK", places, mean, "line", 1, band=(mean - std, mean + std), group="infinitely wide"
                    ),
                    Curve("rows", found.x[:, self.column - 1], found.y, "dots", 0),
                ),
                name,
                found.names[-1],
            ),
            Picture(
                "Each row, predicted from the others",
                (
                    Curve("each row left out", found.y, center + unit * left.predictions, "dots", 1),
                    Curve("perfect", ends(found.y), ends(found.y), "dashes", 0),
                ),
                found.names[-1],
                "prediction",
            ),
            Picture(
                "Choice of the ridge",
                (
                    Curve("leave-one-out error", RIDGES, errors, "line", 1),
                    Curve("this ridge", [self.ridge], [left.error], "dots", 2),
                ),
                "ridge",
                "squared error",
                log_x=True,
            ),
        )
        best = float(RIDGES[int(np.argmin(errors))])
        numbers = (
            Number("rows", float(len(y)), f"of {x.shape[1]} input{'s' * (x.shape[1] > 1)}"),
            Number("R² on new rows", 1 - left.error, "leave-one-out; 1 is perfect, 0 is the mean"),
            Number("typical error", unit * left.error**0.5, f"of {found.names[-1]}, in its units"),
            Number("best ridge", best, "smallest error in the third picture"),
        )
        return Answer(pictures, numbers)

    def check(self, watch: Watch) -> Answer:
        theory = answer = self.theory()
        found, x, y = self._scaled()
        watch(0.0, "compiling", answer)
        for step, last, outputs in training(self._net(x), x, y, self.ridge, self._along(found)):
            answer = self._beside(theory, found.y.mean() + found.y.std() * outputs, found)
            watch(step / last, f"{step} of {last} steps", answer)
        return answer

    def _beside(self, theory: Answer, outputs: np.ndarray, found: Table) -> Answer:
        group = f"width {WIDTH}"
        curves = (Curve("trained networks", self._places(found), z, "thin", 3, group=group) for z in outputs)
        wide = theory.pictures[0].parts[0]
        assert isinstance(wide, Curve)
        apart = float(np.abs(outputs.mean(axis=0) - wide.y).max())
        return dataclasses.replace(
            theory,
            pictures=(theory.pictures[0].plus(*curves), *theory.pictures[1:]),
            numbers=(
                *theory.numbers,
                Number(
                    "trained mean − NTK", apart, f"largest difference, {NETWORKS} networks of width {WIDTH}"
                ),
            ),
        )

    def _scaled(self) -> tuple[Table, np.ndarray, np.ndarray]:
        """The rows, and the same with columns of mean 0 and variance 1."""
        found = table(self.rows)
        inputs = found.x.shape[1]
        if self.column > inputs:
            raise ValueError(f"column {self.column}: the rows have {inputs} input{'s' * (inputs > 1)}.")
        unit = lambda a: (a - a.mean(axis=0)) / a.std(axis=0)
        return found, unit(found.x), unit(found.y)

    def _places(self, found: Table) -> np.ndarray:
        low, high = ends(found.x[:, self.column - 1])
        return np.linspace(low - 0.15 * (high - low), high + 0.15 * (high - low), PLACES)

    def _along(self, found: Table) -> np.ndarray:
        """Inputs where one moves and the others are at their means."""
        moving, new = found.x[:, self.column - 1], np.zeros((PLACES, found.x.shape[1]))
        new[:, self.column - 1] = (self._places(found) - moving.mean()) / moving.std()
        return new

    def _net(self, x: np.ndarray) -> nk.MLP:
        widths = (WIDTH,) * self.depth
        return nk.MLP(
            x.shape[1], widths, 1, self.activation, weight_var=self.weight_var, bias_var=self.bias_var
        )

    def python(self, checked: bool = False) -> str:
        found = table(self.rows)
        data = np.column_stack([found.x, found.y]).tolist()
        values = {**self.values(), "data": data, "names": list(found.names)}
        return program(__name__, _THEORY + _CHECK * checked, **values)


def ends(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def training(
    net: nk.MLP, x: np.ndarray, y: np.ndarray, ridge: float, new: np.ndarray
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Steps so far, of how many, and outputs of the networks (networks, places)."""
    speed = pace(float(np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]), ridge)
    targets, weights = np.broadcast_to(y[:, None], (NETWORKS, len(y), 1)), np.ones(len(y))
    start, rng = [], np.random.default_rng(0)
    for shape in zip(net.sizes[:-1], net.sizes[1:], strict=True):
        drawn = {"weight": rng.normal(size=(NETWORKS, *shape)), "bias": rng.normal(size=(NETWORKS, shape[1]))}
        start.append(drawn)
    state = start, start
    for part in range(1, speed.parts + 1):
        with jax.enable_x64(True):
            state = descended(net, state, start, x, targets, weights, ridge, speed)
            outputs = np.asarray(outputs_of(net, state[0], new))
        yield PART * part, PART * speed.parts, outputs


@jax.jit
def outputs_of(net, theta, new):
    return jax.vmap(lambda p: net(p, new)[:, 0])(theta)


_THEORY = """

data, names, column = np.array({data}), {names}, {column} - 1
unit = lambda a: (a - a.mean(axis=0)) / a.std(axis=0)
moving, target = data[:, column], data[:, -1]
x, y, center, scale = unit(data[:, :-1]), unit(target), target.mean(), target.std()
more = 0.15 * np.ptp(moving)
places, new = np.linspace(moving.min() - more, moving.max() + more, PLACES), np.zeros((PLACES, x.shape[1]))
new[:, column] = (places - moving.mean()) / moving.std()

net = nk.MLP(x.shape[1], (WIDTH,) * {depth}, 1, {activation!r}, weight_var={weight_var}, bias_var={bias_var})
ridge = {ridge}
law = nk.forecast(net, x, y, nk.Ridge(ridge), new)
left_out = lambda ridge: nk.solve(nk.kernels.NTK(net), x, y, nk.Ridge(ridge)).leave_one_out()

_, axes = plt.subplots(1, 3, figsize=(15, 4.5))
mean, std = center + scale * law.mean, scale * law.std
axes[0].plot(places, mean, label="NTK")
axes[0].fill_between(places, mean - std, mean + std, alpha=0.2)
axes[0].plot(moving, target, "o", color="gray", label="rows")
axes[0].set(title="Functions learned", xlabel=names[column], ylabel=names[-1])
axes[1].plot(target, center + scale * left_out(ridge).predictions, "o", label="each row left out")
axes[1].plot(ends(target), ends(target), "--", color="grey", label="perfect")
axes[1].set(title="Each row, predicted from the others", xlabel=names[-1])
axes[2].semilogx(RIDGES, [left_out(each).error for each in RIDGES], label="leave-one-out error")
axes[2].plot([ridge], [left_out(ridge).error], "o", label="this ridge")
axes[2].set(title="Choice of the ridge", xlabel="ridge")
"""
_CHECK = """
*_, (_, _, outputs) = training(net, x, y, ridge, new)
for output in outputs:
    axes[0].plot(places, center + scale * output, color="C2", lw=0.7, label="trained networks")
"""
