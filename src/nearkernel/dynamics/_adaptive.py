"""Training that adapts its steps: Adam, and any transformation of gradients of optax. For experiments only."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._check import positive, real_number, shown, whole
from .._extra import needing
from ._algorithms import AbstractAlgorithm


class Adam(AbstractAlgorithm):
    """Adam on the full-batch loss.

    For `nk.simulate` only. `lr_factors` multiply the steps, e.g. `net.lr_factors("adam")` of an `nk.MLP` with
    parametrization "mup".

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

    def direction(self, means: Any, step: Any) -> Any:
        """The step of one parameter per unit of `lr`, from the `means` of the gradient and its square at `step`."""
        first, second = (
            mean / (1 - beta ** (step + 1))
            for mean, beta in zip(means, (self.beta1, self.beta2), strict=True)
        )
        root = jnp.sqrt(second)
        return jnp.where(root > 0, first / jnp.where(root > 0, root + self.eps, 1.0), 0.0)


class Optax(AbstractAlgorithm):
    """Any Optax optimizer, e.g. `nk.Optax(optax.adamw(1e-3), steps=1000)`. For `nk.simulate` only.

    `lr_factors` multiply its updates. For plain gradient descent, momentum, weight decay and schedules use
    `GradientDescent` or `SGD`, which `nk.solve` supports as well.

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


def _is_transformation(value: Any) -> bool:
    with needing("nk.Optax"):
        import optax
    return isinstance(value, optax.GradientTransformation)
