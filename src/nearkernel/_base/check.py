"""Bad input gets one clear line: the argument as the user typed it, what came, what to do."""

import contextlib
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._run.precision import is_traced
from .spelling import nearest as nearest
from .types import Params, PyTree, Unchecked

_SHOWN = 60  # characters of a value in a message
_T = TypeVar("_T")
_LARGEST_WHOLE = 2**63 - 1
LARGEST = 1e150  # squares of what is given are numbers still


def shown(value: object) -> str:
    """What came, in one short line."""
    if isinstance(value, np.ndarray | jax.Array) and np.ndim(value) > 0:
        return f"an array of shape {np.shape(value)}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer of thousands of digits, or an object whose own code fails
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def real_number(value: Unchecked, name: str) -> Any:
    """`value` if it is one finite-or-infinite real number or a traced scalar; refuses NaN, text and arrays."""
    if is_traced(value):
        return value
    number = None
    if not isinstance(value, bool | np.bool_ | str | bytes | np.ma.MaskedArray) and np.ndim(value) == 0:
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(
                f"`{name}` is too large for a floating-point number: at most 1.8e308, or inf if that is allowed."
            ) from None
        except Exception:  # whatever an object that is no number does
            number = None
    if number is None:
        raise TypeError(f"`{name}` must be one number; got {shown(value)}.")
    if math.isnan(number):
        raise ValueError(f"`{name}` must be a number; got nan.")
    kept = isinstance(value, int | float | np.number | np.ndarray | jax.Array)
    return value if kept else number  # fractions and decimals do not mix with arrays


def finite_number(value: Unchecked, name: str) -> Any:
    """`value` if it is one finite real number."""
    value = real_number(value, name)
    if not is_traced(value):
        _require_moderate(value, name)
    return value


def _require_moderate(value: float, name: str, infinite: bool = False) -> None:
    if math.isinf(value) and not infinite:
        raise ValueError(f"`{name}` must be finite; got {value}.")
    if LARGEST < abs(value) < math.inf:
        raise ValueError(
            f"`{name}` must be at most {LARGEST:g} in size{', or infinite' * infinite}, or squares overflow; got "
            f"{value:g}."
        )


def positive(value: Unchecked, name: str, *, zero: bool = False, finite: bool = True) -> Any:
    """`value` if it is > 0 (>= 0 with `zero`)."""
    value = real_number(value, name)
    if is_traced(value):
        return value
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"`{name}` must be {'at least 0' if zero else 'greater than 0'}; got {value}.")
    _require_moderate(value, name, infinite=not finite)
    return value


def between(value: Unchecked, name: str, low: float, high: float) -> Any:
    """A checked number if it is from `low` to `high`: arithmetic reaches no farther."""
    if not is_traced(value) and not low <= value <= high:
        raise ValueError(f"`{name}` must be between {low:g} and {high:g}; got {value:g}.")
    return value


def whole(value: Unchecked, name: str, least: int, most: int = _LARGEST_WHOLE) -> int:
    """`value` as an int from `least` to `most`."""
    try:
        if isinstance(value, bool | np.bool_) or np.ndim(value) != 0 or is_traced(value):
            raise TypeError
        number = operator.index(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be an integer; got {shown(value)}.") from None
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}; got {shown(number)}.")
    if number > most:
        raise ValueError(f"`{name}` must be at most {most}; got {shown(number)}.")
    return number


def wholes(values: Unchecked, name: str, least: int = 1) -> tuple[int, ...]:
    """`values`, an ordered sequence such as (256, 256), as ints of at least `least`."""
    ordered = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | Set)
    if not ordered or is_traced(values) or getattr(values, "ndim", 1) != 1:
        alone = f": write ({values},)" if isinstance(values, int) and not isinstance(values, bool) else ""
        raise TypeError(f"`{name}` must be a tuple such as (256, 256); got {shown(values)}{alone}.")
    return tuple(whole(value, name, least) for value in values)


def sizes(value: Unchecked, name: str) -> tuple[int, ...]:
    """The same from one number or several: 3 is (3,)."""
    return wholes((value,) if isinstance(value, numbers.Integral) else value, name)


def listed(values: Unchecked, name: str, example: str) -> list:
    """`values`, an ordered sequence of objects such as `example`, as a list."""
    ordered = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | Set)
    if not ordered or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"`{name}` must be a list such as {example}; got {shown(values)}.")
    return list(values)


def truth(value: object, name: str) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False; got {shown(value)}.")
    return bool(value)


def refuse_unused(where: str, **given: object) -> None:
    """Raises if an argument is given that has no effect there: who passes it expects one."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"`{name}` has no effect {where}: leave it out.")


def instance(value: object, name: str, kind: type[_T]) -> _T:
    """`value` if it is an object of the class `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be an object of the class {kind.__name__}; got {shown(value)}.")
    return value


def one_of(value: object, name: str, choices: Sequence[str]) -> str:
    """`value` if it is one of `choices`; suggests the nearest otherwise."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(
        f"`{name}` must be one of {', '.join(map(repr, choices))}; got {shown(value)}.{nearest(value, choices)}"
    )


def plain_array(value: object, name: str) -> np.ndarray:
    """`value` as a NumPy array of any type; raises if information would be lost, such as a mask."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"`{name}` is traced by jit, grad or vmap, but its values are needed here: call this outside them."
        )
    if hasattr(value, "toarray"):
        raise TypeError(f"`{name}` is a sparse matrix; pass `{name}.toarray()`.")
    require_unmasked(value, name)
    try:
        if hasattr(value, "to_numpy"):  # a data frame
            value = value.to_numpy()
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"`{name}` must be a rectangular array; its rows have different lengths.") from None
    except Exception:  # whatever an object does that is no array
        raise TypeError(f"`{name}` must be an array of numbers; got {shown(value)}.") from None


def require_unmasked(value: object, name: str) -> None:
    """Raises if values are masked: a mask is lost on the way to a plain array, and what it hid is computed with."""
    parts = value if isinstance(value, list | tuple) else (value,)
    masked = sum(int(np.ma.count_masked(part)) for part in parts if isinstance(part, np.ma.MaskedArray))
    if masked:
        raise ValueError(
            f"`{name}` is a masked array with {masked} masked value{'s' * (masked > 1)}: leave those rows out, or fill "
            f"them, e.g. `{name}.filled(0.0)`."
        )


def numeric(value: object, name: str, advice: str = "remove or impute") -> np.ndarray:
    """`value` as a finite float64 array."""
    raw = plain_array(value, name)
    if raw.dtype.kind == "O":
        raw = _numbers_of_objects(raw, name)
    if raw.dtype.kind in "USMmV":
        sample = raw.ravel()[0] if raw.size else ""
        raise TypeError(
            f"`{name}` must hold numbers; got values such as {shown(str(sample))}: encode them first."
        )
    if raw.dtype.kind == "c":
        raise TypeError(f"`{name}` must be real; got complex numbers.")
    array = np.asarray(raw, dtype=np.float64)
    largest = max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    if largest <= LARGEST:  # false for NaN
        return array
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"`{name}` holds {bad} NaN or infinite value{'s' * (bad > 1)}, "
            f"the first at index {where}: {advice}."
        )
    raise ValueError(
        f"`{name}` holds values up to {largest:.3g}, whose squares overflow: scale it towards 1."
    )


def finite_result(found: _T, names: str) -> _T:
    """`found`, refused if a number overflowed on the way to it; `names` are the arguments that were too large."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found)):
        raise ValueError(f"{names} too large: the result overflows. Scale towards 1.")
    return found


def _numbers_of_objects(raw: np.ndarray, name: str) -> np.ndarray:
    """Python objects as float64; names the first that is not a number."""
    try:
        return raw.astype(np.float64)
    except OverflowError:
        raise ValueError(f"`{name}` holds a number beyond 1.8e308, the largest float: rescale.") from None
    except Exception:  # whatever such an object does
        wrong = next((each for each in raw.ravel() if not isinstance(each, numbers.Real)), raw.ravel()[0])
        raise TypeError(
            f"`{name}` must hold numbers; got values such as {shown(str(wrong))}: encode them first."
        ) from None


def class_names(labels: object, n: int, name: str = "labels") -> np.ndarray:
    """(n,) labels of any type that can be compared; refuses missing ones."""
    array = plain_array(labels, name)
    if array.shape != (n,):
        raise ValueError(f"`{name}` must have shape ({n},), one class per point; got {array.shape}.")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise ValueError(f"`{name}` contains NaN or infinite values: every point needs a class.")
    if array.dtype.kind == "O" and not (
        all(isinstance(each, str) for each in array) or all(isinstance(each, numbers.Real) for each in array)
    ):
        raise TypeError(f"`{name}` must all be numbers or all be texts; got {shown(array.tolist())}.")
    return array


def called(function: Callable, call: str, *arguments: object) -> PyTree:
    """What a JAX function of the user returns for traced `arguments`; `call` is how it is called, e.g. "loss(z, y)"."""
    name = call.partition("(")[0]
    with contextlib.suppress(ValueError):  # of a function that does not tell its arguments
        try:
            inspect.signature(function).bind(*arguments)
        except TypeError as error:
            raise TypeError(
                f"`{name}` must be a JAX function {call}; got {shown(function)}: {error}."
            ) from None
    try:
        return function(*arguments)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, ValueError) as error:
        if isinstance(error, ValueError) and "truth value" not in str(error):
            raise
        raise TypeError(
            f"`{name}` must be written with jax.numpy (and without `if` on values), not NumPy."
        ) from None


def one_real(function: Callable, call: str, *arguments: object) -> jax.Array:
    """The one number that a JAX function of the user returns."""
    name = call.partition("(")[0]
    try:
        value = called(function, call, *arguments)
    except Exception as error:  # whatever its own code does
        if f"`{name}`" in str(error):
            raise
        raise ValueError(f"`{name}` fails: {type(error).__name__}: {' '.join(str(error).split())}") from error
    array = array_of(value, call, "one real number")
    if array.shape:
        raise TypeError(f"`{call}` must return one real number; it returns an array of shape {array.shape}.")
    return array


def observed(observable: Callable, params: Params) -> object:
    """The array or the tree of arrays that the user's function `observable` returns."""
    value = called(observable, "observable(params)", params)
    leaves = jax.tree.leaves(value)
    with contextlib.suppress(TypeError, ValueError):  # lists of different lengths
        # JAX takes text for the name of a dtype.
        if leaves and not any(isinstance(leaf, str | bytes) for leaf in leaves):
            return jax.tree.map(jnp.asarray, value)
    raise TypeError(f"`observable` must return an array or a tree of arrays; got {shown(value)}.")


def array_of(found: object, what: str, wanted: str = "an array of real numbers") -> jax.Array:
    """What a function of the user returned, as a JAX array of real numbers."""
    try:
        array = jnp.asarray(None if isinstance(found, str | bytes) else found)  # JAX takes text for a dtype
        if jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer):
            return array
    except (TypeError, ValueError):  # text, None, lists of different lengths
        pass
    raise TypeError(f"`{what}` must return {wanted}; it returns {shown(found)}.")


def inputs(x: object, name: str = "x", dim: "int | tuple[int, ...] | None" = None) -> np.ndarray:
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


def targets(y: object, n: int, name: str = "y", x_name: str = "x", out: int | None = None) -> np.ndarray:
    """(n, out) targets; a vector becomes one column."""
    array = numeric(y, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"`{name}` must have shape (n,) or (n, out); got {array.shape}.")
    if len(array) != n:
        raise ValueError(
            f"`{x_name}` and `{name}` must have the same number of rows; got {n} and {len(array)}."
        )
    if array.size == 0:
        raise ValueError(f"`{name}` is empty: shape {array.shape}.")
    columns = array.reshape(n, -1)
    if out is not None and columns.shape[1] != out:
        raise ValueError(f"`{name}` has {columns.shape[1]} outputs per row; the model has {out}.")
    return columns
