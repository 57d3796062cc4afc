"""Bad input gets one clear line: the argument as the user typed it, what came, what to do."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ._nearest import nearest as nearest
from ._precision import is_traced


def real_number(value: Any, name: str) -> Any:
    """`value` if it is one finite-or-infinite real number or a traced scalar; refuses NaN, text and arrays."""
    if is_traced(value):
        return value
    if isinstance(value, bool | np.bool_ | str | bytes) or (not np.isscalar(value) and np.ndim(value) != 0):
        raise TypeError(f"`{name}` must be one number; got {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be one number; got {value!r}.") from None
    if math.isnan(number):
        raise ValueError(f"`{name}` must be a number; got nan.")
    return value


def finite_number(value: Any, name: str) -> Any:
    """`value` if it is one finite real number."""
    value = real_number(value, name)
    if not is_traced(value) and math.isinf(value):
        raise ValueError(f"`{name}` must be finite; got {value}.")
    return value


def positive(value: Any, name: str, *, zero: bool = False, finite: bool = True) -> Any:
    """`value` if it is > 0 (>= 0 with `zero`)."""
    value = real_number(value, name)
    if is_traced(value):
        return value
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"`{name}` must be {'at least 0' if zero else 'greater than 0'}; got {value}.")
    if finite and math.isinf(value):
        raise ValueError(f"`{name}` must be finite; got {value}.")
    return value


def whole(value: Any, name: str, least: int) -> int:
    """`value` as an int, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}; got {value}.")
    return int(value)


def one_of(value: Any, name: str, choices: Sequence[str]) -> str:
    """`value` if it is one of `choices`; suggests the nearest otherwise."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(
        f"`{name}` must be one of {', '.join(map(repr, choices))}; got {value!r}.{nearest(value, choices)}"
    )


def numeric(value: Any, name: str) -> np.ndarray:
    """`value` as a finite float64 array."""
    if hasattr(value, "to_numpy"):  # a data frame
        value = value.to_numpy()
    if hasattr(value, "toarray"):
        raise TypeError(f"`{name}` is a sparse matrix; pass `{name}.toarray()`.")
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ValueError(f"`{name}` must be a rectangular array; its rows have different lengths.") from None
    try:
        raw = raw.astype(np.float64) if raw.dtype.kind == "O" else raw
    except (TypeError, ValueError):
        pass
    if raw.dtype.kind in "USOMmV":
        sample = raw.ravel()[0] if raw.size else ""
        raise TypeError(f"`{name}` must hold numbers; got values such as {str(sample)!r}: encode them first.")
    if raw.dtype.kind == "c":
        raise TypeError(f"`{name}` must be real; got complex numbers.")
    array = np.asarray(raw, dtype=np.float64)
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"`{name}` holds {bad} NaN or infinite value{'s' * (bad > 1)}, "
            f"the first at index {where}: remove or impute."
        )
    return array


def inputs(x: Any, name: str = "x", dim: "int | tuple[int, ...] | None" = None) -> np.ndarray:
    """(n, d) inputs with n, d >= 1; checks d against `dim`. Inputs of another shape have that for `dim`."""
    array = numeric(x, name)
    if isinstance(dim, tuple) and len(dim) == 1:
        dim = dim[0]
    if isinstance(dim, tuple):
        if array.ndim != 1 + len(dim) or array.shape[1:] != dim:
            raise ValueError(
                f"`{name}` must have shape ({', '.join(['n', *map(str, dim)])}); got {array.shape}."
            )
        if 0 in array.shape:
            raise ValueError(f"`{name}` is empty: shape {array.shape}.")
        return array
    if array.ndim != 2:
        hint = f"; for one feature pass `{name}[:, None]`" if array.ndim == 1 else ""
        raise ValueError(f"`{name}` must have shape (n, d); got {array.shape}{hint}.")
    if 0 in array.shape:
        raise ValueError(f"`{name}` is empty: shape {array.shape}.")
    same_dim(array, name, dim)
    return array


def same_dim(x: "np.ndarray | jax.Array", name: str, dim: int | None) -> None:
    if dim is not None and x.shape[-1] != dim:
        raise ValueError(f"`{name}` has {x.shape[-1]} features per row; {dim} expected.")


def targets(y: Any, n: int, name: str = "y", x_name: str = "x", out: int | None = None) -> np.ndarray:
    """(n, out) targets; a vector becomes one column."""
    array = numeric(y, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"`{name}` must have shape (n,) or (n, out); got {array.shape}.")
    if len(array) != n:
        raise ValueError(f"`{x_name}` and `{name}` must have as many rows; got {n} and {len(array)}.")
    if array.size == 0:
        raise ValueError(f"`{name}` is empty: shape {array.shape}.")
    columns = array.reshape(n, -1)
    if out is not None and columns.shape[1] != out:
        raise ValueError(f"`{name}` has {columns.shape[1]} outputs per row; the model has {out}.")
    return columns
