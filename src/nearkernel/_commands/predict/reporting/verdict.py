"""The outcome in a sentence or two, and what to type next."""

from __future__ import annotations

import shlex

import numpy as np

from ...streams import command_line
from ..auto import NAME as AUTO
from ..baselines import name_of
from ..job import PredictionRun
from ..options import Options
from ..reading.columns import HEADLINE, for_people, shown
from ..reading.prepare import Split
from ..scores import Score

_SIGMAS = 2.0  # by which a method must beat the baseline
_RANKS = 0.6  # AUC from which a ranking is of use


def headline(run: PredictionRun) -> str:
    """How good the headline method is, beside the baseline."""
    auto, plain = run.named(AUTO), run.named(name_of(run.data))
    if auto.details.get("balanced"):
        return (
            f"Auto finds {shown(auto, 'balanced_accuracy', run.data.task)} of the rows of a class, averaged over "
            f"classes; guessing finds {100 / len(run.data.classes):.0f}\u00a0%."
        )
    key = "error" if run.data.classes else "mae"
    ours, theirs = (_short(shown(each, key, run.data.task)) for each in (auto, plain))
    if run.data.classes:
        return f"Auto errs on {ours} of new rows; always answering {str(plain.details['answer'])!r} errs on {theirs}."
    r2 = auto.figures["r2"]
    explained = "" if not isinstance(r2, float) else f" and explains {100 * r2:.0f}\u00a0% of its variance"
    return (
        f"Auto misses {run.data.target} by {ours} on average{explained}; always answering "
        f"{for_people(plain.details['answer'])} misses it by {theirs}."
    )


def verdict(run: PredictionRun) -> str:
    """Whether anything beats the baseline, by two standard errors of the difference on the test rows."""
    if run.named(AUTO).details.get("balanced"):
        return "With --balanced, errors of rare classes count as much as those of frequent ones: more false alarms."
    baseline = run.named(name_of(run.data))
    others = [each for each in run.answers if each.name != baseline.name]
    key = HEADLINE[run.data.task]
    value = {each.name: figure.value for each in others if isinstance(figure := each.figures[key], Score)}
    best = min(value, key=lambda name: value[name])
    reached, plain = run.named(best).figures[key], baseline.figures[key]
    assert isinstance(reached, Score) and isinstance(plain, Score)
    name = "the most frequent class" if run.data.classes else "the mean"
    if plain.value - reached.value < _SIGMAS * np.nan_to_num(max(reached.sem, plain.sem)) / np.sqrt(2):
        text = f"Nothing here beats {name} beyond chance: these columns say little about {run.data.target}."
        auc = run.named(AUTO).figures.get("auc")
        if isinstance(auc, float) and auc > _RANKS:
            text = (
                f"No answer beats {name} beyond chance, but the ranking is of use (AUC {auc:.2f}): sort rows by their "
                "probability, or answer with --balanced."
            )
        return text
    if best == AUTO:
        return f"Auto is the best of {len(others)} methods on the test rows."
    chance = "within chance" if value[AUTO] - value[best] < reached.sem else "beyond chance"
    return f"{best} is the best of {len(others)} methods on the test rows, {chance} of Auto."


def next_commands(options: Options, run: PredictionRun) -> list[str]:
    """What to type now, each with what it is for."""
    lines = []
    if run.leaks:
        drop = shlex.join(word for leak in run.leaks for word in ("--drop", leak.column))
        lines.append(f"{command_line()} {drop}   # if not known at prediction time")
    if options.save is None:
        lines.append(f"{command_line()} --save model.nk   # keep the model")
    elif run.data.image_shape is None:
        lines.append(f"nearkernel apply {shlex.quote(str(options.save))} new.csv   # predict new rows")
    else:
        lines.append(f"nearkernel apply {shlex.quote(str(options.save))} new.npz   # predict new images")
    if options.curve:
        return lines
    same = [options.data, *([] if options.target is None else ["--target", options.target])]
    same += [word for name in (*options.drop, *options.other_targets) for word in ("--drop", name)]
    lines.append(f"nearkernel curve {shlex.join(same)} --tune --out curve   # would more rows help?")
    return lines


def rows_in_words(split: Split) -> str:
    return f"{len(split.trained):,} rows to learn from, {len(split.x_new):,} to test"


def _short(text: str) -> str:
    """A figure without its error."""
    value, _, rest = text.partition(" ±")
    return f"{value}\u00a0%" if rest.endswith("%") else value
