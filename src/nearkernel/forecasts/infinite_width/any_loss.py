r"""Forecasts for any loss: draws initializations from their Gaussian distribution and trains each in function space.

With $z(0) \sim \mathcal{N}(0, K)$ at all points, training moves $z = z(0) + T a$ by $\dot a = -\partial L/\partial z$,
with n unknowns per network and output.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from ..._base.check import inputs, numeric, positive, whole
from ..._base.keys import Key, generator, random_key
from ..._base.status import Status
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..._run.executor import AbstractJob, PerDevice, elsewhere, on_host, run, workers
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...dynamics.algorithms.losses import AbstractLoss, require_loss
from ...dynamics.algorithms.spectral import AbstractAlgorithm, TimedAlgorithm
from ...dynamics.linear.function_space import trained_by
from ...models.networks.network import AbstractNetwork
from ..outputs.forecast_base import AbstractForecast
from ..outputs.kernel_pair import KernelPair
from ..outputs.law import Places

if TYPE_CHECKING:
    from .theory import InfiniteWidth

_TOGETHER = 2**21  # outputs that are trained at once
_ROUNDING = 1e-14  # of the largest eigenvalue: below, a direction of the start does not vary


@dataclasses.dataclass(frozen=True)
class _Sum(AbstractLoss):
    """The same loss of many networks, whose outputs (n, networks * out) stand side by side."""

    loss: AbstractLoss

    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        apart = jnp.moveaxis(z.reshape(len(z), -1, y.shape[1]), 1, 0)
        return jnp.sum(jax.vmap(lambda each: self.loss(each, y))(apart))


class _Training(AbstractJob[np.ndarray]):
    """Networks that are trained from outputs (n, columns)."""

    def __init__(self, loss: AbstractLoss, matrix: np.ndarray, y: np.ndarray, algorithm: AbstractAlgorithm):
        self.loss, self.matrix, self.y, self.algorithm = loss, matrix, y, algorithm

    def ready(self) -> Callable[[np.ndarray], tuple[np.ndarray, Status]]:
        placed = PerDevice((self.matrix, self.y))

        def train(start: np.ndarray) -> tuple[np.ndarray, Status]:
            matrix, y = placed.here()
            return trained_by(self.loss, matrix, start, y, start.shape, self.algorithm)

        return train


class Networks(NamedTuple):
    """Many networks at the end of training."""

    starts: "Starts"
    algorithm: AbstractAlgorithm
    coefficients: np.ndarray  # (n, S * out)
    status: Status


class Starts:
    """Draws of the outputs on the training set before training, (n, S * out)."""

    def __init__(
        self,
        pair: KernelPair,
        x: np.ndarray,
        y: np.ndarray,
        vector: bool,
        loss: AbstractLoss,
        size: int,
        key: Key | None,
    ):
        self.pair, self.x, self.y, self.vector, self.loss, self.size = pair, x, y, vector, loss, size
        self.key = random_key(key)
        columns = size * y.shape[1]
        require_fits(8 * 6 * columns * len(x), f"`samples` = {size} networks", "use fewer samples")
        start, _ = pair.both(x, None)
        with one_thread(len(x)):
            lam, vectors = scipy.linalg.eigh(start, check_finite=False)
        kept = lam > _ROUNDING * max(lam[-1], 0.0)
        self.roots, self.vectors = np.sqrt(lam[kept]), vectors[:, kept]
        self.white = self._normal(0, (len(self.roots), columns))
        self.outputs_before = self.vectors @ (self.roots[:, None] * self.white)
        require_loss(loss, lambda: self.outputs_before[:, : y.shape[1]], y)

    def _normal(self, stream: int, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(jax.random.normal(jax.random.fold_in(self.key, stream), shape, np.float64))

    def trained(self, algorithm: AbstractAlgorithm) -> Networks:
        """All of them trained, chunk by chunk; with several devices or a cluster, at least one chunk for each."""
        out, matrix = self.y.shape[1], self.pair.tangent().matrix(self.x)
        job = _Training(_Sum(self.loss), matrix, self.y, algorithm)
        threads = 1 if on_host() else None  # one chunk keeps all cores busy
        least = workers() if elsewhere() or threads is None else 1
        parts = min(self.size, max(least, -(-self.outputs_before.size // _TOGETHER)))
        ends = np.linspace(0, self.size, parts + 1).round().astype(int) * out
        chunks = [self.outputs_before[:, first:last] for first, last in itertools.pairwise(ends)]
        done = list(run(job, chunks, threads))
        status = next((status for _, status in done if not status.ok), done[0][1])
        return Networks(self, algorithm, np.concatenate([weights for weights, _ in done], axis=1), status)

    def outputs(self, x_new: np.ndarray, draw: int, coefficients: np.ndarray) -> np.ndarray:
        """Trained outputs (S, m, out): the start there, given that on the training set, and what training adds."""
        start, train = self.pair.both(x_new, self.x)
        prior, _ = self.pair.both(x_new, None)
        white = (start @ self.vectors) / self.roots
        lam, vectors = scipy.linalg.eigh(prior - white @ white.T, check_finite=False)
        own = vectors * np.sqrt(np.maximum(lam, 0.0))
        z = white @ self.white + own @ self._normal(1 + draw, (len(x_new), coefficients.shape[1]))
        z += train @ coefficients
        return np.ascontiguousarray(np.moveaxis(z.reshape(len(x_new), self.size, -1), 1, 0))


class SampledForecast(AbstractForecast):
    """Trained outputs of many networks, each from its own initialization.

    **Fields:** `samples` (S, m) or (S, m, out), like `y`; `mean`, `variance`, `std` and `sem`, the standard error of
    the mean, all in the shape of one sample; `cov`, (m, m) or (m, out, m, out); `status`, an `nk.Status`, and its `ok`;
    `algorithm`; `loss`; `regime`, the result of `nk.regime`, or None. For cross-entropy also `probabilities` (m,
    classes) and `votes` (m, classes).
    """

    theory: "InfiniteWidth"

    def __init__(self, networks: Networks, x_new: np.ndarray, draw: int, theory: "InfiniteWidth"):
        self._networks, self._x_new, self._draw = networks, x_new, draw
        self.algorithm, self.theory, self.status = networks.algorithm, theory, networks.status
        self.loss = networks.starts.loss
        outputs = networks.starts.outputs(x_new, draw, networks.coefficients)
        self.samples = outputs[:, :, 0] if networks.starts.vector else outputs
        self.mean = self.samples.mean(axis=0)

    def _places(self) -> Places:
        return Places(self._x_new, self._networks.starts.x, self._networks.starts.y)

    def _trained(self) -> tuple[AbstractNetwork | None, np.ndarray]:
        return self._networks.starts.pair.network(), self._networks.starts.y

    def _shown(self) -> Mapping[str, object]:
        names = {"networks": len(self.samples), "points": len(self._x_new), "algorithm": self.algorithm}
        return {**names, "loss": self.loss, "status": self.status, "mean": self.mean, **self._said()}

    def _variance(self) -> np.ndarray:
        return self.samples.var(axis=0, ddof=1)

    @property
    def sem(self) -> np.ndarray:
        """The standard error of `mean`, a mean over S networks."""
        return self.std / math.sqrt(len(self.samples))

    def _covariance(self) -> np.ndarray:
        flat = self.samples.reshape(len(self.samples), -1)
        require_fits(8 * flat.shape[1] ** 2, f"a covariance of {flat.shape[1]} outputs", "use fewer points")
        return np.cov(flat, rowvar=False).reshape(self.mean.shape * 2)

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles of the trained outputs for `q` from 0 to 1: the shape of `q`, then the shape of `mean`."""
        levels = numeric(q, "q")
        if levels.size == 0 or levels.min() < 0 or levels.max() > 1:
            raise ValueError(f"`q` must be from 0 to 1; got {q}.")
        return np.quantile(self.samples, levels, axis=0)

    @functools.cached_property
    def probabilities(self) -> np.ndarray:
        """The probability of each class, (m, classes), averaged over initializations."""
        return self.loss.probabilities(self.samples).mean(axis=0)

    @functools.cached_property
    def votes(self) -> np.ndarray:
        """For each class, the fraction of networks that predict it, (m, classes)."""
        largest = self.loss.probabilities(self.samples).argmax(axis=-1)
        return (largest[:, :, None] == np.arange(self.samples.shape[2])).mean(axis=0)

    def sample(self, size: int, key: Key) -> np.ndarray:
        """`size` of the networks, drawn with `key` and with replacement: (size, m) or (size, m, out)."""
        shape = (whole(size, "size", 1), *self.mean.shape)
        require_fits(
            2 * 8 * math.prod(shape), f"`size` = {size} draws of {self.mean.size} outputs", "draw fewer"
        )
        return self.samples[generator(key).integers(len(self.samples), size=shape[0])]

    @in_float64
    def at(self, time: float) -> "SampledForecast":
        """The same networks at another finite `time` (steps for gradient descent)."""
        algorithm = self.algorithm
        if not isinstance(algorithm, TimedAlgorithm):
            raise ValueError(f"`time` is not defined for {type(algorithm).__name__}.")
        later = self._networks.starts.trained(algorithm.at(positive(time, "time", zero=True)))
        return SampledForecast(later, self._x_new, self._draw, self.theory)

    @in_float64
    def predict(self, x_new: ArrayLike) -> "SampledForecast":
        """The same networks at other inputs `x_new`, drawn conditionally on their outputs on the training set."""
        x_new = inputs(x_new, "x_new", self._networks.starts.x.shape[1:])
        return SampledForecast(self._networks, x_new, self._draw + 1, self.theory)
