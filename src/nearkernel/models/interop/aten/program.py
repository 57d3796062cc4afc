"""A program of ATen operations as plain data, and how JAX runs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ...._base.types import Array, PyTree
from .table import KINKED, OPERATIONS

_COMPARISONS = {"gt", "ge", "lt", "le"}
_GUARD = 1e-5  # a positive bound below it keeps a denominator from zero; training does not come near it


# Of one result ("float", "int32", ...; None if it is no array), or of several.
Kinds = str | tuple | None


class Ref(NamedTuple):
    """An earlier value of the program."""

    place: int


class Step(NamedTuple):
    """One operation.

    `operation`, its entry in the table; `arguments` and `options`, with `Ref` for values; `kinds`, the type of the
    result ("float", "complex", an integer type, None for what is no array) or a tuple of them; `place`, the submodule.
    """

    operation: str
    arguments: tuple
    options: dict[str, object]
    kinds: Kinds
    place: str


class Program:
    """Weights and inputs, then steps, then one output. Compared by identity, so that it can be a static field.

    **Fields:** `weights`, names of the arrays that the program starts with; `inputs`, how many arrays follow them;
    `steps`; `output`, the value that is returned.
    """

    def __init__(self, weights: Sequence[str], inputs: int, steps: Sequence[Step], output: Ref):
        self.weights = tuple(weights)
        self.inputs = inputs
        self.steps = tuple(steps)
        self.output = output

    def __call__(self, weights: Mapping[str, Array], inputs: Sequence[Array], dtype: DTypeLike) -> jax.Array:
        """The output. All floating-point numbers are of `dtype`, whatever PyTorch computed in."""
        values: list[PyTree] = [weights[name] for name in self.weights]
        values += inputs
        look = lambda tree: _replaced(tree, lambda ref: values[ref.place])
        for step in self.steps:
            result = OPERATIONS[step.operation](*look(step.arguments), **look(step.options))
            values.append(_cast(result, step.kinds, dtype))
        return values[self.output.place]


def _replaced(tree: PyTree, function: Callable[[Ref], object]) -> PyTree:
    """`tree` of lists, tuples and dicts with each `Ref` replaced."""
    if isinstance(tree, Ref):
        return function(tree)
    if isinstance(tree, list | tuple):
        return type(tree)([_replaced(each, function) for each in tree])
    if isinstance(tree, dict):
        return {name: _replaced(each, function) for name, each in tree.items()}
    return tree


def _cast(value: PyTree, kinds: Kinds, dtype: DTypeLike) -> PyTree:
    if isinstance(kinds, tuple):
        return tuple(_cast(each, kind, dtype) for each, kind in zip(value, kinds, strict=True))
    return value if kinds is None or value is None else jnp.asarray(value, dtype_of(kinds, dtype))


def dtype_of(kind: str, dtype: DTypeLike) -> DTypeLike:
    """The JAX type of a value of this `kind` when floating-point numbers are of `dtype`."""
    if kind == "float":
        return dtype
    if kind == "complex":
        return np.complex128 if np.dtype(dtype) == np.float64 else np.complex64
    return np.dtype(kind)


def kinks(program: Program, trained: set[str]) -> tuple[str, ...]:
    """Where the output depends on the weights `trained` through a function whose derivative jumps."""
    moving = {index for index, name in enumerate(program.weights) if name in trained}
    places: dict[str, None] = {}
    for index, step in enumerate(program.steps, start=len(program.weights) + program.inputs):
        used: list[int] = []
        _replaced((step.arguments, step.options), lambda ref: used.append(ref.place))  # noqa: B023
        if step.operation == "stop_gradient" or moving.isdisjoint(used):
            continue
        moving.add(index)
        base = step.operation.partition(".")[0]
        if (step.operation in KINKED or base in _COMPARISONS) and not _smooth(step):
            places[f"{base} at {step.place!r}" if step.place else base] = None
    return tuple(places)


def _smooth(step: Step) -> bool:
    """What belongs to a kinked operation, but is smooth with these arguments."""
    if step.operation == "elu":
        settings = [*step.arguments[1:], 1.0, 1.0, 1.0]  # alpha, scale, input_scale
        return settings[0] * settings[2] == 1.0
    if step.operation in ("clamp", "clamp_min"):
        bounds = [*step.arguments[1:], *step.options.values()]
        return len(bounds) == 1 and isinstance(bounds[0], float) and 0 < bounds[0] <= _GUARD
    if step.operation == "linalg_vector_norm":
        return len(step.arguments) < 2 or step.arguments[1] not in (0, 1, float("inf"), -float("inf"))
    return False
