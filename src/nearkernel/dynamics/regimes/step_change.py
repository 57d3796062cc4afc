"""Any observable before and after a step of SGD: their means agree where SGD is stationary."""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import shown
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params
from ...models.params import training_factors
from ..algorithms.losses import AnyLoss
from ..algorithms.sgd import SGD
from .stationary_sgd import checked_data, plain_sampling

_MOST = 2000  # batches that are averaged over


def step_change(
    observable: Callable,
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    sgd: SGD,
    loss: AnyLoss = "squared",
    *,
    lr_factors: Params | float | None = None,
) -> Callable:
    r"""The mean change of an observable in one step of SGD, as an observable for `nk.Record`.

    $$\mathbb{E}_B[O(\theta - \eta\, g_B)] - O(\theta)$$

    Its mean over a stationary run of SGD is 0 for every O: the fluctuation-dissipation relation. The mean over batches
    is exact: it includes all of them.

    **Arguments:** `observable`, a JAX function of the parameters that returns one number; `model`, `x`, `y`, `loss`,
    `lr_factors`: same as `nk.simulate`; `sgd`, an `nk.SGD` with at most 2000 possible batches of a fixed size;
    `params`, any parameters of the model.

    **Returns:** a function of the parameters.
    """
    if not callable(observable):
        raise TypeError(f"`observable` must be a function of the parameters; got {shown(observable)}.")
    x, y, function = checked_data(model, params, x, y, loss)
    lr, _, _ = plain_sampling(sgd, len(x))
    factors = training_factors(model, params, lr_factors)
    size = len(x) if sgd.batch_size is None else min(sgd.batch_size, len(x))
    count = math.comb(len(x), size)
    if sgd.batches != "fixed" or count > _MOST:
        raise ValueError(
            f"`sgd` must have at most {_MOST} batches of a fixed size; {len(x)} points have {count} of size {size}: "
            'use fewer points and `batches="fixed"`.'
        )
    batches, scale = np.array(list(itertools.combinations(range(len(x)), size))), lr * len(x) / size

    @in_float64
    def change(theta):
        def after(batch):
            gradient = jax.grad(lambda p: function(model(p, jnp.asarray(x)[batch]), jnp.asarray(y)[batch]))(
                theta
            )
            moves = gradient if factors is None else jax.tree.map(jnp.multiply, factors, gradient)
            return observable(jax.tree.map(lambda a, g: a - scale * g, theta, moves))

        return jnp.mean(jax.lax.map(after, jnp.asarray(batches), batch_size=64)) - observable(theta)

    return change
