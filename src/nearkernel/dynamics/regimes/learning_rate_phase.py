"""Which phase a learning rate is in: lazy, catapult or divergent."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._base.check import LARGEST, between, inputs, plain_array, positive, shown, whole
from ..._base.result import Result
from ..._base.status import Status
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params
from ..algorithms.divergence import RISE, ROUNDING, growth
from ..algorithms.losses import Squared, loss_of_zero
from ..algorithms.spectral import GradientDescent
from ..simulation.movement import MovementResult, flat, movement, tangent_matrix
from ..simulation.simulate import Record, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Phase(Result, eqx.Module):
    """The result of gradient descent at one learning rate.

    **Fields:** `name`, "lazy", "catapult" or "divergent"; `lr`; `ratio`, lr times the largest eigenvalue of the
    tangent kernel at initialization (lazy below 2); `losses`, one per step; `moved`, a `MovementResult` with the
    kernel and the correlation of the weights at the end, None if these are not finite or too large to be squared;
    `params` at the end; `status` of the run, an `nk.Status`, and its `ok`.
    """

    name: str = eqx.field(static=True)
    lr: float
    ratio: float
    losses: np.ndarray
    moved: MovementResult | None
    params: Params
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the loss over the steps on Matplotlib's `axes`."""
        from ..._plots.training import draw_loss

        losses = np.asarray(self.losses)
        return draw_loss(np.arange(len(losses)), losses, axes, label=self.name)


def phase_of(losses: ArrayLike) -> str:
    """The phase of a run, from its `losses`, one per step, beginning at initialization.

    "divergent": the loss is not finite, ends above its initial value, or is growing at the end, by the rules of
    `nk.simulate`. "catapult": the loss rises above an earlier value by more than a hundredth of the initial loss, and
    falls again. "lazy": neither.
    """
    losses = plain_array(losses, "losses")
    if losses.dtype.kind not in "iuf":
        raise TypeError(f"`losses` must hold real numbers; got values of type {losses.dtype}.")
    losses = losses.astype(np.float64)
    if losses.ndim != 1 or len(losses) < 2 or not np.isfinite(losses[0]):
        raise ValueError(
            f"`losses` must be a vector of at least 2 values, the first of them finite; got shape {losses.shape}."
        )
    return "divergent" if growth(losses) else _bounded_phase(losses)


def _bounded_phase(losses: np.ndarray, zero: float = 0.0) -> str:
    """Of a run that did not diverge; `zero` is the loss of outputs 0, beside which rounding is seen."""
    rise = np.max(losses - np.minimum.accumulate(losses))
    return "catapult" if rise > max(RISE * losses[0], ROUNDING * zero) else "lazy"


@in_float64
def learning_rate_phase(
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    lr: float,
    steps: int = 1000,
    *,
    lr_factors: Params | float | None = None,
) -> Phase:
    r"""Trains `model` from `params` at a learning rate and determines its phase: lazy, catapult or divergent.

    A linear model converges for $\eta < 2/\lambda_0$ and diverges beyond, with $\lambda_0$ the largest eigenvalue of
    the tangent kernel at initialization. The quadratic model of a wide network has a third phase in between: up to
    $4/\lambda_0$ the loss grows until the kernel has shrunk below $2/\eta$, then falls. Real networks have other
    upper limits.

    **Arguments:** `model`, `params`, `x`, `y`, `lr_factors`: same as `nk.simulate`, with the squared loss; `lr`, the
    learning rate; `steps`, enough for the loss to fall again: several multiples of
    $\log(\text{width}) / \log|1 - \eta \lambda_0|$.
    """
    positive(lr, "lr")
    steps = whole(steps, "steps", 1)
    run = simulate(model, params, x, y, GradientDescent(lr, steps), Record(every=1), lr_factors=lr_factors)
    x = inputs(x)
    losses = np.asarray(run.history["loss"])
    moved = None
    finite = len(losses) == steps + 1  # else the loss left the finite numbers
    if finite and np.abs(flat(run.params)).max() <= LARGEST:
        moved = movement(model, params, run.params, x, lr_factors=lr_factors)
        top = moved.ntk_start
    else:
        losses = losses if finite else np.append(losses, np.inf)
        top = float(np.linalg.eigvalsh(tangent_matrix(model, params, x, lr_factors))[-1])
    zero = loss_of_zero(Squared(), jnp.asarray(y))
    name = _bounded_phase(losses, zero) if run.ok else "divergent"
    return Phase(name, float(lr), float(lr) * top, losses, moved, run.params, run.status)


def phase_boundaries(
    losses: Callable[[float], ArrayLike], ntk: float, rtol: float = 1e-3
) -> tuple[float, float]:
    """The learning rates at which the lazy phase ends and divergence begins, found by bisection.

    **Arguments:** `losses`, a function that maps a learning rate to the losses of a run, one per step; `ntk`, the
    largest eigenvalue of the tangent kernel at initialization, which sets the scale: the learning rate 0.1/`ntk` must
    be lazy; `rtol`, the relative width of the final brackets.

    **Returns:** (onset, limit), both learning rates. For a linear model the two coincide.
    """
    if not callable(losses):
        raise TypeError(f"`losses` must be a function of a learning rate; got {shown(losses)}.")
    positive(ntk, "ntk")
    between(positive(rtol, "rtol"), "rtol", 1e-12, 1.0)

    def found(lr: float) -> str:
        return phase_of(losses(lr))

    low = 0.1 / ntk
    if found(low) != "lazy":
        raise ValueError(f"`losses` is not lazy at 0.1/ntk = {low:g}: give the largest eigenvalue as `ntk`.")
    high = 2.0 / ntk
    while found(high) != "divergent":
        high *= 2.0
        if high > 1e6 / ntk:
            raise ValueError("`losses` does not diverge up to 1e6/ntk: there is no upper boundary.")

    def bisect(inside: Callable[[str], bool]) -> float:
        below, above = low, high
        while above > (1 + rtol) * below:
            middle = (below * above) ** 0.5
            below, above = (middle, above) if inside(found(middle)) else (below, middle)
        return (below * above) ** 0.5

    return bisect(lambda name: name == "lazy"), bisect(lambda name: name != "divergent")
