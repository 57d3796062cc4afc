"""One input, a few points to drag: what wide, nearly wide and really trained networks make of them."""

import dataclasses
import math
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import Points, setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.padded import Switched, more_layers, more_neurons, more_rows, switched
from .parts.program import program
from .parts.steps import course

GRID = np.linspace(-2, 2, 101)[:, None]
BATCH, BATCHES = 10, 5
_WIDEST, _DEEPEST, _MOST_POINTS = 128, 3, 12
PART, MOST_PARTS = 100, 200  # steps between two looks, and how many of these
_FILTERS = threading.Lock()  # those of warnings belong to all threads


@dataclasses.dataclass(frozen=True)
class Regression(Experiment):
    """Drag the points. The NTK band covers two thirds of all infinitely wide networks trained on them; the NNGP band
    is the Bayesian posterior of random networks. For one network of finite width two curves are shown: its
    linearization (order 0), and the nearly-kernel, which adds the learning of features (order 1). Then train real
    networks and compare."""

    title = "Regression"
    formulas = (
        r"\overline{z}(x,t) = \Theta(x, X)\, \Theta^{-1} (1 - e^{-\Theta t}) y",
        r"z^{\star} = z^{F} + z^{I} + \cdots",
    )
    button = "Train 50 networks"
    movie = "time"
    presets = (
        Preset("Before training", {"time": 0.01}, "The NTK band is the prior: nothing has been learned yet."),
        Preset(
            "Narrow",
            {"width": 16},
            "The linearized network and the nearly-kernel separate: features are learned.",
        ),
        Preset(
            "Noisy targets",
            {"noise": 0.3},
            "The NNGP posterior allows for noise; trained networks go through the points.",
        ),
        Preset(
            "Deep relu",
            {"activation": "relu", "depth": 3, "weight_var": 2.0},
            "Rough functions and a wide band.",
        ),
        Preset(
            "A step",
            {"points": "-1.5,-0.5;-0.8,-0.5;-0.2,-0.5;0.2,0.5;0.8,0.5;1.5,0.5"},
            "Train networks: each finds a different way between the two levels.",
        ),
    )

    points: Points = setting(
        ((-1.2, 0.2), (-0.5, -0.6), (0.3, 0.7), (1.1, 0.1)),
        "Drag them in the picture, or use arrow keys; at most 12.",
        low=-2,
        high=_MOST_POINTS,
    )
    time: float = setting(
        100.0, "Time of gradient flow on the loss ½ Σ (z − y)².", low=0.01, high=300, log=True
    )
    depth: int = setting(1, "Hidden layers.", low=1, high=_DEEPEST)
    width: int = setting(64, "Neurons per layer of the finite networks.", low=16, high=_WIDEST, log=True)
    activation: str = setting(
        "erf", "Activation of the hidden layers.", choices=("erf", "gelu", "sin", "relu")
    )
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.2, high=4)
    bias_var: float = setting(0.3, "Variance of the biases.", low=0, high=2)
    noise: float = setting(
        1e-3, "Variance of the noise that the NNGP posterior assumes.", low=1e-6, high=1, log=True
    )
    seed: int = setting(0, "Draws the network of finite width.", low=0, high=99)

    def theory(self) -> Answer:
        net, x, y = self._problem()
        with ThreadPoolExecutor(1) as beside:  # the first time, both compile for seconds
            finite = None if self.activation == "relu" else beside.submit(self._expanded, net, x, y)
            bayes = nk.posterior(nk.kernels.NNGP(net), x, y, GRID, self.noise)
            wide = nk.forecast(net, x, y, nk.GradientFlow(self.time), GRID)
        curves = [_banded("NNGP", bayes.mean, bayes.std, 3), _banded("NTK", wide.mean, wide.std, 1)]
        numbers = [Number("widest NTK band", float(wide.std.max()), "standard deviation over networks")]
        if finite is None:
            note = (
                "The nearly-kernel needs derivatives that a relu does not have: choose a smooth activation."
            )
            return Answer((self._picture(*curves),), tuple(numbers), (note,))
        terms, group = finite.result(), f"one network, width {self.width}"
        curves += [
            Curve("order 0, linearized", GRID[:, 0], terms[0], "dashes", 4, group=group),
            Curve("order 1, nearly-kernel", GRID[:, 0], terms[0] + terms[1], "line", 4, group=group),
        ]
        share = float(np.abs(terms[1]).max() / np.abs(terms[0]).max())
        numbers.append(
            Number("order 1 / order 0", share, "what feature learning adds; the expansion holds if small")
        )
        return Answer((self._picture(*curves),), tuple(numbers))

    def check(self, watch: Watch) -> Answer:
        net, x, y = self._problem()
        time, steps, notes = self._plan(net, x)
        theory = dataclasses.replace(self, time=time).theory()
        theory = dataclasses.replace(theory, notes=theory.notes + notes)
        found, answer, parts = np.zeros((0, len(GRID))), theory, steps // PART
        for batch in range(BATCHES):
            words = f"training networks {len(found) + 1} to {len(found) + BATCH}"
            watch(batch / BATCHES, words, answer)
            with jax.enable_x64(True):
                theta = drawn(net, jax.random.split(jax.random.key(batch), BATCH))
                for part in range(parts):
                    theta = jax.block_until_ready(trained(net, theta, x, y, time / steps))
                    watch((batch + (part + 1) / parts) / BATCHES, words)
                found = np.concatenate([found, np.asarray(outputs(net, theta))])
            answer = self._beside(theory, found)
        return answer

    def _plan(self, net, x) -> tuple[float, int, tuple[str, ...]]:
        """Time, steps of gradient descent, by the hundred, so small that they are a flow, and what is to be said."""
        largest = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]
        time, _, notes = course(self.time, largest, self.depth, self.width, PART * MOST_PARTS)
        return time, PART * min(MOST_PARTS, max(1, math.ceil(10 * largest * time / PART))), notes

    def _beside(self, theory: Answer, found: np.ndarray) -> Answer:
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
        group = f"trained, width {self.width}"
        single = (Curve("single networks", GRID[:, 0], each, "thin", 2, group=group) for each in found)
        trained = Curve("their mean", GRID[:, 0], mean, "line", 2, group=group)
        picture = theory.pictures[0]
        wide = next(part for part in picture.parts if isinstance(part, Curve) and part.name == "NTK")
        apart = np.abs(mean - wide.y).max()
        return Answer(
            (picture.plus(*single, trained),),
            (
                *theory.numbers,
                Number("trained mean − NTK", float(apart), f"largest difference, {len(found)} networks"),
                Number("widest trained spread", float(spread.max()), "standard deviation over networks"),
            ),
            theory.notes,
        )

    def _problem(self):
        net = nk.MLP(
            in_dim=1,
            widths=(self.width,) * self.depth,
            activation=self.activation,
            weight_var=self.weight_var,
            bias_var=self.bias_var,
        )
        x, y = np.array(self.points).T
        return net, x[:, None], y

    def _expanded(self, net, x, y) -> tuple[np.ndarray, ...]:
        """Orders 0 and 1 of one network, in shapes that are the same for all depths, widths and numbers of points."""
        widened, theta = more_neurons(net, net.init(jax.random.key(self.seed)), _WIDEST)
        model: nk.models.AbstractModel = widened
        if self.depth > 1:  # one layer alone is the quickest, and the default
            model, theta = more_layers(widened, theta, _DEEPEST)
        x, y = more_rows(x, y, _MOST_POINTS)
        expansion = nk.expand(Switched(model), theta, degree=2)
        solution = nk.solve(expansion, x, y, nk.GradientFlow(self.time), order=1)
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the correction is large is shown as a number
            return solution.predict(switched(GRID)).terms

    def _picture(self, *curves: Curve) -> Picture:
        x, y = zip(*self.points, strict=True)
        points = Curve("data", x, y, "points", 0)
        return Picture("Functions learned", (*curves, points), x_range=(-2, 2), y_range=(-2.2, 2.2))

    def python(self, checked: bool = False) -> str:
        values = self.values()
        if checked:
            net, x, _ = self._problem()
            time, steps, _ = self._plan(net, x)
            values |= {"time": time, "steps": steps}
        smooth = "" if self.activation == "relu" else _NEARLY
        return program(__name__, _THEORY + smooth + _CHECK * checked + _DATA, **values)


@jax.jit
def drawn(net, keys):
    return jax.vmap(net.init)(keys)


@jax.jit
def trained(net, theta, x, y, lr):
    """Networks some steps later."""
    return jax.vmap(lambda p: nk.simulate(net, p, x, y, nk.GradientDescent(lr, PART)).params)(theta)


@jax.jit
def outputs(net, theta):
    return jax.vmap(lambda p: net(p, GRID)[:, 0])(theta)


def _banded(name: str, mean: np.ndarray, spread: np.ndarray, series: int) -> Curve:
    band = (mean - spread, mean + spread)
    return Curve(name, GRID[:, 0], mean, "line", series, band, group="infinitely wide")


_THEORY = """

points = np.array({points})
x, y = points[:, :1], points[:, 1]
net = nk.MLP(
    in_dim=1, widths=({width},) * {depth}, activation={activation!r}, weight_var={weight_var}, bias_var={bias_var}
)
algorithm = nk.GradientFlow({time})

bayes = nk.posterior(nk.kernels.NNGP(net), x, y, GRID, noise={noise})
wide = nk.forecast(net, x, y, algorithm, GRID)
for name, law in {{"NNGP": bayes, "NTK": wide}}.items():
    plt.plot(GRID[:, 0], law.mean, label=name)
    plt.fill_between(GRID[:, 0], law.mean - law.std, law.mean + law.std, alpha=0.2)
"""
_NEARLY = """
model = nk.expand(net, net.init(jax.random.key({seed})), degree=2)
terms = nk.solve(model, x, y, algorithm, order=1).predict(GRID).terms
plt.plot(GRID[:, 0], terms[0], "--", label="order 0, linearized")
plt.plot(GRID[:, 0], terms[0] + terms[1], label="order 1, nearly-kernel")
"""
_CHECK = """
steps = {steps}  # so small that they follow the flow
found = []
with jax.enable_x64(True):
    for i in range(BATCHES):
        theta = drawn(net, jax.random.split(jax.random.key(i), BATCH))
        for _ in range(steps // PART):
            theta = trained(net, theta, x, y, {time} / steps)
        found.append(outputs(net, theta))
found = np.concatenate(found)
plt.plot(GRID[:, 0], found.T, color="C2", lw=0.7, alpha=0.5, label="single networks")
plt.plot(GRID[:, 0], found.mean(axis=0), color="C2", label="their mean")
"""
_DATA = """
plt.plot(x[:, 0], y, "ko", label="data")
"""
