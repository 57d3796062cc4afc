"""A mean-field network with its data and its training, and single runs of it as a network of clouds."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...activations.base import AbstractActivation
from ...dynamics.algorithms.sgd import SGD
from ...dynamics.algorithms.spectral import AbstractAlgorithm, GradientDescent, GradientFlow
from ...kernels.wide.network import NTK
from ...models.networks.mlp import MLP
from .cloud import CoordinateCloud, OutOfDirections, PlainCloud
from .cloud_initialization import Start, input_space
from .cloud_network import CloudNetwork, layout_of, value_and_slope
from .cloud_system import CloudSystem, LazySystem, kernel_to
from .drivers import AbstractSystem, Descent, Flow, Signal

if TYPE_CHECKING:
    from .theory import MeanField

AT_START = 256  # points whose exact kernels the clouds start from; further new points are met afterwards
_EXACT_TOL = 1e-7
_STRIDE, _EXACT_STRIDE = 0.25, 0.1  # of a flow, over the largest eigenvalue of the kernel
COORDINATES = (128, 512, 2048, 8192)  # of exact clouds: as few as serve
_ANCHOR = 3 * 10**7  # numbers in a kernel that a cloud is compared by
_LOOKS = 8  # at the largest eigenvalue of the kernel, in a run


@dataclasses.dataclass(frozen=True)
class Run:
    """Outputs on the way: `times`, `train` (T, n, out) and `new` (kept, m, out), up to a failure.

    `failure`, "" or "diverged" or "directions"; `rank` of each matrix; `sharpness`, the largest eigenvalue of the
    tangent kernel of the network that is not scaled, when it was last looked at, and the step of that.
    """

    times: np.ndarray
    train: np.ndarray
    new: np.ndarray
    failure: str
    rank: list[tuple[int, int]]
    sharpness: tuple[float, int]


class _Diverged(Exception):
    pass


class Problem:
    """What is trained on what, and how; `alpha` scales the outputs of the mean-field network `net`.

    Rates and times of the network that is not scaled are `speed` times those of `algorithm`.
    """

    def __init__(
        self,
        net: MLP,
        alpha: float,
        centered: bool,
        data: tuple[np.ndarray, np.ndarray, np.ndarray],
        algorithm: AbstractAlgorithm,
        loss: tuple[Callable, Any],
        clouds: "MeanField",
        speed: float,
    ):
        self.net, self.alpha, self.centered, self.speed = net, alpha, centered, speed
        self.algorithm, self.clouds = algorithm, clouds
        self.x, self.y, self.x_new = data
        self.loss = loss
        self.layout = layout_of(net, 1.0 / alpha)
        self.signal = Signal(loss[0], self.y, getattr(algorithm, "batch_size", None), loss[1])
        shapes = [_shape_of(each) for each in net.activations]
        self.linear, self.kinked = all(line for line, _ in shapes), any(kinked for _, kinked in shapes)
        self.tol = clouds.tol or (0.05 if self.kinked else 0.01)
        self.neurons = clouds.neurons or (16384 if self.layout.depth == 1 else 4096)
        self.both = np.concatenate([self.x, self.x_new])
        self.xi = input_space(self.both, self.layout.weight_vars[0], self.layout.bias_vars[0])
        self._starts: dict[float, Start] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: without what they make themselves, and without who watches here."""
        return {**vars(self), "_starts": {}, "clouds": dataclasses.replace(self.clouds, watch=None)}

    @property
    def end(self) -> float:
        """The last step, or the time of a flow."""
        return float(getattr(self.algorithm, "time" if isinstance(self.algorithm, GradientFlow) else "steps"))

    def until(self, time: float, x_new: np.ndarray | None = None) -> "Problem":
        """The same, stopped at another step or time, perhaps at other new inputs."""
        end = {"time": time} if isinstance(self.algorithm, GradientFlow) else {"steps": int(time)}
        algorithm: Any = dataclasses.replace(self.algorithm, **end)
        data = (self.x, self.y, self.x_new if x_new is None else x_new)
        return Problem(
            self.net, self.alpha, self.centered, data, algorithm, self.loss, self.clouds, self.speed
        )

    def driver(self) -> Descent | Flow:
        """The training of the network that is not scaled."""
        scale, chosen = self.speed, self.algorithm
        if isinstance(chosen, GradientFlow):
            return Flow(float(chosen.time), scale, _EXACT_STRIDE if self.linear else _STRIDE)
        assert isinstance(chosen, GradientDescent | SGD)
        rates = chosen.rates() if isinstance(chosen, SGD) else np.full(int(chosen.steps), float(chosen.lr))
        return Descent(scale * rates, float(chosen.momentum), self.decay)

    @property
    def decay(self) -> float:
        """The share of all parameters that every step takes away."""
        return (
            float(self.algorithm.lr * self.algorithm.weight_decay) if isinstance(self.algorithm, SGD) else 0.0
        )

    def sampled(self, scramble: int, tol: float, neurons: int | None = None) -> CloudNetwork:
        """On Sobol points. The same scramble has the same neurons."""
        if tol not in self._starts:  # exact kernels, once for all runs
            count = max(AT_START, len(self.x))
            error = self.signal.error(np.zeros_like(self.y))
            points = self.both[:count], self.xi[:count]
            self._starts[tol] = Start(self.net, self.layout, *points, error, tol)
        dtype = self.clouds.dtype
        rng = np.random.default_rng([self.clouds.seed, 0, scramble])
        return self._starts[tol].network(neurons or self.neurons, rng, self.layout, np.dtype(dtype))

    def exact(self, size: int) -> CloudNetwork:
        """Of a deep linear network, in at most `size` coordinates per layer."""
        clouds = [CoordinateCloud(size) for _ in range(self.layout.depth)]
        return CloudNetwork(self.layout, clouds, self.xi.shape[1], _EXACT_TOL)

    def drawn(self, width: int, draw: int) -> CloudNetwork:
        """Equal in law to a network whose last hidden layer has this width."""
        rng = np.random.default_rng([self.clouds.seed, 1, draw])
        sizes = [max(1, round(width * each / self.net.widths[-1])) for each in self.net.widths]
        return CloudNetwork(
            self.layout, [PlainCloud(size, rng) for size in sizes], self.xi.shape[1], self.tol
        )

    def system(self, network: CloudNetwork, centered: bool = False) -> CloudSystem:
        n = len(self.x)
        return CloudSystem(network, self.xi[:n], self.xi[n:], self.clouds.look, centered)

    @property
    def anchored(self) -> bool:
        """Whether the kernels of clouds can be compared with the exact one: they stay, and are not too large."""
        return not self.decay and len(self.both) * len(self.x) * self.y.shape[1] ** 2 <= _ANCHOR

    def anchor(self, network: CloudNetwork) -> LazySystem:
        """The limit of small richness, by the cloud's own kernel."""
        return LazySystem(kernel_to(network, self.xi, len(self.x)), self.y.shape[1])

    def lazy_system(self) -> LazySystem:
        """The limit of small richness, by the exact kernel."""
        return LazySystem(NTK(self.net)(self.both, self.x), self.y.shape[1])

    def each(self, task: Callable[[CloudNetwork], Any]) -> list[Any]:
        """`task` of a network of every scramble, or of the exact one."""
        if not self.linear:
            return [task(self.sampled(scramble, self.tol)) for scramble in range(self.clouds.scrambles)]
        for size in COORDINATES:
            with contextlib.suppress(OutOfDirections):
                return [task(self.exact(size))]
        raise OutOfDirections

    def train(self, network: CloudNetwork) -> None:
        """To the end; raises `ValueError` where that is not reached."""
        run = self.run(lambda: self.system(network), self.driver(), lambda share: None)
        if run.failure == "directions" and self.linear:
            raise OutOfDirections
        if run.failure:
            raise ValueError(f"training stops before {self.end:g}: see `status`.")

    def run(
        self,
        make: Callable[[], AbstractSystem],
        driver: Descent | Flow,
        tell: Callable[[float], None],
        every: int | None = None,
    ) -> Run:
        """Trains what `make` gives; `tell` hears what share of the time has passed."""
        times: list[float] = []
        train: list[np.ndarray] = []
        new: list[np.ndarray] = []
        seen, failure, every = (np.nan, 0), "", every or self.clouds.every
        system: Any = None

        def keep(step: int, now: float, outputs: np.ndarray) -> None:
            nonlocal seen
            if not np.isfinite(outputs).all():
                raise _Diverged
            done = now / self.end if self.end else 1.0
            if isinstance(system, CloudSystem) and (
                not times or int(done * _LOOKS) > int(times[-1] / self.end * _LOOKS)
            ):
                seen = system.sharpness(self.signal.error(outputs)), step
            if step % every == 0 or done == 1.0:
                new.append(system.new_outputs())
            times.append(now)
            train.append(outputs)
            tell(done)

        with np.errstate(over="ignore", invalid="ignore"):
            try:
                system = make()
                driver(system, self.signal, keep)
            except OutOfDirections:
                failure = "directions"
            except (_Diverged, np.linalg.LinAlgError):
                failure = "diverged"
        rank = system.network.rank if isinstance(system, CloudSystem) else []
        shape = self.y.shape[1]
        return Run(
            np.array(times), np.reshape(train, (-1, len(self.x), shape)), np.reshape(new, (-1, len(self.x_new), shape)),
            failure, rank, seen,
        )  # fmt: skip


def _shape_of(activation: AbstractActivation) -> tuple[bool, bool]:
    """(a line through 0, a function with kinks); raises `ValueError` for functions without a slope."""
    z = np.linspace(-4.07, 4.13, 211)
    value, slope = value_and_slope(activation, z)
    if not (np.isfinite(value).all() and np.isfinite(slope).all() and np.abs(slope).max() > 0):
        raise ValueError(
            "the activation of `net` must have a finite nonzero derivative: otherwise the layers below it do not train."
        )
    return bool(np.allclose(value, slope[0] * z, atol=1e-12)), not activation.smooth
