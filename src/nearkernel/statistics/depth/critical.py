r"""The initialization at which signals neither vanish nor explode with depth.

$$K' = C_b + C_W\, \mathbb{E}[s^2], \qquad \chi_\perp = C_W\, \mathbb{E}[s'^2], \qquad
\chi_\parallel = \frac{dK'}{dK} = C_W\, \mathbb{E}[s'^2 + s s''], \qquad z \sim \mathcal{N}(0, K)$$

The critical point is a fixed point $K_* = K'$ at which $\chi_\perp = \chi_\parallel = 1$.
"""

from typing import Any, overload

import equinox as eqx
import numpy as np
import scipy.optimize

from ..._base.check import numeric, positive
from ..._base.result import Result
from ..._run.precision import in_float64
from ...activations.base import moments
from ...activations.by_name import get
from ...models.layers.base import AbstractLayer
from .activation_class import Scan, scan
from .block import BlockFlow, block_flow
from .phases import correlation_length
from .tanh_decay import decay_at_zero

SCALE_INVARIANT, AT_ZERO, HALF_STABLE, NONE = "scale-invariant", "K* = 0", "half-stable", "none"


class CriticalResult(Result, eqx.Module):
    r"""The critical point of an activation, or the reason why there is none.

    **Fields:** `weight_var` $C_W$ and `bias_var` $C_b$ (nan if there is none); `fixed_point` $K_*$ (nan if every $K$ is
    fixed); `universality`: `"scale-invariant"`, `"K* = 0"`, `"half-stable"` or `"none"`; `message`, a one-line summary;
    `power` $p$ and `coefficient` $c$ of the decay $K - K_* \to c / l^p$ with depth $l$, to 3e-4 or better (0 and nan if
    $K$ does not move or follows no power law); `attracts`: the side from which $K$ converges to $K_*$: "above",
    "below", "both", "all" (every $K$ is fixed) or "none".
    """

    activation: Any
    weight_var: float
    bias_var: float
    fixed_point: float
    universality: str = eqx.field(static=True)
    message: str = eqx.field(static=True)
    power: float
    coefficient: float
    attracts: str = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        """Whether there is a critical point."""
        return self.universality != NONE

    @in_float64
    def chi_perp(self, kernel: Any, weight_var: float | None = None) -> np.ndarray:
        r"""$\chi_\perp = C_W \mathbb{E}[s'^2]$ at variance `kernel`: growth of small squared differences per layer."""
        return self._weight_var(weight_var) * moments(self.activation, kernel).slope

    @in_float64
    def chi_par(self, kernel: Any, weight_var: float | None = None) -> np.ndarray:
        r"""$\chi_\parallel = C_W \mathbb{E}[s'^2 + s s'']$, the growth per layer of a small change of `kernel`."""
        found = moments(self.activation, kernel)
        return self._weight_var(weight_var) * (found.slope + found.curvature)

    @in_float64
    def correlation_length(self, weight_var: float, bias_var: float = 0.0) -> float:
        r"""The number of layers over which the angle between two inputs converges; infinite at criticality.

        It is $-1/\ln$ of the slope of the correlation map at its fixed point, which is $\chi_\perp$ in the ordered
        phase.
        """
        weight_var, bias_var = positive(weight_var, "weight_var"), positive(bias_var, "bias_var", zero=True)
        return correlation_length(self.activation, weight_var, bias_var)

    @in_float64
    def kernel_law(self, depth: Any) -> np.ndarray:
        r"""K at large `depth`: $K_* + c / \text{depth}^p$ (`coefficient` c, `power` p)."""
        if not self.ok or self.attracts in ("all", "none"):
            raise ValueError(f"K does not decay by a power law here: {self.message}")
        depth = numeric(depth, "depth")
        if np.any(depth <= 0):
            raise ValueError(f"`depth` must be greater than 0; got {depth.min():g}.")
        return self.fixed_point + self.coefficient / depth**self.power

    def _weight_var(self, weight_var: float | None) -> float:
        if weight_var is None and not self.ok:
            raise ValueError(f"`weight_var` is required, because no value is critical: {self.message}")
        return self.weight_var if weight_var is None else positive(weight_var, "weight_var")


@overload
def critical(activation: AbstractLayer | list | tuple) -> BlockFlow: ...


@overload
def critical(activation: Any) -> CriticalResult: ...


@in_float64
def critical(activation: Any) -> Any:
    r"""The critical initialization of `activation`, a name or any JAX function; or the flow through a block of
    layers.

    Solves $K_* = C_b + C_W\, \mathbb{E}[s^2]$ and $\chi_\perp = \chi_\parallel = 1$. If an activation has no solution,
    `universality` is "none" and `message` gives the reason.

    A layer or a list of layers is treated as a repeated block: `nk.critical([layers.Residual([layers.LayerNorm(),
    layers.Activation("relu"), layers.Dense(1)])])`. The result is then a `BlockFlow`: the limiting variance, the
    change of gradients and angles per block, and the factor on the variances that would make it critical.
    Convolutions are treated as on a large image, away from its borders.
    """
    if isinstance(activation, AbstractLayer | list | tuple):
        return block_flow(activation)
    activation = get(activation)
    seen = scan(activation)
    ratio, slope = seen.moments.value / seen.k, seen.moments.slope
    if not slope.any():
        raise ValueError("`activation` must not be constant: a constant passes no signal.")
    if np.ptp(ratio) <= 1e-9 * ratio.max() and np.ptp(slope) <= 1e-9 * slope.max():
        return _scale_invariant(activation, float(ratio[0]))
    return _at_zero(activation) or _away_from_zero(activation, seen) or _no_solution(activation, seen)


def _scale_invariant(activation: Any, power: float) -> CriticalResult:
    message = f"every variance is preserved at weight_var = {1 / power:.8g} and bias_var = 0."
    return CriticalResult(activation, 1.0 / power, 0.0, np.nan, SCALE_INVARIANT, message, 0.0, np.nan, "all")


def _at_zero(activation: Any) -> CriticalResult | None:
    """The class of tanh: K falls to 0 with the depth."""
    found = decay_at_zero(activation)
    if found is None:
        return None
    at, p = f"weight_var = {found.weight_var:.8g}, bias_var = 0", found.exponent
    if np.isnan(p):
        how = "more slowly than any power of the depth" if found.fast else "but not as a power of the depth"
        message = f"{at}: K falls to 0 {how}."
        return CriticalResult(activation, found.weight_var, 0.0, 0.0, AT_ZERO, message, 0.0, np.nan, "above")
    coefficient = float((p * found.rate) ** (-1.0 / p))
    message = f"{at}: K falls to 0 as {coefficient:.6g} / depth^{1 / p:g}."
    return CriticalResult(
        activation, found.weight_var, 0.0, 0.0, AT_ZERO, message, 1.0 / p, coefficient, "above"
    )


def _away_from_zero(activation: Any, seen: Scan) -> CriticalResult | None:
    """The class of gelu: E[s s''] = 0 at some K* > 0, where the flow comes to rest from one side only."""
    curvature = seen.moments.curvature
    floor = 1e-12 * seen.moments.slope
    for i in np.flatnonzero((curvature[:-1] * curvature[1:] < 0) & (np.abs(curvature[:-1]) > floor[:-1])):
        k = scipy.optimize.brentq(
            lambda k: float(moments(activation, k).curvature),
            seen.k[i],
            seen.k[i + 1],
            xtol=1e-14,
            rtol=1e-14,
        )
        at = moments(activation, k)
        weight_var = 1.0 / float(at.slope)
        bias_var = k - weight_var * float(at.value)
        if bias_var >= 0:
            return _half_stable(activation, k, weight_var, bias_var)
    return None


def _half_stable(activation: Any, k: float, weight_var: float, bias_var: float) -> CriticalResult:
    def bend(step: float) -> float:
        at = moments(activation, np.array([k - step, k + step]))
        return weight_var * float(np.diff(at.slope + at.curvature)[0]) / (2 * step)

    a2 = 0.5 * (4 * bend(0.01 * k) - bend(0.02 * k)) / 3  # K' - K* = dK + a2 dK^2
    side = "above" if a2 < 0 else "below"
    message = (
        f"K* = {k:.8g} at weight_var = {weight_var:.8g}, bias_var = {bias_var:.8g}; "
        f"K converges to it from {side} only, as {-1 / a2:.6g} / depth."
    )
    return CriticalResult(activation, weight_var, bias_var, k, HALF_STABLE, message, 1.0, -1.0 / a2, side)


def _no_solution(activation: Any, seen: Scan) -> CriticalResult:
    curvature = seen.moments.curvature
    if (curvature > 0).all():
        reason = "E[s s''] > 0 at every variance, so chi_par > chi_perp: small changes of the variance grow"
    elif (curvature < 0).all():
        reason = "E[s s''] < 0 at every variance, so chi_par < chi_perp, and s(0) is not 0, so 0 is not a fixed point"
    else:
        reason = "where chi_par = chi_perp = 1, bias_var would have to be negative"
    message = f"no critical point: {reason}."
    return CriticalResult(activation, np.nan, np.nan, np.nan, NONE, message, 0.0, np.nan, "none")
