"""The model that a PyTorch module becomes: JAX alone, no PyTorch."""

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ..._base.keys import Key
from ..._base.types import Array, ArrayLike, Num, Unchecked
from ..._run.precision import in_float64, is_traced
from ..base import AbstractModel, Params
from .aten import Program, dtype_of
from .trainable import Adapter


@dataclasses.dataclass(frozen=True)
class Input:
    """One input of a module: its name, the shape of one row, and its kind ("float", "int64", ...)."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Entry(NamedTuple):
    """One entry of a `state_dict`: its name, the weight that it is (the first name of a tied one), its PyTorch type."""

    name: str
    weight: str
    dtype: str


class TorchModel(AbstractModel):
    """A PyTorch module as a model: see `from_torch`.

    `model(params, x)`, (n, *shape) to (n, out): outputs of more dimensions are flattened. `x` is one array, or a
    tuple or dict of arrays for a module with several inputs; or (n, d), with all inputs flattened into one row.
    Functions such as `nk.solve` take one array: (n, *shape) for a module with one input, otherwise
    `model.flatten(x)`.

    **Fields:** `inputs`, name, shape and kind of each input; `frozen`, weights and buffers that are not trained, by
    name; `kinks`, the places where trained parameters enter a function with a discontinuous derivative.
    """

    frozen: dict[str, Array]
    program: Program = eqx.field(static=True)
    by_row: bool = eqx.field(static=True)
    inputs: tuple[Input, ...] = eqx.field(static=True)
    keyed: bool = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    adapters: tuple[Adapter, ...] = eqx.field(static=True)
    state: tuple[Entry, ...] = eqx.field(static=True)
    kinks: tuple[str, ...] = eqx.field(static=True)

    @property
    def in_shape(self) -> tuple[int, ...]:
        """The shape of one input; with several inputs, the shape of a flattened row."""
        one = len(self.inputs) == 1 and not self.keyed
        return self.inputs[0].shape if one else (sum(each.size for each in self.inputs),)

    def init(self, key: Key) -> Params:
        raise ValueError(
            "a model of nk.from_torch has no `init`: its parameters are those that nk.from_torch returned with it."
        )

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        self.require_params(params)
        arrays = self._arrays(x)
        return (
            self.evaluate(params, arrays)
            if is_traced(self, params, arrays)
            else self.compiled(params, arrays)
        )

    def evaluate(self, params: Params, arrays: list) -> jax.Array:
        """Outputs for the inputs `arrays` in the precision of `params`, as one JAX expression."""
        dtype = jnp.result_type(*jax.tree.leaves(params))
        weights = self.weights(params, dtype)
        rows = [
            jnp.asarray(array, dtype_of(each.kind, dtype))
            for array, each in zip(arrays, self.inputs, strict=True)
        ]
        if self.by_row:
            one = lambda *row: self.program(weights, [each[None] for each in row], dtype)
            return jax.vmap(one)(*rows).reshape(len(rows[0]), -1)
        return self.program(weights, rows, dtype).reshape(len(rows[0]), -1)

    def compiled(self, params: Params, arrays: list) -> jax.Array:
        """`evaluate` of `params` and `arrays`, compiled."""
        return _evaluate(self, params, arrays)

    @in_float64
    def weights(self, params: Params, dtype: DTypeLike | None = None) -> dict[str, jax.Array]:
        """All weights of the module by name, as `dtype`: the frozen ones, and `params` with adapters added."""
        self.require_params(params)
        dtype = jnp.result_type(*jax.tree.leaves(params)) if dtype is None else dtype

        def cast(array: Array) -> jax.Array:
            floating = jnp.issubdtype(jnp.result_type(array), jnp.floating)
            return jnp.asarray(array, dtype if floating else None)

        weights = {name: cast(array) for name, array in (self.frozen | params).items()}
        for adapter in self.adapters:
            weights[adapter.name] = adapter.adapted(weights[adapter.name], params)
        return weights

    def require_params(self, params: Params) -> None:
        """Raises `TypeError` unless `params` are those of this model."""
        if not isinstance(params, dict) or tuple(sorted(params)) != self.names:
            came = (
                ", ".join(sorted(map(str, params))[:3]) if isinstance(params, dict) else type(params).__name__
            )
            raise TypeError(
                f"`params` must be a dict of the {len(self.names)} arrays that nk.from_torch returned "
                f"({', '.join(self.names[:3])}{', ...' * (len(self.names) > 3)}); got {came or 'an empty dict'}."
            )

    def flatten(self, x: Unchecked) -> np.ndarray:
        """All inputs flattened into rows, (n, d), as `nk.solve` and others need them if there are several inputs."""
        arrays = [np.asarray(array) for array in self._arrays(x)]
        return np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1, dtype=np.float64)

    def _arrays(self, x: Unchecked) -> list:
        """The inputs of the module from `x`, checked."""
        if hasattr(x, "keys"):
            x = {name: x[name] for name in x.keys()}
            if not self.keyed or set(x) != {each.name for each in self.inputs}:
                raise ValueError(f"`x` must be {self._wanted()}; got a dict of {', '.join(map(str, x))}.")
            arrays = [_array(x[each.name]) for each in self.inputs]
        elif isinstance(x, tuple | list) and not (len(self.inputs) == 1 and not self.keyed):
            if self.keyed or len(x) != len(self.inputs):
                raise ValueError(f"`x` must be {self._wanted()}; got {len(x)} arrays.")
            arrays = [_array(each) for each in x]
        else:
            arrays = self._split(_array(x[0] if isinstance(x, tuple) and len(x) == 1 else x))
        for array, each in zip(arrays, self.inputs, strict=True):
            if array.shape[1:] != each.shape or len(array) != len(arrays[0]):
                raise ValueError(f"`x` must be {self._wanted()}; got {each.name!r} of shape {array.shape}.")
        return arrays

    def _split(self, x: Array) -> list:
        """One array: the only input, or rows in which all inputs stand one after the other."""
        if len(self.inputs) == 1 and x.shape[1:] == self.inputs[0].shape:
            return [x]
        sizes = [each.size for each in self.inputs]
        if x.ndim != 2 or x.shape[1] != sum(sizes):
            raise ValueError(f"`x` must be {self._wanted()}; got shape {x.shape}.")
        ends = np.cumsum(sizes)
        return [
            x[:, end - each.size : end].reshape(len(x), *each.shape)
            for each, end in zip(self.inputs, ends, strict=True)
        ]

    def _wanted(self) -> str:
        shapes = [str(("n", *each.shape)).replace("'", "").replace(",)", ")") for each in self.inputs]
        if self.keyed:
            pairs = (f"{each.name}: {shape}" for each, shape in zip(self.inputs, shapes, strict=True))
            wanted = "a dict {" + ", ".join(pairs) + "}"
        else:
            wanted = f"of shape {shapes[0]}" if len(shapes) == 1 else f"a tuple of shapes {', '.join(shapes)}"
        total = sum(each.size for each in self.inputs)
        flat = self.keyed or len(shapes) > 1 or len(self.inputs[0].shape) != 1
        return wanted + (f" (or all flattened into one row, (n, {total}))" if flat else "")


def _array(value: object) -> Array:
    """An array as it is; a tensor of PyTorch, or a list, as NumPy has it."""
    if isinstance(value, jax.Array | np.ndarray):
        return value
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


@jax.jit
def _evaluate(model: TorchModel, params: Params, arrays: list) -> jax.Array:
    return model.evaluate(params, arrays)
