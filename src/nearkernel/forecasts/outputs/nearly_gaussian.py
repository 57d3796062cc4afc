"""Outputs with four cumulants, where the third and fourth are small: densities, quantiles and draws."""

import abc
import functools
import math

import jax
import numpy as np

from ..._base.check import numeric, truth, whole
from ..._base.keys import Key, random_key
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from .edgeworth import Edgeworth, say_negative
from .joint_edgeworth import JointLaw
from .law import OutputLaw


class NearlyGaussianOutputs(OutputLaw):
    """`mean` (m,) or (m, out), `cov` (m, m) or (m, out, m, out), and small third and fourth cumulants."""

    @abc.abstractmethod
    def cumulants(self, order: int, diagonal: bool = False) -> np.ndarray: ...

    @property
    def skewness(self) -> np.ndarray:
        return self._single.skewness

    @property
    def kurtosis(self) -> np.ndarray:
        return self._single.kurtosis

    @property
    def positive(self) -> tuple[np.ndarray, np.ndarray]:
        return self._single.positive

    @property
    def increasing(self) -> tuple[np.ndarray, np.ndarray]:
        return self._single.increasing

    def density(self, f: ArrayLike, joint: bool = False) -> np.ndarray:
        """The density of each output separately at `f`, (..., m) or (..., m, out): an array like `f`.

        Where it is negative, the series is not valid; it then warns, and `positive` is the valid interval. With
        `joint`, it is the joint density of all outputs: (...).
        """
        f = self._outputs(f)
        if not truth(joint, "joint"):
            return self._single.density(f)
        law = self._joint
        if not law.regular:
            raise ValueError(
                "`joint=True` needs outputs that vary and are linearly independent: leave out training points and "
                "repeated rows of `x_new`."
            )
        found = law.density(f.reshape(-1, self.mean.size)).reshape(f.shape[: f.ndim - self.mean.ndim])
        say_negative(found, law.peak)
        return found

    def cdf(self, f: ArrayLike) -> np.ndarray:
        """The probability that an output is at most `f`, (..., m) or (..., m, out): an array like `f`."""
        return self._single.cdf(self._outputs(f))

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """The quantiles `q` of the outputs over networks: (*q.shape, m) or (*q.shape, m, out).

        It uses the Cornish-Fisher series. Outside the probabilities `increasing` the series is not monotonic, and it
        warns.
        """
        q = numeric(q, "q")
        if q.size and not (0 < q.min() and q.max() < 1):
            raise ValueError(f"`q` must be between 0 and 1; got values from {q.min():g} to {q.max():g}.")
        return self._single.quantile(q)

    @in_float64
    def sample(self, size: int, key: Key) -> np.ndarray:
        """`size` draws, (size, m) or (size, m, out), with the four cumulants of this distribution, up to their
        squares.

        If the forecast uses sampled neurons, draws have the correct cumulants of each output, and all covariances.
        """
        shape = (whole(size, "size", 1), self.mean.size)
        require_fits(5 * 8 * math.prod(shape), f"`size` = {size} draws of {shape[1]} outputs", "draw fewer")
        noise = np.asarray(jax.random.normal(random_key(key), shape, np.float64))
        draws = self._joint.draws(noise) if self._has_joint else self._draws_by_outputs(noise)
        return draws.reshape(-1, *self.mean.shape)

    def _draws_by_outputs(self, noise: np.ndarray) -> np.ndarray:
        """Correlated Gaussians, each bent to the cumulants of its output."""
        size, law = self.mean.size, self._single
        unit = np.where(law.std > 0, law.std, 1.0).ravel()
        lam, vectors = np.linalg.eigh(self.cov.reshape(size, size) / np.outer(unit, unit))
        z = noise @ (vectors * np.sqrt(np.maximum(lam, 0.0))).T
        return law.bent(z.reshape(-1, *self.mean.shape))

    @functools.cached_property
    def _single(self) -> Edgeworth:
        self._require_law()
        var = self._variance()
        fixed = np.abs(var) <= 1e-9 * self._sizes
        std = np.where(fixed, 0.0, np.sqrt(np.where(var > 0, var, np.nan)))  # below 0 there is no law
        unit = np.where(fixed, np.inf, std)
        third, fourth = self._third_and_fourth()
        return Edgeworth(self.mean, std, third / unit**3, fourth / unit**4)

    def _third_and_fourth(self) -> tuple[np.ndarray, np.ndarray]:
        """Cumulants of each output separately."""
        return self.cumulants(3, diagonal=True), self.cumulants(4, diagonal=True)

    @functools.cached_property
    def _joint(self) -> JointLaw:
        self._require_law()
        size = self.mean.size
        third, fourth = (self.cumulants(order).reshape((size,) * order) for order in (3, 4))
        return JointLaw(self.mean.ravel(), self.cov.reshape(size, size), third, fourth)

    def _require_law(self) -> None:
        if not np.isfinite(self.mean).all():
            raise ValueError("training diverges, so the outputs have no density or quantiles: see `status`.")

    @property
    @abc.abstractmethod
    def _has_joint(self) -> bool:
        """Whether there are joint cumulants of more than one output."""

    @property
    @abc.abstractmethod
    def _sizes(self) -> np.ndarray:
        """Variances before training, in the shape of `mean`: what is far below them is fixed."""

    def _outputs(self, f: ArrayLike) -> np.ndarray:
        f = numeric(f, "f")
        try:
            return f + np.zeros_like(self.mean)
        except ValueError:
            wanted = ", ".join(["...", *map(str, self.mean.shape)])
            raise ValueError(
                f"`f` must have shape ({wanted}), or one that broadcasts to it; got {f.shape}."
            ) from None


def as_targets(y: ArrayLike, shape: tuple[int, ...], name: str = "y_new") -> np.ndarray:
    """Targets in exactly this shape."""
    y = numeric(y, name)
    if y.shape != shape:
        raise ValueError(f"`{name}` must have the shape of `mean`, {shape}; got {y.shape}.")
    return y
