"""Experiments and claims as data from which a page makes its words, formulas and controls."""

import math
import re
from typing import Any

from .._base.settings import Setting
from .._look.mathml import typeset
from .experiment import Experiment, Preset
from .experiment_list import group

_QUAD = re.compile(r"\s*\\q?quad\s*")  # where a formula may be broken on a narrow screen
_A_LINE = 500  # characters that a box of one line is for; text that may be longer is a table


def about(experiment: type[Experiment]) -> dict[str, Any]:
    return {
        "name": experiment.name(),
        "group": group(experiment.name()),
        "title": experiment.title,
        "menu": experiment.menu or experiment.title,
        "about": experiment.about,
        "formulas": [
            typeset(part, "block") for formula in experiment.formulas for part in _QUAD.split(formula)
        ],
        "button": experiment.button,
        "presets": [preset(experiment, each) for each in experiment.presets],
        "movie": experiment.movie,
        "controls": [control(each) for each in experiment.settings()],
    }


def preset(experiment: type[Experiment], each: Preset) -> dict[str, object]:
    """What a page needs to offer a preset: its settings as they are typed."""
    known = {found.name: found for found in experiment.settings()}
    typed = {name: known[name].typed(known[name].checked(value)) for name, value in each.settings.items()}
    return {"title": each.title, "settings": typed, "see": each.see}


def control(each: Setting) -> dict[str, object]:
    """What a page needs to show a setting."""
    word = "choice" if each.choices else "table" if _A_LINE < each.high < math.inf else "text"
    kind = {int: "whole", float: "number", tuple: "points"}.get(each.kind, word)
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
