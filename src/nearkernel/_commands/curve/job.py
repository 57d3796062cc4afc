"""The curve of a data set, in units that people read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np

import nearkernel as nk

from ..predict.network import HypotheticalNetwork
from ..predict.reading.data import LabeledData
from ..predict.reading.prepare import Split


@dataclasses.dataclass(frozen=True)
class ScaledCurve:
    """A curve in target units: the Brier score of classes, or the share of the variance that is not explained."""

    measure: str
    scale: float  # by which errors of the standardized target are multiplied
    training: str
    curve: nk.results.LearningCurveResult
    ahead: nk.results.Extrapolation

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Cells: rows, error, standard error, and those of real fits."""
        curve, real = self.curve, self.curve.trained
        found = []
        for i, size in enumerate(curve.sizes):
            cells = [f"{size}", f"{self.scale * curve.error[i]:.4f}", f"{self.scale * curve.sem[i]:.4f}"]
            if real is not None:
                fitted = np.isfinite(real.error[i])
                cells.append(f"{self.scale * real.error[i]:.4f}" if fitted else "")
                cells.append(f"{self.scale * real.spread[i]:.4f}" if np.isfinite(real.spread[i]) else "")
                if real.error_rate is not None:
                    cells.append(f"{real.error_rate[i]:.4f}" if fitted else "")
            found.append(tuple(cells))
        return found

    @property
    def head(self) -> tuple[str, ...]:
        real = self.curve.trained
        more = () if real is None else ("real fits", "spread")
        rate = () if real is None or real.error_rate is None else ("error rate",)
        return ("rows", self.measure, "standard error", *more, *rate)

    @property
    def sentence(self) -> str:
        now, then, low, high = (
            self.scale * float(value)
            for value in (
                self.curve.tail.error[-1],
                self.ahead.error[0],
                self.ahead.low[0],
                self.ahead.high[0],
            )
        )
        if not self.ahead.trusted:
            return (
                f"With all {self.curve.n} rows the {self.measure} is {now:.3g}. "
                f"The gain from twice the rows cannot be predicted: {self.ahead.reason}."
            )
        return (
            f"With twice the rows ({2 * self.curve.n}) the {self.measure} would fall from {now:.3g} to {then:.3g} "
            f"({low:.3g} to {high:.3g})."
        )

    def fields(self) -> dict[str, object]:
        """The curve as data."""
        curve, ahead, real = self.curve, self.ahead, self.curve.trained
        fits = None
        if real is not None:
            fits = {
                "error": self.scale * real.error,
                "spread": self.scale * real.spread,
                "error_rate": real.error_rate,
                "fits": real.fits,
            }
        return {
            "training": self.training,
            "measure": self.measure,
            "sizes": curve.sizes,
            "error": self.scale * curve.error,
            "standard_error": self.scale * curve.sem,
            "train_error": self.scale * curve.train_error,
            "error_rate": curve.error_rate,
            "noise_floor": None if curve.noise_floor is None else self.scale * curve.noise_floor,
            "real_fits": fits,
            "twice_the_rows": {
                "rows": 2 * curve.n,
                "error": self.scale * ahead.error[0],
                "low": self.scale * ahead.low[0],
                "high": self.scale * ahead.high[0],
                "trusted": ahead.trusted,
                "reason": ahead.reason,
            },
            "slope": curve.slope,
        }

    @property
    def remarks(self) -> list[str]:
        curve = self.curve
        lines = [f"{note[0].upper()}{note[1:]}." for note in curve.notes]
        if curve.error_rate is not None:
            lines.append(f"Error rate with all rows, by leave-one-out: {curve.error_rate:.4f}.")
        if curve.noise_floor is not None:
            lines.append(
                f"Repeated rows differ by {self.scale * curve.noise_floor:.3g}: no method falls below that."
            )
        lines.append(
            "The network is infinitely wide and centered; real ones err more (on 100 digits 12 % at width 512)."
        )
        return lines


def run(
    network: HypotheticalNetwork,
    data: LabeledData,
    rows: Split,
    check: int,
    tune: bool,
    seed: int,
    say: Callable[[str], None],
) -> ScaledCurve:
    """Everything that is computed."""
    shape = network.in_shape(data, rows)
    kernel, x = nk.kernels.NTK(network.build(shape, 1)), rows.x.reshape(-1, *shape)
    algorithm, words = network.algorithm, network.training
    if tune:
        say("leaving out one row after the other")
        kind: Literal["flow", "ridge"] = "flow" if isinstance(algorithm, nk.GradientFlow) else "ridge"
        found = nk.dynamics.tune(kernel, x, rows.y, kind)
        algorithm = found.algorithm
        what = "gradient flow for a time of" if kind == "flow" else "training to the end with weight decay"
        words = f"{what} {found.value:.3g} (chosen by leave-one-out)"
    say("computing the curve")
    curve = nk.learning_curve(kernel, x, rows.y, algorithm, check=check, key=seed if check else None)
    measure = "Brier score" if data.classes else "unexplained share"
    scale = rows.scale**2 if data.classes else 1.0
    return ScaledCurve(measure, scale, words, curve, curve.extrapolate([2 * curve.n]))
