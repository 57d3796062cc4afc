"""A few points on a line and 60 random waves, bent by themselves: what the page of the quadratic model solves."""

import functools
from typing import NamedTuple

import numpy as np

import nearkernel as nk

WAVES = 60
GRID = np.linspace(-3, 3, 121)


class Known(NamedTuple):
    """All that does not depend on eps; `scale` makes a mean squared error of a loss."""

    at: np.ndarray
    x: np.ndarray
    y: np.ndarray
    grid: np.ndarray
    truth: np.ndarray
    kernel: np.ndarray
    eigenvalues: np.ndarray
    kernel_drift: np.ndarray
    start: np.ndarray
    drift: np.ndarray
    learning: nk.results.FeatureLearning
    scale: float = 2 / len(GRID)


@functools.lru_cache(maxsize=32)
def known_of(rate: float, bend: float, points: int, seed: int) -> Known:
    rng = np.random.default_rng(seed)
    speed, phase = 1.6 * rng.normal(size=WAVES), rng.uniform(0, 2 * np.pi, WAVES)
    at = np.linspace(-2.7, 2.7, points) + rng.uniform(-0.8, 0.8, points) / points
    wave = lambda t: np.cos(np.outer(t, speed) + phase) * (2 / WAVES) ** 0.5
    x, grid = (np.hstack([wave(t), wave(-t)]) for t in (at, GRID))
    y, truth = (np.sin(2 * t + 1) + bend / 2 * np.sin(1 - 2 * t) ** 2 for t in (at, GRID))
    kernel, start = (phi(each) @ phi(each).T for each in (x, grid[::3]))
    eigenvalues = np.linalg.eigvalsh(kernel)[::-1]
    descent = nk.GradientDescent(rate / eigenvalues[0])
    solution = nk.solve(nk.QuadraticModel(phi, psi, 1.0), x, y, descent, order=2)
    drifts = solution.effective_kernel(x) - kernel, solution.effective_kernel(grid[::3]) - start
    learning = solution.feature_learning(grid, truth)
    return Known(at, x, y, grid, truth, kernel, eigenvalues, drifts[0], start, drifts[1], learning)


def phi(x):
    """A row holds the waves at x and at -x: one model serves all draws and is compiled once."""
    return x[:, :WAVES]


def psi(x, u):
    return x[:, WAVES:] * (x[:, WAVES:] @ u)[:, None]


def outputs_of(weights: np.ndarray | None, x: np.ndarray, eps: float) -> np.ndarray:
    if weights is None:
        return np.full(len(x), np.nan)
    return x[:, :WAVES] @ weights[0] + eps / 2 * (x[:, WAVES:] @ weights[0]) ** 2
