"""The inspection in words, for the terminal and the report alike."""

from __future__ import annotations

import math

import numpy as np

from ...results import Inspection, Verdict
from .options import Options
from .rows import Rows

CURVE_HEAD = ("step", "predicted loss", "self-check", "verdict")
WITHHELD = f"withheld, since the verdict is {Verdict.distrust.value!r}"


def headline(result: Inspection) -> str:
    advice = ": train the network, or use --pieces" if result.verdict is Verdict.distrust else ""
    return f"{result.verdict.value.capitalize()}: {result.verdict.promise}{advice}."


def promises(result: Inspection) -> list[str]:
    """What each verdict of the table is worth."""
    return [f"{each.value!r}: {each.promise}." for each in Verdict if each in result.verdicts]


def accuracy(rows: Rows, result: Inspection) -> float | None:
    """The share of the new rows that is classified correctly, unless the verdict forbids it."""
    if rows.labels is None or result.prediction is None or result.verdict is Verdict.distrust:
        return None
    return float((result.prediction.argmax(1) == rows.labels).mean())


def training(options: Options, result: Inspection) -> str:
    loss = options.loss.replace("_", "-")
    steps = int(result.algorithm.steps)
    return f"{steps} steps of full-batch gradient descent, lr {result.algorithm.lr:.4g}, {loss} loss summed over rows"


def network(options: Options, rows: Rows, result: Inspection) -> str:
    kinks = "; it has kinks, which the linearization ignores" if result.kinked else ""
    if result.kinked is None:
        kinks = "; whether it has kinks is not known"
    return (
        f"{options.network} on {rows.name}: {len(rows.x)} training rows, {len(rows.x_new)} new ones; "
        f"{result.parameters} parameters train{kinks}"
    )


def outcome(rows: Rows, result: Inspection) -> list[str]:
    lines = [
        f"Loss from {result.loss_before:.4g} to {result.loss[-1]:.4g}; self-check at the end {result.check[-1]:.2g}.",
        f"Verdict 'trust' up to step {result.trusted_until:g}."
        if result.trusted_until
        else "No step has the verdict 'trust'.",
    ]
    if rows.labels is not None:
        right = accuracy(rows, result)
        told = WITHHELD if right is None else f"{100 * right:.0f} % ({result.verdict.value})"
        lines.append(f"Predicted accuracy on the new rows: {told}.")
    lines.append(f"Regime: {regime(result)}.")
    if math.isfinite(result.unstable_at):
        lines.append(
            f"At step {result.unstable_at:g} the learning rate exceeds 2/lambda_max of the kernel there: the linear "
            "theory is unstable from then on."
        )
    if len(result.expanded_at) > 1:
        lines.append(f"Linearized at steps {', '.join(f'{at:g}' for at in result.expanded_at)}.")
    return lines


def regime(result: Inspection) -> str:
    """By the self-check, with the richness where it is known."""
    which = result.regime
    known = "" if which.strength is None else f", richness times targets {which.strength:.2g}"
    return f"{which.name} (self-check {result.check[-1]:.2g}{known}): {which.meaning}"


def curve(result: Inspection) -> list[tuple[str, ...]]:
    return [
        (f"{moment:g}", f"{loss:.4g}", f"{check:.2g}", verdict.value)
        for moment, loss, check, verdict in zip(
            result.moments, result.loss, result.check, result.verdicts, strict=True
        )
    ]


def kernel(result: Inspection) -> list[str]:
    total = len(result.eigenvalues)
    shares = np.cumsum(result.alignment)
    several = [k for k in (1, 10, 100) if k < total]
    parts = ", ".join(f"{100 * shares[k - 1]:.0f} % along the first {k}" for k in several)
    lines = [
        f"Largest eigenvalue {result.eigenvalues[0]:.4g}, effective dimension {result.effective_dimension:.3g} "
        f"of {total}."
    ]
    return [*lines, f"Of the initial residual, {parts}."] if parts else lines


def learned(rows: Rows, result: Inspection) -> list[str]:
    """When training rows are learned, by class, unless the verdict forbids it."""
    if result.verdict is Verdict.distrust:
        return [f"When the residuals of training rows are halved: {WITHHELD}."]
    at = lambda part: f"step {np.median(part):g}" if np.isfinite(np.median(part)) else "not by the end"
    lines = [
        f"Residual of a training row at half of its size (median): {at(result.halfway)} ({result.verdict.value})."
    ]
    if rows.classes:
        which = rows.y.argmax(1)
        groups = {
            name: result.halfway[which == k] for k, name in enumerate(rows.classes) if (which == k).any()
        }
        ordered = sorted(groups, key=lambda name: np.median(groups[name]))
        lines.append("By class: " + ", ".join(f"{name} {at(groups[name])}" for name in ordered) + ".")
    return lines


def cost(result: Inspection) -> str:
    return (
        f"The inspection took {result.seconds:.2g} s; training takes about {result.training_seconds:.2g} s, "
        "without compilation."
    )


def others(rows: Rows, result: Inspection) -> list[tuple[str, list[str]]]:
    """Further chapters, by title."""
    return [
        ("Tangent kernel", kernel(result)),
        ("Order of learning", learned(rows, result)),
        ("Cost", [cost(result)]),
    ]
