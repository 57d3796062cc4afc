"""Gaussian distributions of outputs: the common base of posterior and forecast."""

import abc
import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
import scipy.linalg

from ..._base.check import whole
from ..._base.keys import Key, random_key
from ..._base.result import Result
from ..._base.types import Float
from ..._run.memory import require_fits
from ..._run.precision import in_float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Places(NamedTuple):
    """New inputs (m, d), inputs of training (n, d) and their targets."""

    x_new: np.ndarray
    x: np.ndarray
    y: np.ndarray


class OutputLaw(Result, abc.ABC):
    """Outputs with a mean and a covariance: one shared by independent outputs, or a joint one.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m), the same for each output, or (m, out, m, out), joint;
    `variance` and `std` (m,) or (m, out), computed without `cov` where that is cheaper.
    """

    mean: Float[np.ndarray, " m *out"]

    def _places(self) -> Places | None:
        """Inputs, and training data, to draw the law over; None if they are not kept."""
        return None

    def _shown(self) -> Mapping[str, object]:
        named = {name: getattr(self, name, None) for name in ("algorithm", "status", "width")}
        shown = {
            "points": len(self.mean),
            **{name: value for name, value in named.items() if value is not None},
        }
        if "cov" in vars(self):  # nothing is computed to be printed
            shown["std"] = self.std
        return {**shown, "mean": self.mean}

    @in_float64
    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the mean and 2 standard deviations on Matplotlib's `axes`: against a single input, or point by point."""
        from ..._plots.bands import draw_band

        places = self._places()
        if places is None:
            return draw_band(self.mean, self.std, axes)
        return draw_band(self.mean, self.std, axes, x=places.x_new, data=(places.x, places.y))

    @functools.cached_property
    def cov(self) -> np.ndarray:
        """The covariance (m, m), computed on first use."""
        return self._covariance()

    @abc.abstractmethod
    def _covariance(self) -> np.ndarray: ...

    @functools.cached_property
    def variance(self) -> np.ndarray:
        """The diagonal of `cov`, without the matrix if possible."""
        return np.maximum(self._diagonal() if "cov" in vars(self) else self._variance(), 0.0)

    def _variance(self) -> np.ndarray:
        """For laws that know it without `cov`."""
        return self._diagonal()

    def _diagonal(self) -> np.ndarray:
        half = self.cov.shape[: self.cov.ndim // 2]
        return np.diagonal(self.cov.reshape(math.prod(half), -1)).reshape(half)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.variance)

    @in_float64
    def sample(self, size: int, key: Key) -> Float[np.ndarray, "size m *out"]:
        """`size` draws: (size, m) or (size, m, out)."""
        shape = (whole(size, "size", 1), *self.mean.shape)
        require_fits(
            3 * 8 * math.prod(shape), f"`size` = {size} draws of {self.mean.size} outputs", "draw fewer"
        )
        noise = np.asarray(jax.random.normal(random_key(key), shape, np.float64))
        axes = self.cov.ndim // 2  # of the mean: points, or points and outputs
        together = math.prod(self.mean.shape[:axes])
        lam, vectors = scipy.linalg.eigh(self.cov.reshape(together, together))
        root = vectors * np.sqrt(np.maximum(lam, 0.0))
        noise = noise.reshape(shape[0], together, *self.mean.shape[axes:])
        return self.mean + np.einsum("ij,sj...->si...", root, noise).reshape(shape)
