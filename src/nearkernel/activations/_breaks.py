"""Where derivatives of an elementwise function jump, and the function and its slope for NumPy arrays."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._panels import cached_panels

_PIECES = (1024, 16_384, 262_144)  # of arrays given to compiled functions
_REACH = 16.0  # breaks are looked for between -_REACH and _REACH
_NARROW = 1e-3  # panels below this are those of a break, or of a feature as narrow
_DERIVATIVES = 3  # whose slopes may jump: the fourth is the last that is looked at
_BESIDE = 1e-7  # from a break, where slopes are compared
_JUMP = 1e-3  # of the slope, relative to the largest


class Breaks(NamedTuple):
    """Places, ascending: `every`, where some derivative jumps; `of_slope`, those where the first one does."""

    every: tuple[float, ...]
    of_slope: tuple[float, ...]


@functools.lru_cache(maxsize=128)
def breaks_of(function: Callable) -> Breaks:
    """Found by evaluating `function`, elementwise and traceable by JAX, between -16 and 16.

    Panels show a jump of a function and of its slope; those of a higher derivative only as narrow panels.
    """
    places = cached_panels(on_numpy(function), _REACH, "activation")
    every, derivative = set(_rounded(places.kinks)), function
    if places.narrowest < _NARROW:
        for _ in range(_DERIVATIVES):
            derivative = slope_of(derivative)
            try:
                every |= set(_rounded(cached_panels(on_numpy(derivative), _REACH, "activation").kinks))
            except ValueError:  # a narrow feature, drowned in its own rounding errors: no jump was seen
                break
    found = np.array(sorted(every))
    slope = on_numpy(slope_of(function))
    beside = _BESIDE * np.maximum(1.0, np.abs(found))
    jump = np.abs(slope(found + beside) - slope(found - beside))
    largest = np.abs(slope(np.linspace(-5.0, 5.0, 101))).max()
    return Breaks(tuple(found.tolist()), tuple(found[jump > _JUMP * largest].tolist()))


def _rounded(places: np.ndarray) -> list[float]:
    """As exact as places are found; without -0.0."""
    return (np.round(places, 7) + 0.0).tolist()


@functools.lru_cache(maxsize=128)
def slope_of(function: Callable) -> Callable:
    """The elementwise derivative, the same object each time: `on_numpy` compiles it once."""
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


@functools.lru_cache(maxsize=128)
def on_numpy(function: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """`function`, elementwise, for float64 NumPy arrays: in pieces of three sizes, so that it is compiled thrice."""
    compiled = jax.jit(function)

    def run(z: np.ndarray) -> np.ndarray:
        flat = np.ravel(z)
        piece = max(
            (size for size in _PIECES if size <= flat.size), default=_PIECES[0]
        )  # pads less than half
        padded = np.zeros(piece * max(1, -(-flat.size // piece)))
        padded[: flat.size] = flat
        with jax.enable_x64(True), jax.ensure_compile_time_eval():  # also while a caller is being traced
            found = [np.asarray(compiled(part)) for part in padded.reshape(-1, piece)]
        return np.concatenate(found)[: flat.size].reshape(np.shape(z))

    return run
