"""Experiments and claims as data from which a page makes its words, formulas and controls."""

import functools
import math
from typing import Any

from latex2mathml.converter import convert

from .._settings import Setting
from ._experiment import Experiment


@functools.cache
def typeset(formula: str) -> str:
    """MathML, which browsers show by themselves."""
    return convert(formula, display="block")


def about(experiment: type[Experiment]) -> dict[str, Any]:
    return {
        "name": experiment.name(),
        "title": experiment.title,
        "about": experiment.about,
        "formulas": [typeset(formula) for formula in experiment.formulas],
        "button": experiment.button,
        "controls": [control(each) for each in experiment.settings()],
    }


def control(each: Setting) -> dict[str, Any]:
    """What a page needs to show a setting."""
    kind = {int: "whole", float: "number", tuple: "points"}.get(
        each.kind, "choice" if each.choices else "text"
    )
    low, high = (None if math.isinf(bound) else bound for bound in (each.low, each.high))
    return {
        "name": each.name,
        "kind": kind,
        "default": each.typed(each.default),
        "low": low,
        "high": high,
        "log": each.log or (each.low > 0 and each.high >= 1000 * each.low),
        "choices": list(each.choices),
        "help": each.help,
    }
