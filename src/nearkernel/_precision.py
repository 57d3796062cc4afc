"""float64 without touching the host program: every public entry opens its own 64-bit context.

`jax.enable_x64` is thread-local and keys JAX's compilation cache, so a program that runs JAX in float32
beside this library sees no difference. Inside the caller's own `jit`, `grad` or `vmap` the arrays are
tracers; their dtype is the caller's choice and is kept.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])
_DTYPE: contextvars.ContextVar[str] = contextvars.ContextVar("nearkernel_dtype", default="float64")


@contextlib.contextmanager
def precision(dtype: str) -> Iterator[None]:
    """A context manager: computes kernels and new parameters in `dtype`, "float64" (the default) or "float32".

    Factorizations stay in float64: in float32 a kernel matrix of fifty points is already singular.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f'`dtype` must be "float64" or "float32"; got {dtype!r}.')
    token = _DTYPE.set(dtype)
    try:
        yield
    finally:
        _DTYPE.reset(token)


def working_dtype() -> np.dtype:
    """The dtype that concrete (not traced) arrays are computed in."""
    return np.dtype(_DTYPE.get())


def in_float64(function: _F) -> _F:
    """Run `function` with 64-bit JAX types allowed, whatever the host program's global setting is."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def drawing(function: _F) -> _F:
    """As `in_float64`; but in float32 if a float32 program is tracing, where JAX cannot draw 64-bit numbers."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_traced(args, kwargs) and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            with precision("float32"):
                return function(*args, **kwargs)
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def is_traced(*trees: Any) -> bool:
    """Whether any leaf is being traced by the caller's `jit`, `grad` or `vmap`."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


class Portable:
    """Copied and pickled with NumPy arrays: float64 JAX arrays would come back as float32 where 64 bits are off."""

    def __getstate__(self) -> dict[str, Any]:
        return jax.tree.map(_as_numpy, vars(self))


def _as_numpy(leaf: Any) -> Any:
    concrete = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
    return np.array(leaf) if concrete and leaf.dtype == np.float64 else leaf
