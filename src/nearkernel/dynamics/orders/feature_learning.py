"""Does learning features help? The test loss as a function of how much they may learn."""

from collections.abc import Callable

import equinox as eqx
import numpy as np

from ..._base.check import numeric
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64


class FeatureLearning(Result, eqx.Module):
    r"""The test loss as a function of the strength of feature learning, near zero strength.

    $$L(\epsilon) = \frac12 \sum (z - y)^2, \qquad z = z^{F} + \epsilon z^{I} + \epsilon^2 z^{II}$$

    For a quadratic model, $\epsilon$ is its `eps`. For an expanded model, $\epsilon = 1$ is the model itself and
    $\epsilon = 0$ its linearization.

    **Fields:** `terms`, $(z^{F}, z^{I}, z^{II})$ at the test inputs, without powers of $\epsilon$; `loss`, $L(0)$;
    `slope`, $dL/d\epsilon$ at 0, $\sum (z^{F} - y) z^{I}$; `curvature`, the second derivative,
    $\sum [(z^{I})^2 + 2 (z^{F} - y) z^{II}]$; `best_eps`, the stationary point of the loss to second order,
    $-$`slope`/`curvature`; `is_minimum`, whether `curvature` > 0 (otherwise `best_eps` is a maximum).
    """

    terms: tuple[np.ndarray, np.ndarray, np.ndarray]
    loss: float
    slope: float
    curvature: float
    _exact: Callable = eqx.field(static=True, repr=False)

    @property
    def helps(self) -> bool:
        r"""Whether a little feature learning, $\epsilon > 0$, lowers the test loss."""
        return self.slope < 0

    @property
    def is_minimum(self) -> bool:
        return self.curvature > 0

    @property
    def best_eps(self) -> float:
        return -self.slope / self.curvature if self.curvature else float("nan")

    def predicted(self, eps: ArrayLike) -> np.ndarray:
        r"""$L(\epsilon)$ to second order, for an array of `eps`."""
        eps = numeric(eps, "eps")
        return self.loss + eps * self.slope + eps**2 / 2 * self.curvature

    @in_float64
    def curve(self, eps: ArrayLike) -> np.ndarray:
        r"""$L(\epsilon)$ exactly, by training at each value of an array of `eps`; nan if training does not converge."""
        eps = numeric(eps, "eps")
        return np.array([self._exact(each) for each in eps.ravel()]).reshape(eps.shape)


def feature_learning(terms: tuple, y: np.ndarray, exact: Callable) -> FeatureLearning:
    z_f, z_i, z_ii = terms
    error = z_f - y
    return FeatureLearning(
        terms,
        loss=float(0.5 * (error**2).sum()),
        slope=float((error * z_i).sum()),
        curvature=float((z_i**2 + 2 * error * z_ii).sum()),
        _exact=exact,
    )
