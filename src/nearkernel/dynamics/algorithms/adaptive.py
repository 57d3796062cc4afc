"""Training that adapts its steps: Adam, and any transformation of gradients of optax. For experiments only."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import positive, real_number, shown, whole
from ..._base.extra import needing
from ...models.base import AbstractModel, Params
from ...models.params import training_factors
from .spectral import AbstractAlgorithm

_TRIED, _SMALL, _SAME = 5, 1e-3, 0.01  # steps, gradients and tolerance with which an optimizer is tried


class Adam(AbstractAlgorithm):
    """Adam on the full-batch loss.

    For `nk.simulate` only. `lr_factors` multiply the steps: by default `net.lr_factors("adam")` of a network in maximal
    update parametrization, and 1 for any other, since its steps do not depend on the scale of gradients.

    **Arguments:** `lr` > 0; `steps`; `beta1`, `beta2`, decay rates of the mean gradient and the mean squared
    gradient; `eps`, added to the root of the mean squared gradient.
    """

    lr: float
    steps: int
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __check_init__(self):
        positive(self.lr, "lr")
        whole(self.steps, "steps", 0)
        for name in ("beta1", "beta2"):
            if not 0 <= real_number(getattr(self, name), name) < 1:
                raise ValueError(f"`{name}` must be at least 0 and below 1; got {getattr(self, name)}.")
        positive(self.eps, "eps", zero=True)

    def direction(self, means: Sequence[jax.Array], step: jax.Array) -> jax.Array:
        """The step of one parameter per unit of `lr`, from the `means` of the gradient and its square at `step`."""
        first, second = (
            mean / (1 - beta ** (step + 1))
            for mean, beta in zip(means, (self.beta1, self.beta2), strict=True)
        )
        root = jnp.sqrt(second)
        return jnp.where(root > 0, first / jnp.where(root > 0, root + self.eps, 1.0), 0.0)


class Optax(AbstractAlgorithm):
    """Any Optax optimizer, e.g. `nk.Optax(optax.adamw(1e-3), steps=1000)`. For `nk.simulate` only.

    `lr_factors` multiply its updates: by default those of gradient descent if updates are proportional to gradients
    (`optax.sgd`), those of `nk.Adam` if they do not depend on their scale (`optax.adam`). For plain gradient descent,
    momentum, weight decay and schedules use `GradientDescent` or `SGD`, which `nk.solve` supports as well.

    **Arguments:** `transformation`, an `optax.GradientTransformation`; `steps`; `batch_size` of random batches drawn
    without replacement, None for the full batch. A batch gradient is scaled to the size of the full gradient.
    """

    transformation: Any = eqx.field(static=True)
    steps: int
    batch_size: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not _is_transformation(self.transformation):
            raise TypeError(
                "`transformation` must be an optax.GradientTransformation, e.g. optax.adam(1e-3); got "
                f"{shown(self.transformation)}."
            )
        whole(self.steps, "steps", 0)
        if self.batch_size is not None:
            whole(self.batch_size, "batch_size", 1)

    @property
    def random(self) -> bool:
        """Whether batches are random."""
        return self.batch_size is not None


def _is_transformation(value: object) -> bool:
    with needing("nk.Optax"):
        import optax
    return isinstance(value, optax.GradientTransformation)


def optimizer_of(algorithm: AbstractAlgorithm, model: AbstractModel, params: Params, given: Params) -> str:
    """Which of a model's learning-rate factors `algorithm` needs, "sgd" or "adam", unless they are `given`."""
    if not isinstance(algorithm, Optax) or given is not None:
        return "adam" if isinstance(algorithm, Adam) else "sgd"
    if all(training_factors(model, params, None, kind) is None for kind in ("sgd", "adam")):
        return "sgd"  # both are 1
    with jax.ensure_compile_time_eval():
        growth = _growth(
            algorithm.transformation, jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf)), params)
        )
    for kind, expected in (("sgd", 2.0), ("adam", 1.0)):
        if abs(growth - expected) < _SAME:
            return kind
    raise ValueError(
        "`lr_factors` must be given for this nk.Optax, whose updates are neither proportional to gradients nor "
        "independent of their scale: e.g. `net.lr_factors()`, or 1.0."
    )


def _growth(transformation: Any, params: Params) -> float:
    """By how much the updates of `params` = 0, which do not decay, grow if all gradients are twice as large."""

    def moved(scale: float) -> float:
        state, total = transformation.init(params), 0.0
        for step in range(_TRIED):  # a schedule may begin at 0
            gradient = jax.tree.map(
                functools.partial(jnp.full_like, fill_value=scale * (1 + step % 2)), params
            )
            updates, state = transformation.update(gradient, state, params)
            total += sum(float(jnp.sum(jnp.abs(leaf))) for leaf in jax.tree.leaves(updates))
        return total

    before = moved(_SMALL)
    return moved(2 * _SMALL) / before if before > 0 else math.nan
