"""All trained networks at once: mean and band over the unit circle, at any time of training."""

import dataclasses
import itertools

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.circle import CHECK, THEORY
from .parts.program import program
from .parts.steps import course

ANGLES = np.linspace(-np.pi, np.pi, 128)
PARTS = 8  # in which they are forecast, as long as padded training sets: one shape is compiled
CHECKED = slice(0, None, 8)  # angles at which networks are compared
TIMES = np.geomspace(1e-3, 1e3, 61)
_AT_ONCE = 400_000  # parameters of the networks that are trained side by side
PART = 20  # steps between two looks
_MOST = 3000  # steps of a check
SINGLE = 20  # networks that are shown one by one


@dataclasses.dataclass(frozen=True)
class Circle(Experiment):
    """Infinitely wide networks learn a few points on the unit circle. Move the time. At initialization the outputs
    are a Gaussian process around zero. Then the mean moves to the points and the band closes there, along the
    eigenvectors of the tangent kernel, each at its own speed. Between the points the band stays open forever: there
    the initial weights are not forgotten. The check trains networks of finite width from many initializations: the
    narrower they are, the further from theory."""

    title = "Training on a circle"
    menu = "Circle"
    formulas = (
        r"x = (\cos \, \gamma, \; \sin \, \gamma), \quad "
        r"R_t = \Theta_{BA} \, \Theta_{AA}^{-1} (1 - e^{-\Theta_{AA} t})",
        r"\text{mean} = R_t \, y, \quad \text{cov} = K_{BB} - R_t K_{AB} - K_{BA} R_t^T + R_t K_{AA} R_t^T",
        r"\text{loss} = \tfrac{1}{2} \sum_k e^{-2 \lambda_k t} \left( (v_k \cdot y)^2 + v_k \cdot K_{AA} v_k \right)",
    )
    button = "Train networks"
    movie = "time"
    presets = (
        Preset(
            "Before training", {"time": 0.001}, "All networks together form a Gaussian process around zero."
        ),
        Preset("Trained", {"time": 1000.0}, "The band has closed at the points and stays open between them."),
        Preset(
            "Deep",
            {"depth": 4, "time": 100.0},
            "With more layers the function is rougher between the points.",
        ),
        Preset(
            "Narrow networks",
            {"width": 16, "time": 100.0, "networks": 20},
            "Train them: single networks leave the band of the infinite-width limit.",
        ),
    )

    time: float = setting(1.0, "Training time of gradient flow.", low=1e-3, high=1e3, log=True)
    depth: int = setting(2, "Hidden layers.", low=1, high=4)
    activation: str = setting(
        "relu", "Activation of the hidden layers.", choices=("relu", "erf", "gelu", "sin", "abs")
    )
    points: int = setting(5, "Number of training points.", low=1, high=16)
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.5, high=4.0)
    bias_var: float = setting(0.1, "Variance of the biases.", low=0.0, high=2.0)
    width: int = setting(128, "Neurons per layer of the trained networks.", low=8, high=256, log=True)
    networks: int = setting(50, "Number of networks to train.", low=10, high=100, log=True)

    def theory(self) -> Answer:
        return self._forecast(self.time)

    @property
    def _net(self) -> nk.MLP:
        widths = (self.width,) * self.depth
        return nk.MLP(2, widths, 1, self.activation, weight_var=self.weight_var, bias_var=self.bias_var)

    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of the tangent kernel, and the mean square of each mode's error at initialization."""
        angles, y = data(self.points)
        start, kernel = nk.kernels.nngp_and_ntk(self._net, on_circle(angles))
        rates, modes = np.linalg.eigh(kernel)
        return rates, (modes.T @ y) ** 2 + np.einsum("ik,ij,jk->k", modes, start, modes)

    def _forecast(self, time: float, notes: tuple[str, ...] = ()) -> Answer:
        angles, y = data(self.points)
        first, *others = (on_circle(part) for part in np.split(ANGLES, PARTS))
        law = nk.forecast(self._net, on_circle(angles), y, nk.GradientFlow(time), first)
        laws = [law, *(law.predict(part) for part in others)]
        mean, std = np.concatenate([law.mean for law in laws]), np.concatenate([law.std for law in laws])
        rates, strength = self._modes()
        modes = lambda t: 0.5 * strength * np.exp(-2 * np.outer(t, np.maximum(rates, 0.0)))  # (times, modes)
        loss = float(modes(time).sum())
        start = np.concatenate([law.at(0.0).std for law in laws])
        high = 2.5 * max(1.0, float(start.max()))
        pictures = (
            Picture(
                "Outputs",
                (
                    Curve("theory", ANGLES, mean, "line", 1, band=(mean - 2 * std, mean + 2 * std)),
                    Curve("training points", angles, y, "dots", 3),
                ),
                "angle",
                "output",
                x_range=(-3.2, 3.2),
                y_range=(-high, high),
            ),
            Picture(
                "Standard deviation over networks",
                (
                    Curve("theory", ANGLES, std, "line", 1),
                    Curve("at initialization", ANGLES, start, "dashes", 0),
                ),
                "angle",
                "standard deviation",
                x_range=(-3.2, 3.2),
                y_range=(0.0, 1.1 * float(start.max())),
            ),
            Picture(
                "Loss on the training points",
                (
                    Curve("theory", TIMES, modes(TIMES).sum(axis=1), "line", 1),
                    Curve("fastest mode", TIMES, modes(TIMES)[:, -1], "dashes", 4),
                    Curve("slowest mode", TIMES, modes(TIMES)[:, 0], "dashes", 5),
                    Curve("now", [time], [loss], "dots", 3),
                ),
                "time",
                "loss",
                log_x=True,
                log_y=True,
                y_range=(1e-6, 100.0),
            ),
        )
        numbers = (
            Number("loss", loss, "half the sum of squared errors, mean over networks"),
            Number("widest band", float(std.max()), "largest standard deviation over networks"),
            Number(
                "fastest time",
                float(1 / rates[-1]),
                "of the mode learned first: 1 / largest eigenvalue",
            ),
            Number(
                "slowest time",
                float(1 / rates[0]) if rates[0] > 0 else "infinite",
                "of the mode learned last: 1 / smallest eigenvalue",
            ),
            Number("modes learned", float((1 - np.exp(-rates * time)).sum()), f"out of {self.points}"),
        )
        return Answer(pictures, numbers, notes)

    def check(self, watch: Watch) -> Answer:
        time, steps, notes = self._plan()
        theory, net, (angles, y) = self._forecast(time, notes), self._net, data(self.points)
        x, parts, done = on_circle(angles), steps // PART, 0
        size, rng = self._batch(), np.random.default_rng(0)
        batches = -(-self.networks // size)
        outputs, losses = np.empty((0, len(ANGLES))), np.empty((0, parts + 1))
        answer = theory
        watch(0.0, "compiling", theory)
        with jax.enable_x64(True):
            for batch in range(batches):
                theta = drawn(net, rng, size)
                path = []
                for part in range(parts):
                    theta, loss = trained(net, theta, x, y, time / steps)
                    path.append(np.asarray(loss))
                    watch((batch + (part + 1) / parts) / batches, f"networks {done + 1} to {done + size}")
                found, loss = (np.asarray(value) for value in observed(net, theta, x, y, on_circle(ANGLES)))
                outputs = np.concatenate([outputs, found])[: self.networks]
                losses = np.concatenate([losses, np.stack([*path, loss], axis=1)])[: self.networks]
                done = len(outputs)
                answer = self._compared(theory, outputs, losses, time)
                watch((batch + 1) / batches, f"{done} of {self.networks} networks", answer)
        return answer

    def _batch(self) -> int:
        sizes = self._net.sizes
        parameters = sum(a * b for a, b in itertools.pairwise(sizes))
        return int(np.clip(_AT_ONCE // parameters, 2, 10))

    def _plan(self) -> tuple[float, int, tuple[str, ...]]:
        """Time, steps of gradient descent that are as good as the flow, at least 100, and what is to be said."""
        time, least, notes = course(self.time, self._modes()[0][-1], self.depth, self.width, _MOST)
        return time, PART * int(np.ceil(max(100.0, least) / PART - 1e-9)), notes

    def _compared(self, theory: Answer, outputs: np.ndarray, losses: np.ndarray, time: float) -> Answer:
        fell = losses[:, -1] <= losses[:, 0]  # not so if gradient descent left the flow
        notes = (
            (*theory.notes, f"{(~fell).sum()} networks diverged and are left out.")
            if not fell.all()
            else theory.notes
        )
        outputs, losses = outputs[fell], losses[fell]
        if len(outputs) < 2:
            return dataclasses.replace(theory, notes=notes)
        size, parts = len(outputs), losses.shape[1] - 1
        mean, std = outputs.mean(axis=0), outputs.std(axis=0, ddof=1)
        at = [1, *(k for k in (2, 4, 8, 16, 32, 64, 128) if k < parts), parts]
        loss, loss_sem = losses.mean(axis=0), losses.std(axis=0, ddof=1) / size**0.5
        some, name, group = ANGLES[CHECKED], "mean of networks", f"trained, width {self.width}"
        more = (
            (
                *(Curve("single networks", ANGLES, z, "thin", 2, group=group) for z in outputs[:SINGLE]),
                Curve(name, some, mean[CHECKED], "dots", 2, sem=std[CHECKED] / size**0.5, group=group),
            ),
            (Curve(name, some, std[CHECKED], "dots", 2, sem=std[CHECKED] / (2 * size - 2) ** 0.5),),
            (Curve(name, time * np.array(at) / parts, loss[at], "dots", 2, sem=loss_sem[at]),),
        )
        pictures = tuple(picture.plus(*curves) for picture, curves in zip(theory.pictures, more, strict=True))
        trained = Number("loss of networks", float(loss[-1]), f"mean of {size} networks", float(loss_sem[-1]))
        return Answer(pictures, (*theory.numbers, trained), notes)

    def python(self, checked: bool = False) -> str:
        values = self.values()
        if checked:
            time, steps, _ = self._plan()
            values |= {"time": time, "steps": steps, "batch": self._batch()}
        return program(__name__, THEORY + CHECK * checked, **values)


def data(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles of the training points, where the next one is always far from the others, and targets."""
    angles = 2 * np.pi * ((0.7 + 0.618034 * np.arange(points)) % 1.0) - np.pi
    return angles, np.sin(2 * angles) + 0.5 * np.cos(angles)


def on_circle(angles: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(angles), np.sin(angles)])


def drawn(net: nk.MLP, rng: np.random.Generator, size: int) -> list[dict[str, np.ndarray]]:
    """Networks side by side, by NumPy: JAX would compile for seconds."""
    shapes = zip(net.sizes[:-1], net.sizes[1:], strict=True)
    return [{"weight": rng.normal(size=(size, *s)), "bias": rng.normal(size=(size, s[1]))} for s in shapes]


@jax.jit
def trained(net, theta, x, y, lr):
    """Networks some steps later, and their losses before."""

    def one(theta):
        run = nk.simulate(net, theta, x, y, nk.GradientDescent(lr, PART), nk.Record(every=PART))
        return run.params, run.history["loss"][0]

    return jax.vmap(one)(theta)


@jax.jit
def observed(net, theta, x, y, new):
    """Outputs at new inputs, and losses."""
    return jax.vmap(lambda p: (net(p, new)[:, 0], 0.5 * ((net(p, x)[:, 0] - y) ** 2).sum()))(theta)
