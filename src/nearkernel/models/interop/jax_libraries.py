"""Networks of Flax, Equinox and Keras as models: what trains is passed, what does not is held."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import wholes
from ..._base.keys import Key
from ..._base.types import Array, ArrayLike, Num, Unchecked
from ..._base.warning import warn
from ..._run.precision import in_float64
from ..base import AbstractModel, Params, in_working_precision


class NetworkModel(AbstractModel):
    """A network of another JAX library: see `from_network`.

    `model(params, x)`, (n, *shape) to (n, out): outputs of more dimensions are flattened.

    **Fields:** `frozen`, arrays that do not train, such as running statistics; `in_shape` of one input.
    """

    function: Callable = eqx.field(static=True)
    frozen: Params
    _in_shape: tuple[int, ...] | None = eqx.field(static=True)

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        return self._in_shape

    def init(self, key: Key) -> Params:
        raise ValueError(
            "a model of nk.from_network has no `init`: its parameters are those that nk.from_network returned with it; "
            "nk.from_function(f, init=...) takes a function that draws them."
        )

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        dtype = jnp.result_type(*jax.tree.leaves(params))

        def cast(array: ArrayLike) -> jax.Array | ArrayLike:
            floating = jnp.issubdtype(jnp.result_type(array), jnp.floating)
            return jnp.asarray(array, dtype) if floating else array  # integers, keys

        x = jnp.asarray(cast(x))
        z = jnp.asarray(self.function(params, jax.tree.map(cast, self.frozen), x))
        if z.ndim == 0 or len(z) != len(x):
            raise ValueError(
                f"`network` must return one row per input; for x {x.shape} it returns {z.shape}."
            )
        return z.reshape(len(z), -1).astype(dtype)


@in_float64
def from_network(
    network: Unchecked, variables: Params | None = None, *, in_shape: int | Sequence[int] | None = None
) -> tuple[NetworkModel, Params]:
    """A network of Flax (linen or nnx), Equinox or Keras as a model, and its parameters.

    The network is called in evaluation mode. The trained parameters are "params" of Flax linen, `nnx.Param`, the
    floating-point arrays of Equinox, or `network.trainable_variables` of Keras. Everything else stays fixed.

    **Arguments:** `network`, a `flax.linen.Module`, `flax.nnx.Module`, `equinox.Module` (a function of one input,
    mapped over rows) or a built `keras.Model` of the backend "jax"; `variables` of a linen module, as returned by
    `module.init`; `in_shape` of one input, such as (28, 28, 1), which `nk.solve` and others need unless inputs are
    vectors.

    **Returns:** a `NetworkModel`, and `params` in float64: a tree with the structure of the library, for Keras a list
    in the order of `network.trainable_variables`. Keras itself computes in float32 on JAX; a warning says so.

    ```python
    model, params = nk.from_network(module, module.init(key, x[:1]))  # Flax linen
    model, params = nk.from_network(network)  # Flax nnx, Equinox, Keras
    ```
    """
    reader = next((read for base, read in _READERS.items() if is_of(network, base)), None)
    if isinstance(network, eqx.Module) and not isinstance(network, AbstractModel):
        reader = _equinox
    if reader is None:
        hint = (
            ": use nk.from_torch(module, example)" if is_of(network, "torch.nn.modules.module.Module") else ""
        )
        raise TypeError(
            f"`network` must be a network of Flax, Equinox or Keras; got {type(network).__name__}{hint or '.'}"
        )
    if variables is not None and reader is not _linen:
        raise TypeError("`variables` are only for networks of flax.linen; leave them out.")
    function, params, frozen = reader(network, variables)
    if not jax.tree.leaves(params):
        raise ValueError("`network` has no trainable parameters.")
    shape = None if in_shape is None else wholes(in_shape, "in_shape")
    return NetworkModel(function, in_working_precision(frozen), shape), in_working_precision(params)


def is_of(network: Unchecked, base: str) -> bool:
    """Whether `network` is of the class `base`, without importing its library."""
    return any(f"{each.__module__}.{each.__qualname__}" == base for each in type(network).__mro__)


def _linen(network: Unchecked, variables: Params) -> tuple[Callable, Params, Params]:
    if not hasattr(variables, "keys") or "params" not in variables:
        raise TypeError(
            "a network of flax.linen needs its variables: nk.from_network(module, module.init(key, x[:1])); "
            f"got {type(variables).__name__}."
        )
    frozen = {name: variables[name] for name in variables if name != "params"}
    return lambda params, rest, x: network.apply({"params": params, **rest}, x), variables["params"], frozen


def _nnx(network: Unchecked, _: object) -> tuple[Callable, Params, Params]:
    from flax import nnx

    for path, each in nnx.iter_graph(network):
        dropping = isinstance(each, nnx.Dropout) and not each.deterministic and each.rate > 0
        if dropping or (isinstance(each, nnx.BatchNorm) and not each.use_running_average):
            place = ".".join(map(str, path)) or type(each).__name__
            raise ValueError(f"`network` is in training mode ({place!r}): call network.eval() first.")
    graph, params, *others = nnx.split(network, nnx.Param, ...)
    rest = others[0]
    return lambda params, rest, x: nnx.merge(graph, params, rest)(x), params, rest


def _equinox(network: Unchecked, _: object) -> tuple[Callable, Params, Params]:
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    frozen, static = eqx.partition(rest, eqx.is_array)
    return lambda params, rest, x: jax.vmap(eqx.combine(params, rest, static))(x), params, frozen


def _keras(network: Unchecked, _: object) -> tuple[Callable, Params, Params]:
    import keras

    if keras.backend.backend() != "jax":
        raise ValueError(
            f"Keras must run on JAX; its backend is {keras.backend.backend()!r}: set KERAS_BACKEND=jax before you "
            "import it."
        )
    if not network.built:
        raise ValueError("`network` has no weights yet: call it on an input, or network.build(shape), first.")
    warn("Keras computes in float32 on JAX, whatever its policy: outputs and derivatives have seven digits.")
    values = lambda variables: [jnp.asarray(np.asarray(each.value)) for each in variables]

    def function(params: Params, rest: Params, x: Array) -> Array:
        return network.stateless_call(params, rest, x, training=False)[0]

    return function, values(network.trainable_variables), values(network.non_trainable_variables)


_READERS = {
    "flax.linen.module.Module": _linen,
    "flax.nnx.module.Module": _nnx,
    "keras.src.models.model.Model": _keras,
}
