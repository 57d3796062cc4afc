"""What was typed, checked."""

from __future__ import annotations

import math
from typing import Any

import nearkernel as nk

from ...forecasts.theory_ladder import Settings

_KINKED = "its slope jumps, and orders 1 and 2 would miss neurons that cross a kink"


def settings(activation: str, alphas: str, widths: str, alpha: float, tol: float, **others: Any) -> Settings:
    """`alphas` and `widths` as numbers separated by commas; `others` are fields of `Settings`."""
    try:
        net = nk.MLP(1, (1,), activation=activation)
    except ValueError as error:
        raise ValueError(str(error).replace("`activation`", "--activation")) from error
    if nk.theory.has_kinks(net):
        raise ValueError(f"--activation {activation}: {_KINKED}; give a smooth one, e.g. gelu.")
    for name, value in (("alpha", alpha), ("tol", tol)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"--{name} {value}: give a number above 0.")
    scales = _numbers("alphas", alphas, float)
    sizes = _numbers("widths", widths, int)
    if not scales and not sizes:
        raise ValueError("--alphas and --widths are both empty: give at least one value.")
    return Settings(
        activation=activation, alphas=tuple(scales), widths=tuple(sizes), alpha=alpha, tol=tol, **others
    )


def _numbers(name: str, text: str, kind: type) -> list:
    """Numbers above 0, separated by commas, in rising order."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            value = kind(part)
        except ValueError:
            value = 0
        if not (math.isfinite(value) and value > 0):
            what = "integers" if kind is int else "numbers"
            raise ValueError(f"--{name} {text}: give {what} above 0, separated by commas; got {part!r}.")
        found.append(value)
    return sorted(set(found))
