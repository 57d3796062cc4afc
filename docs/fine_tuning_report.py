"""The table and the figure of the study: what was predicted, how far it was off, and what the verdicts were worth."""

from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from nearkernel._look.drawing import BLUE, GRAY, ORANGE, png_and_svg
from nearkernel.dynamics.inspection.verdict import CARE, PROMISED, TRUST
from nearkernel.results import Verdict

HERE = Path(__file__).parent
GUIDE = HERE / "guides" / "before-you-fine-tune.md"
STUDY, PRICE = "study", "price"  # parts of the guide
KINDS = {"one": "linearized once", "several": "linearized up to {pieces} times"}
STARTS = ("from scratch", "fine-tuned")


def write(rows, seeds, steps, pieces):
    """Networks of the first `seeds` make the tables and the figure; the verdicts are tried on the others, too."""
    names = {kind: words.format(pieces=pieces) for kind, words in KINDS.items()}
    first, fresh = [[row for row in rows if (row["seed"] < seeds) is known] for known in (True, False)]
    replace(STUDY, [*outcomes(first, names, steps), *verdicts(first, fresh, names)])
    png, _ = png_and_svg((9.5, 4.2), paint, first, names)
    (HERE / "figures" / "fine_tuning.png").write_bytes(png)


def write_price(rows, steps, pieces):
    """What linearizing again costs, and what it gains late in training."""
    names = {kind: words.format(pieces=pieces) for kind, words in KINDS.items()}
    told = "Gains late in training, and prices, on networks of the [study below](#how-often-the-verdicts-are-right):"
    command = "`python docs/fine_tuning_study.py --price`"
    replace(PRICE, ["", told, *late_curve(rows, names, steps), *seconds(rows, names, steps), "", command])


def replace(part, lines):
    """Puts `lines` between the marks of a part of the guide."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    text = GUIDE.read_text(encoding="utf-8")
    inside = "\n".join([begin, *lines, "", end])
    GUIDE.write_text(text.split(begin)[0] + inside + text.split(end)[1], encoding="utf-8")


def percent(values):
    """Median and the worst tenth."""
    values = np.nan_to_num(np.asarray(values, dtype=float), nan=np.inf)
    shown = lambda value: f"{100 * value:.0f} %" if value < 10 else "> 1000 %"
    return f"{shown(np.median(values))} ({shown(np.quantile(values, 0.9, method='higher'))})"


def outcomes(rows, names, steps):
    head = (
        "start",
        "loss",
        "prediction",
        "self-check",
        "outputs",
        "loss curve",
        "labels agree",
        "SGD",
        "Adam",
    )
    lines = ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for start in STARTS:
        for loss in ("squared", "cross_entropy"):
            for kind, name in names.items():
                found = [row[kind] for row in rows if row["start"] == start and row["loss"] == loss]
                cells = (
                    start,
                    loss.replace("_", "-"),
                    name,
                    f"{np.median([each['check'][-1] for each in found]):.2f}",
                    percent([each["error"][-1] for each in found]),
                    percent([max(each["loss_error"]) for each in found]),
                    f"{100 * np.mean([each['labels'] for each in found]):.0f} %",
                    percent([each["sgd"] for each in found]),
                    percent([each["adam"] for each in found]),
                )
                lines.append(f"| {' | '.join(cells)} |")
    diverged = sum(not np.isfinite(row["one"]["error"][-1]) for row in rows)
    early = percent([row["early"] for row in rows])
    halfway = {
        start: np.nanmedian([row["one"]["halfway"] for row in rows if row["start"] == start])
        for start in STARTS
    }
    lines += [
        "",
        f"After {steps} steps, on images that were not trained on; medians over 25 networks each, in parentheses "
        "the value that nine in ten stay below. *Outputs*: the distance of predicted and trained outputs, as a share "
        "of the distance that training moved them. *Loss curve*: the largest error on the way, as a share of the "
        "initial loss. *SGD* (half the rate, batches of 10) and *Adam* (when its loss is nearest to the predicted "
        "one): outputs again, of networks trained so.",
        "",
        f"- At this rate, gradient descent on {diverged} of the {len(rows)} networks diverged; their predictions "
        "count as wrong by more than 1000 %.",
        f"- In the first five steps the loss was off by {early} of its initial value.",
        "- Which training images are learned first, by the steps at which residuals are halved: rank correlation "
        + ", ".join(f"{value:.2f} {start}" for start, value in halfway.items())
        + ".",
    ]
    return lines


def late_curve(rows, names, steps):
    head = (
        "start",
        "loss",
        "prediction",
        "linearized",
        "self-check",
        "loss, first half",
        "loss, second half",
    )
    lines = ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for start in STARTS:
        for loss in ("squared", "cross_entropy"):
            for kind, name in names.items():
                found = [row[kind] for row in rows if row["start"] == start and row["loss"] == loss]
                parts = [np.array(each["moments"]) > steps / 2 for each in found]
                worst = lambda late, found=found, parts=parts: percent(
                    [
                        np.array(each["loss_error"])[part == late].max()
                        for each, part in zip(found, parts, strict=True)
                    ]
                )
                cells = (
                    start,
                    loss.replace("_", "-"),
                    name,
                    f"{np.mean([each['expanded'] for each in found]):.1f} times",
                    f"{np.median([each['check'][-1] for each in found]):.2f}",
                    worst(False),
                    worst(True),
                )
                lines.append(f"| {' | '.join(cells)} |")
    seeds = len({row["seed"] for row in rows})
    return [
        *lines,
        "",
        f"Medians over five architectures and {seeds} seeds, in parentheses the value that nine in ten stay below. "
        f"*Loss*: the largest error of the predicted loss in steps 1 to {steps // 2} and after them, as a share of the "
        "initial loss.",
    ]


def seconds(rows, names, steps):
    """Of inspections and of training, without the first runs, which compile."""
    warm = [row for row in rows if row["seed"] > min(each["seed"] for each in rows)]
    head = ("network", f"training, {steps} steps", *names.values(), "of one step", "prices, in trainings")
    lines = ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name in dict.fromkeys(row["network"] for row in warm):
        here = [row for row in warm if row["network"] == name]
        once, several = (np.median([row["seconds"][k] for row in here]) for k in (0, 1))
        step = np.median([row["step"] for row in here])
        cells = (
            name,
            f"{steps * step:.2f} s",
            f"{once:.2f} s",
            f"{several:.2f} s",
            f"{1000 * step:.1f} ms",
            f"{once / (steps * step):.1f}, {several / (steps * step):.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "Seconds of one inspection at 30 images with 5 outputs each, and of training by full-batch gradient descent, "
        "on two cores in float64, compiled before; medians. Other programs shared the machine.",
    ]


def points(rows, kind, start=None):
    """Self-checks and output errors of all networks at all moments."""
    chosen = [row[kind] for row in rows if start in (None, row["start"])]
    pairs = [pair for each in chosen for pair in zip(each["check"], each["error"], strict=True)]
    return np.nan_to_num(np.array(pairs, dtype=float), nan=np.inf, posinf=np.inf).T


def verdicts(rows, fresh, names):
    head = ("prediction", "verdict", "how often", "output error", "promised", "kept", "kept, fresh networks")
    lines = ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    ranks = []
    for kind, name in names.items():
        checks, errors = points(rows, kind)
        said = np.array([Verdict.of(check) for check in checks])
        ranks.append(f"{spearmanr(checks, errors)[0]:.2f} {name}")
        for verdict in Verdict:
            here = errors[said == verdict]
            if not len(here):
                continue
            limit = PROMISED.get(verdict)
            promised = f"at most {limit}" if limit else "nothing"
            kept = f"{100 * np.mean(here <= limit):.0f} %" if limit else ""
            again = kept_by(fresh, kind, verdict, limit) if limit else ""
            often = f"{100 * len(here) / len(errors):.0f} %"
            lines.append(
                f"| {name} | {verdict.value} | {often} | {percent(here)} | {promised} | {kept} | {again} |"
            )
    lines += [
        "",
        "The limits of the self-check were set before the study. The promised errors were chosen with part of these "
        f"results in view, and so was the rule for rates that are too large; the last column tries both on "
        f"{len(fresh)} networks with other seeds: other weights, another draw of the images.",
        "",
        "The table counts every network at each of 13 moments, and early ones are easy. At the last step alone:",
        "",
        *(f"- {name}: {at_the_end(rows, kind)}." for kind, name in names.items()),
    ]
    lines += ["", f"Rank correlation of self-check and output error: {', '.join(ranks)}."]
    return lines


def at_the_end(rows, kind):
    """How many networks have each verdict at the last step, and of how many it is kept."""
    ends = [(Verdict.of(row[kind]["check"][-1]), row[kind]["error"][-1]) for row in rows]
    parts = []
    for verdict, limit in PROMISED.items():
        errors = [error for said, error in ends if said is verdict]
        kept = sum(error <= limit for error in errors)
        parts.append(f"{verdict.value!r} for {len(errors)} of {len(ends)} networks, kept by {kept}")
    return "; ".join(parts)


def kept_by(rows, kind, verdict, limit):
    """How often networks that had no say in the promise keep it."""
    checks, errors = points(rows, kind)
    here = errors[np.array([Verdict.of(check) is verdict for check in checks])]
    return f"{100 * np.mean(here <= limit):.0f} % of {len(here)}" if len(here) else "none"


def paint(figure, rows, names):
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, (kind, name) in zip(panels, names.items(), strict=True):
        for start, color in zip(STARTS, (ORANGE, BLUE), strict=True):
            checks, errors = np.clip(points(rows, kind, start), 1e-3, 5.0)
            panel.plot(checks, errors, "o", ms=2.5, alpha=0.5, color=color, label=start)
        for limit in (TRUST, CARE):
            panel.axvline(limit, color=GRAY, lw=1, ls="--")
        panel.set(title=name, xlabel="self-check", xscale="log", yscale="log")
    panels[0].set(ylabel="error of the outputs")
    panels[0].legend(loc="upper left", markerscale=2)
