"""A model to some degree in the distance from where it starts."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import whole
from ..._base.keys import Key
from ..._base.types import ArrayLike, Num
from ..._run.precision import in_float64
from ..base import AbstractModel, Params, require_model
from ..params import floating_params, require_params, training_factors

_MOST = 6  # each degree is one more derivative of derivatives


class Taylor(AbstractModel):
    r"""The Taylor polynomial of `model` around `params0`. Degree 1 is a kernel machine; degree 2 learns features.

    $$z(\theta) = \sum_{k \le \text{degree}} \frac{1}{k!} \left.\frac{d^k}{ds^k}\right|_{s=0}
    z(\theta_0 + s (\theta - \theta_0)), \qquad (n, d) \to (n, \text{out})$$

    **Arguments:** `model`; `params0`, the point of expansion $\theta_0$; `degree`; `lr_factors`, learning-rate factors
    of training, a tree like the parameters, None for those of `model`.
    """

    model: AbstractModel
    params0: Params
    degree: int = eqx.field(static=True)
    lr_factors: Params | None = None

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        return self.model.in_shape

    def init(self, key: Key | None = None) -> Params:
        """The parameters around which it was expanded."""
        return self.params0

    def parameter_shapes(self) -> Params:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), np.float64), self.params0)

    def own_factors(self, optimizer: str) -> Params | None:
        return self.model.own_factors(optimizer) if self.lr_factors is None else self.lr_factors

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        first, *others = self.terms(params, x)
        return sum(others, first)

    @in_float64
    def terms(self, params: Params, x: ArrayLike) -> list[jax.Array]:
        """The term of each degree 0 .. `degree` at `x`, in the precision of `params`."""
        require_params(self, params)
        params = jax.tree.unflatten(jax.tree.structure(self.params0), jax.tree.leaves(params))
        params = jax.tree.map(
            lambda a: a if jnp.issubdtype(jnp.result_type(a), jnp.floating) else 1.0 * a, params
        )
        start = jax.tree.map(lambda a, b: jnp.asarray(a, jnp.result_type(b)), self.params0, params)
        step = jax.tree.map(jnp.subtract, params, start)
        term: Callable = lambda p: self.model(p, x)
        terms = [term(start)]
        for k in range(1, self.degree + 1):
            term = _along(term, step)
            terms.append(term(start) / math.factorial(k))
        return terms


def _along(function, step):
    return lambda p: jax.jvp(function, (p,), (step,))[1]


def expand(
    model: AbstractModel, params: Params, degree: int = 1, *, lr_factors: Params | None = None
) -> Taylor:
    r"""The Taylor polynomial of `model` around `params`, of `degree` 1 to 6, as a model with the same parameters.

    The degree counts powers of $\theta - \theta_0$; every degree is exact in $x$. The next term, the last of
    `nk.expand(model, params, degree + 1).terms(trained, x)`, estimates the error. `nk.solve` uses degrees up to 3. Each
    degree doubles the time. `lr_factors` is the same as in `nk.simulate`: by default, the expansion trains with the
    learning-rate factors of `model`.
    """
    require_model(model)
    if whole(degree, "degree", 1) > _MOST:
        raise ValueError(f"`degree` must be from 1 to {_MOST}; got {degree}.")
    params = floating_params(model, params)
    if lr_factors is None:
        return Taylor(model, params, degree)
    given = training_factors(model, params, lr_factors)
    return Taylor(model, params, degree, jax.tree.map(lambda _: 1.0, params) if given is None else given)
