"""Settings for the number of neurons sampled in `forecast(order=1)` of many points."""

import math
import warnings
from typing import Any

import equinox as eqx
import numpy as np

from ..._base.check import one_of, positive, whole


class SampledNeurons(eqx.Module):
    """Settings of `nk.forecast(order=1)`: when to average over sampled neurons, and over how many.

    Tensors of four points are exact, but their number grows as the fourth power of the number of points. All of them
    are averages over one neuron of each layer, so they can be estimated with neurons on scrambled Sobol points. The
    cost per neuron is the square of the number of points.

    **Arguments:** `exact`, the maximum total number of training and new points for exact tensors; `tolerance`: neurons
    are added until the correction is known to this fraction of itself: the largest standard error over new points, of
    the mean or of the standard deviation, beside the largest correction to one of them, both in units of the standard
    deviation at infinite width; `most`, the maximum number of neurons per layer (at least 16 per scramble are drawn);
    `scrambles`, independent repetitions from which errors are estimated; `seed`; `dtype`, "float32" or "float64". At
    order 1, where training fits modes of the kernel a factor of 1e5 apart, float64 is always used.
    """

    exact: int = eqx.field(static=True, default=12)
    tolerance: float = 0.1
    most: int = eqx.field(static=True, default=2**19)
    scrambles: int = eqx.field(static=True, default=16)
    seed: int = eqx.field(static=True, default=0)
    dtype: str = eqx.field(static=True, default="float32")

    def __check_init__(self):
        whole(self.exact, "exact", 0)
        positive(self.tolerance, "tolerance")
        whole(self.most, "most", 1)
        whole(self.scrambles, "scrambles", 2)
        whole(self.seed, "seed", 0)
        one_of(self.dtype, "dtype", ("float32", "float64"))


def relative_error(value: Any, error: Any, var: np.ndarray, free: np.ndarray) -> float:
    """The largest standard error of a mean or a deviation over the largest correction to one of them.

    `value`, a correction with its `mean` (k,) and `cov` (k, k), and its `error`; in deviations of `var` (k,) where the
    outputs are `free`: training fixes the others.
    """
    std = np.sqrt(np.where(free, var, 1.0))

    def largest(part: Any) -> float:
        shifts = np.abs(part.mean) / std, np.abs(np.diagonal(part.cov)) / (2 * std**2)
        return float(np.where(free, shifts, 0.0).max())

    missed, size = largest(error), largest(value)
    return missed / size if size > 0 else math.inf if missed > 0 else 0.0


def known_to(accuracy: float) -> str:
    """How well a correction is known, for people."""
    return f"known to {100 * accuracy:.2g} %"


def say_missed(options: SampledNeurons, accuracy: float, neurons: int, stacklevel: int) -> None:
    """Warns if `neurons` were not enough: `accuracy`, a `relative_error`."""
    if neurons and accuracy > options.tolerance:
        enough = neurons * (accuracy / options.tolerance) ** 2
        warnings.warn(
            f"with {neurons:,} neurons per layer, the correction is {known_to(accuracy)}, "
            f"above `tolerance` = {options.tolerance:g}: about {enough:.1e} neurons would be enough; pass "
            "`neurons=nk.forecasts.SampledNeurons(...)` with a larger `most` or `tolerance` to nk.forecast.",
            stacklevel=stacklevel + 1,
        )
