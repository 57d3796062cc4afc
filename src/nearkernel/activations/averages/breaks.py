"""Where derivatives of an elementwise function jump."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .on_numpy import on_numpy, slope_of
from .panels import cached_panels

_REACH = 16.0  # breaks are looked for between -_REACH and _REACH
_NARROW = 1e-3  # panels below this are those of a break, or of a feature as narrow
_DERIVATIVES = 3  # whose slopes may jump: the fourth is the last that is looked at
_SAME = 2e-8  # two places that are one, found with different errors
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
    every, derivative = [places.kinks], function
    if places.narrowest < _NARROW:
        for _ in range(_DERIVATIVES):
            derivative = slope_of(derivative)
            try:
                every.append(cached_panels(on_numpy(derivative), _REACH, "activation").kinks)
            except ValueError:  # a narrow feature, drowned in its own rounding errors: no jump was seen
                break
    ascending = _distinct(np.sort(np.concatenate(every)))
    slope = on_numpy(slope_of(function))
    beside = _BESIDE * np.maximum(1.0, np.abs(ascending))
    jump = np.abs(slope(ascending + beside) - slope(ascending - beside))
    largest = np.abs(slope(np.linspace(-5.0, 5.0, 101))).max()
    return Breaks(tuple(ascending.tolist()), tuple(ascending[jump > _JUMP * largest].tolist()))


def _distinct(places: np.ndarray) -> np.ndarray:
    """Each of ascending `places` once, and exactly where it is a round number; without -0.0."""
    round_ = np.round(places, 7)
    places = np.where(np.abs(places - round_) < _SAME, round_, places) + 0.0
    return places[np.diff(places, prepend=-np.inf) > _SAME]
