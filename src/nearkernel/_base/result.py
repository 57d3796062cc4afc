"""How results show themselves: one readable line or a few in a terminal, a small table in a notebook."""

import dataclasses
import inspect
import math
from collections.abc import Mapping

import jax
import numpy as np

from .printable import escape
from .status import Status
from .types import Array

_LINE = 100  # characters up to which a result is shown on one line
_FEW = 6  # numbers up to which an array is written out


class Result:
    """A result. It prints its type, its sizes, how the computation ended and its most important numbers.

    Results with a figure have `plot(axes=None)`, which draws it on Matplotlib's `axes`, or on the axes of a new
    figure, and returns the axes.
    """

    def _shown(self) -> Mapping[str, object]:
        """Names and values to show, in order. By default all public fields but None."""
        return {name: value for name, value in _fields(self) if value is not None}

    def __repr__(self) -> str:
        parts = [f"{name}={brief(value)}" for name, value in self._shown().items()]
        line = f"{type(self).__name__}({', '.join(parts)})"
        if len(line) <= _LINE:
            return line
        return "\n".join((f"{type(self).__name__}(", *(f"    {part}," for part in parts), ")"))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(brief(value))}</td></tr>"
            for name, value in self._shown().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _fields(record: object) -> list[tuple[str, object]]:
    """Public fields of a dataclass, a named tuple or a plain object, in the order in which they are declared."""
    if dataclasses.is_dataclass(record):
        names = [field.name for field in dataclasses.fields(record) if field.repr]
    else:
        names = list(getattr(record, "_fields", None) or vars(record))
    return [(name, getattr(record, name)) for name in names if not name.startswith("_")]


def brief(value: object) -> str:
    """A value in a few characters: small ones whole, arrays by type, shape and range."""
    if isinstance(value, Status):
        return repr(value.message)
    if isinstance(value, np.ndarray | np.generic | jax.Array) and np.ndim(value) + np.size(value) > 1:
        return _array(value)
    if isinstance(value, bool | int | str | np.bool_ | np.integer):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, float | np.floating | np.ndarray | jax.Array):
        return _number(value)
    if isinstance(value, Result):
        return f"{type(value).__name__}(...)" if len(repr(value)) > _LINE // 2 else repr(value)
    if isinstance(value, tuple | list):
        return _sequence(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {brief(one)}" for key, one in list(value.items())[:_FEW]) + "}"
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(getattr(value, "__name__", value))
    shown = repr(value)
    return shown if len(shown) <= _LINE else f"{type(value).__name__}(...)"


def _sequence(value: tuple | list) -> str:
    left, right = ("[", "]") if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
    if len(value) > _FEW:
        return f"{type(value).__name__} of {len(value)}"
    return left + ", ".join(map(brief, value)) + right


def _array(value: Array) -> str:
    kind = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, jax.core.Tracer) or not np.issubdtype(value.dtype, np.number) or not value.size:
        return kind
    array = np.asarray(value)
    if array.ndim == 1 and array.size <= _FEW:
        return "[" + ", ".join(map(_number, array)) + "]"
    if np.iscomplexobj(array):
        return kind
    with np.errstate(invalid="ignore"):
        low, high = (_number(bound) for bound in (array.min(), array.max()))
    return f"{kind} from {low} to {high}"


def _number(value: object) -> str:
    if isinstance(value, jax.core.Tracer):
        return str(value.dtype)
    number = np.asarray(value).item()
    if isinstance(number, float) and math.isfinite(number):
        return f"{number + 0.0:.5g}"  # no -0
    return str(number)
