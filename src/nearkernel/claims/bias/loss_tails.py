"""Margins of losses with other tails."""

import numpy as np
import scipy.integrate
import scipy.optimize

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, GREEN, ORANGE, Figure


class LossTails(Claim):
    """Losses that fall as exp(-m) or faster lead to the maximum margin; those that fall as a power lead elsewhere."""

    source = "graduate course: implicit bias, open problems"
    formula = (
        "loss ~ m^-k: w/|w| -> argmin over |w| = 1 of sum m_i^-k;   exp(-m), exp(-m^2): -> maximum margin"
    )

    points: int = setting(20, "Points of two classes in three dimensions.", low=8, high=100)
    log_time: float = setting(40.0, "Logarithm of the training time.", low=20.0, high=60.0)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        labels = np.where(np.arange(self.points) % 2, 1.0, -1.0)
        x = rng.normal(size=(self.points, 3)) + 2.0 * labels[:, None] * np.array([1.0, 0.5, 0.0])
        rows_of = x * labels[:, None]
        rows_of = rows_of[rows_of[:, 0] + 0.5 * rows_of[:, 1] > 0.3]  # separable, with some room
        best = nk.theory.max_margin(rows_of * _flip(rows_of), _flip(rows_of)[:, 0]).w
        top = best / np.linalg.norm(best)
        forces = {
            "m^-1": lambda m: -2 * np.log(1 + m),
            "m^-3": lambda m: -4 * np.log(1 + m),
            "exp(-m)": lambda m: -m,
            "exp(-m^2)": lambda m: np.log(2 * np.maximum(m, 1e-12)) - m**2,
        }
        times = np.linspace(1.0, self.log_time, 40)
        paths = {
            name: _directions(rows_of, force, times, rows_of.mean(axis=0)) for name, force in forces.items()
        }
        gap = {name: np.linalg.norm(path - top, axis=1) for name, path in paths.items()}
        rows = []
        for k in (1, 3):
            limit = _power_direction(rows_of, k)
            rows.append(
                at_most(
                    f"distance from the minimum of sum m^-{k}",
                    0.01,
                    np.linalg.norm(paths[f"m^-{k}"][-1] - limit),
                )
            )
        rows.append(
            at_least(
                "distance of m^-1 from the maximum margin over that of exp(-m)",
                3.0,
                gap["m^-1"][-1] / gap["exp(-m)"][-1],
            )
        )
        rows.append(
            at_most(
                "distance of exp(-m) from the maximum margin, last over first",
                0.5,
                gap["exp(-m)"][-1] / gap["exp(-m)"][0],
            )
        )
        flow = nk.theory.margin_flow(rows_of * _flip(rows_of), _flip(rows_of)[:, 0], times)
        rows.append(
            at_most("distance of exp(-m^2) from the maximum margin at the end", 0.3, gap["exp(-m^2)"][-1])
        )
        rows.append(
            at_most(
                "distance of exp(-m) here from that of margin_flow",
                0.02,
                abs(flow.direction_error[-1] - gap["exp(-m)"][-1]),
            )
        )
        return Result(tuple(rows), {"log time": times, **gap})

    figure = Figure("log time", "distance to the maximum margin", xlabel="ln(time)", log="y")
    figure.line("m^-1", BLUE, "-")
    figure.line("exp(-m)", ORANGE, "-")
    figure.line("exp(-m^2)", GREEN, "-")


def _flip(rows: np.ndarray) -> np.ndarray:
    """Signs (n, 1) of both kinds, so that signed rows are data with two labels."""
    return np.where(np.arange(len(rows)) % 2, 1.0, -1.0)[:, None]


def _directions(rows: np.ndarray, log_force, times: np.ndarray, start: np.ndarray) -> np.ndarray:
    """w/|w| along gradient flow, in the logarithm of time: dw/ds = e^s sum_i x_i force(m_i)."""

    def field(s, w):
        return rows.T @ np.exp(np.minimum(s + log_force(np.maximum(rows @ w, 0.0)), 60.0))

    run = scipy.integrate.solve_ivp(
        field, (0.0, times[-1]), 0.3 * start, method="LSODA", t_eval=times, rtol=1e-8, atol=1e-10
    )
    return (run.y / np.linalg.norm(run.y, axis=0)).T


def _power_direction(rows: np.ndarray, k: int) -> np.ndarray:
    """Where sum m_i^-k is least on the unit sphere: the least of sum m^-k + |w|^2/2, turned to length 1."""
    objective = lambda w: np.sum((rows @ w) ** -float(k)) + 0.5 * w @ w if np.all(rows @ w > 0) else np.inf
    best = nk.theory.max_margin(rows * _flip(rows), _flip(rows)[:, 0]).w
    found = scipy.optimize.minimize(
        objective, 3 * best, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    )
    return found.x / np.linalg.norm(found.x)
