"""float64 without touching the host program: every public entry opens its own 64-bit context.

`jax.enable_x64` is thread-local and keys JAX's compilation cache, so a program that runs JAX in float32
beside this library sees no difference; `precision` is a key of that cache, too.

One rule says which types a call computes in:

- Outside of a caller's `jit`: `nk.precision`, float64 by default. Arrays of JAX keep their type; where types meet, the
  wider one wins.
- Inside of a caller's `jit`: JAX's own setting. With 64-bit types off, everything is float32, whatever comes in:
  64 bits in such a program fail as soon as it is differentiated, or draws numbers.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

import jax
import numpy as np

from .._base.types import PyTree

_F = TypeVar("_F", bound=Callable)
_DTYPE: contextvars.ContextVar[str] = contextvars.ContextVar("nearkernel_dtype", default="float64")
_CONSTANT = np.zeros((), np.float32)
_KEYED = jax.make_user_context("float64")  # a program compiled in one precision does not serve another


@contextlib.contextmanager
def precision(dtype: str) -> Iterator[None]:
    """A context manager: computes kernels in `dtype`, "float64" (the default) or "float32", and draws and trains in it.

    `nk.simulate` casts parameters and data to `dtype`, and the trained parameters are of that type. Factorizations
    stay in float64: in float32 a kernel matrix of fifty points is already singular.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f'`dtype` must be "float64" or "float32"; got {dtype!r}.')
    token = _DTYPE.set(dtype)
    try:
        with _KEYED(dtype):
            yield
    finally:
        _DTYPE.reset(token)


def working_dtype() -> np.dtype:
    """The dtype that concrete (not traced) arrays are computed in."""
    return np.dtype(_DTYPE.get())


def in_float64(function: _F) -> _F:
    """Run `function` with 64-bit JAX types allowed, unless a caller's `jit` without them is tracing."""
    return _run(function, lambda args, kwargs: _staging())


def drawing(function: _F) -> _F:
    """As `in_float64`; but in float32 also inside of `vmap` and `grad`, so that the same numbers are drawn there."""
    return _run(function, lambda args, kwargs: is_traced(args, kwargs) or _staging())


def _run(function: _F, inside: Callable[[tuple, dict], bool]) -> _F:
    @functools.wraps(function)
    def wrapped(*args: object, **kwargs: object) -> object:
        if jax.config.jax_enable_x64 or not inside(args, kwargs):  # type: ignore[attr-defined]
            with jax.enable_x64(True):
                return function(*args, **kwargs)
        args, kwargs = jax.tree.map(_narrowed, (args, kwargs))
        with precision("float32"):
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def _staging() -> bool:
    """Whether a `jit`, or a loop of JAX's, is tracing: even constants are then part of its program."""
    return is_traced(jax.device_put(_CONSTANT))  # which compiles nothing


def _narrowed(leaf: PyTree) -> PyTree:
    return leaf.astype(np.float32) if isinstance(leaf, jax.Array) and leaf.dtype == np.float64 else leaf


def is_traced(*trees: PyTree) -> bool:
    """Whether any leaf is being traced by the caller's `jit`, `grad` or `vmap`."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


class Portable:
    """Copied and pickled with NumPy arrays: float64 JAX arrays would come back as float32 where 64 bits are off."""

    def __getstate__(self) -> dict[str, object]:
        return jax.tree.map(_as_numpy, vars(self))


def _as_numpy(leaf: PyTree) -> PyTree:
    concrete = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
    return np.array(leaf) if concrete and leaf.dtype == np.float64 else leaf
