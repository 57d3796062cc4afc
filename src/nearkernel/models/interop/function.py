"""Any function of parameters and inputs as a model: Flax, Equinox, Haiku or plain JAX."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax

from ..._base.check import array_of, called
from ..._base.keys import Key, random_key
from ..._base.types import Array, ArrayLike, Num
from ..._run.precision import drawing, in_float64
from ..base import AbstractModel, Params, at_least_float


class FunctionModel(AbstractModel):
    """A JAX `function` f(params, x) as a model, with an `initializer`; made by `from_function`."""

    function: Callable = eqx.field(static=True)
    initializer: Callable | None = eqx.field(static=True)

    @drawing
    def init(self, key: Key) -> Params:
        if self.initializer is None:
            raise ValueError("this model has no `init`: give it to nk.from_function(f, init=...).")
        return self.initializer(random_key(key))

    def parameter_shapes(self) -> Params | None:
        return None if self.initializer is None else _shapes_of(self.initializer)

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        x = at_least_float(x)
        z = array_of(called(self.function, "f(params, x)", params, x), "f(params, x)")
        if z.ndim == 1 and len(z) == len(x):
            return z[:, None]
        if z.ndim != 2 or len(z) != len(x):
            raise ValueError(
                f"`f(params, x)` must return (n,) or (n, out); for x {x.shape} it returns {z.shape}."
            )
        return z


def from_function(
    f: Callable[[Params, jax.Array], Array], init: Callable[[jax.Array], Params] | None = None
) -> FunctionModel:
    """Makes a model from any JAX function `f(params, x)`.

    **Arguments:** `f`, a function of a tree of arrays and inputs (n, d) that returns (n,) or (n, out); each row may
    depend on its own input only (no batch statistics); `init`, optional, a function that maps a key to parameters.

    ```python
    flax_net = nk.from_function(module.apply, init=lambda key: module.init(key, x[:1]))
    ```

    `nk.from_network` and `nk.from_torch` convert networks of other libraries directly.
    """
    if not callable(f):
        raise TypeError(f"`f` must be a function f(params, x); got {type(f).__name__}.")
    if init is not None and not callable(init):
        raise TypeError(f"`init` must be a function of a key; got {type(init).__name__}.")
    return FunctionModel(f, init)


@functools.lru_cache(maxsize=32)
def _shapes_of(initializer: Callable) -> Params | None:
    try:
        return jax.eval_shape(initializer, jax.random.key(0))
    except Exception:  # it may not be written for JAX: then nothing is known beforehand
        return None
