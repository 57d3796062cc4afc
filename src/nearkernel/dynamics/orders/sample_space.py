r"""Training seen from the outputs alone: gradient steps on outputs and kernels, closed at a given order.

Parameters appear nowhere. With $e$ the residual on the training outputs (the first of all), and the tensors $k$, $\mu$,
$\nu$ and $\kappa$ of `nk.kernels.EmpiricalNTK`, `EmpiricalDNTK` and `EmpiricalDDNTK` on training and test inputs
together, repeated indices summed, one step changes them by

$$\Delta z_1 = -\eta\, k_{1a} e_a + \tfrac12 \eta^2 \mu_{1ab}\, e_a e_b - \tfrac16 \eta^3 \nu_{1abc}\, e_a e_b e_c,$$

$$\Delta k_{12} = -\eta\, (\mu_{12a} + \mu_{21a})\, e_a + \tfrac12 \eta^2 (\nu_{12ab} + \nu_{21ab})\, e_a e_b
+ \eta^2 \kappa_{12ab}\, e_a e_b,$$

$$\Delta \mu_{012} = -\eta\, (\nu_{012a} + \kappa_{012a} + \kappa_{021a})\, e_a.$$
"""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, numeric, positive, whole
from ..._base.result import Result
from ..._base.status import Status
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.empirical.dntk import EmpiricalDDNTK, EmpiricalDNTK
from ...kernels.empirical.ntk import EmpiricalNTK
from ...models.base import AbstractModel, Params
from ...models.params import checked_params
from ..algorithms.divergence import judged
from ..algorithms.losses import Squared, loss_of_zero
from ..algorithms.spectral import GradientDescent
from ..linear.base import end_of, status_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SampleSpaceRun(Result, eqx.Module):
    """`outputs` (steps + 1, m) and `kernel` (steps + 1, m, m) over time; (input, output) pairs form one index.

    `status`, an `nk.Status` by the rules of `nk.simulate`, and its `ok`. A truncated order can diverge even if the
    model itself trains well.
    """

    outputs: np.ndarray
    kernel: np.ndarray
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw all outputs over the steps on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        steps = np.arange(len(self.outputs))
        return draw_lines(steps, np.asarray(self.outputs), axes, xlabel="step", ylabel="output")


@in_float64
def sample_space_descent(
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    lr: float,
    steps: int,
    x_new: ArrayLike | None = None,
    order: int = 1,
) -> SampleSpaceRun:
    """Gradient descent as a recursion of outputs and their tensors, for few inputs: `x` first, then `x_new`.

    **Arguments:** `model`, `params`, `x`, `y`: same as `nk.simulate`; `lr` and `steps` of gradient descent; `x_new`,
    further inputs; `order`: 0 keeps the kernel fixed; 1 keeps the meta-kernel fixed, with errors of second order in the
    curvature; 2 lets it change through fixed second tensors (as in a cubic model), with errors of third order.
    """
    whole(order, "order", 0)
    if order > 2:
        raise ValueError(f"`order` must be 0, 1 or 2; got {order}.")
    params = checked_params(model, params)
    x = inputs(x, "x", model.in_shape)
    both = x if x_new is None else np.concatenate([x, inputs(x_new, "x_new", x.shape[1:])])
    z = np.asarray(model(params, both)).reshape(-1)
    targets = numeric(y, "y").reshape(-1)
    if len(targets) * len(both) != len(z) * len(x):
        raise ValueError(f"`y` must have one value per output at `x`; got {np.shape(y)}.")
    kernel = EmpiricalNTK(model, params).full(both).reshape(len(z), len(z))
    mu = EmpiricalDNTK(model, params)(both) if order else np.zeros((len(z),) * 3)
    shape = (len(z),) * 4 if order == 2 else (0,) * 4
    nu, kappa = EmpiricalDDNTK(model, params)(both) if order == 2 else (np.zeros(shape), np.zeros(shape))
    descent = GradientDescent(positive(lr, "lr"), whole(steps, "steps", 0))
    outputs, kernels = map(np.asarray, _run(z, kernel, mu, nu, kappa, targets, descent.lr, descent.steps))
    with np.errstate(over="ignore", invalid="ignore"):
        losses = 0.5 * ((outputs[:, : len(targets)] - targets) ** 2).sum(axis=1)
    zero = loss_of_zero(Squared(), jnp.asarray(targets))
    status = judged(status_at(descent, 0.0), losses, f"by {end_of(descent)}", zero=zero)
    return SampleSpaceRun(outputs, kernels, status)


@jax.jit(static_argnums=7)
def _run(z, kernel, mu, nu, kappa, y, lr, steps):
    n, moving = len(y), nu.size > 0

    def step(state, _):
        z, k, mu = state
        e = z[:n] - y
        dz = -lr * k[:, :n] @ e + lr**2 / 2 * mu[:, :n, :n] @ e @ e
        drift = mu[:, :, :n] @ e
        dk = -lr * (drift + drift.T)
        dmu = jnp.zeros_like(mu)
        if moving:
            dz += -(lr**3) / 6 * nu[:, :n, :n, :n] @ e @ e @ e
            bent = nu[:, :, :n, :n] @ e @ e
            dk += lr**2 * (0.5 * (bent + bent.T) + kappa[:, :, :n, :n] @ e @ e)
            turned = kappa[:, :, :, :n] @ e
            dmu = -lr * (nu[:, :, :, :n] @ e + turned + turned.swapaxes(1, 2))
        after = (z + dz, k + dk, mu + dmu)
        return after, after[:2]

    _, (zs, ks) = jax.lax.scan(step, (z, kernel, mu), length=steps)
    return jnp.concatenate([z[None], zs]), jnp.concatenate([kernel[None], ks])
