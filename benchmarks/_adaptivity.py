"""Experiments on what kernels and networks adapt to (support, smoothness, jumps, latent variables), and on dimension.

Functions of their sizes that return numbers. Errors are mean squared errors over the variance of the target.
"""

from collections.abc import Callable, Sequence

import numpy as np
from _separation import agop, best, draw, ntk, one_step, ridged, target, trained
from scipy.linalg import cho_factor, cho_solve, cholesky

import nearkernel as nk


def lengths(factors: Sequence[float], scale: float) -> Callable:
    """RBF machines of several lengths, each with several ridges, as a learner."""

    def learner(x, y, seed):
        for factor in factors:
            yield from ridged(nk.kernels.RBF(factor * scale), x, y)

    return learner


def error_of(learner: Callable, x, y, new, values, seed: int = 0) -> float:
    return best(learner(x, y, seed), new, values)[0] / float(np.var(values))


def waves(d: int, seed: int, count: int = 60) -> Callable[[np.ndarray], np.ndarray]:
    """A random smooth function of all d coordinates, sum of cosines, with wave numbers of size 1 in each of them."""
    rng = np.random.default_rng([seed, d])
    omega, phase = rng.normal(size=(d, count)), rng.uniform(0, 2 * np.pi, count)
    return lambda x: np.cos(x @ omega + phase).sum(axis=1) * np.sqrt(2 / count)


def manifold(n: int, d: int, seed: int) -> np.ndarray:
    """Points of a curved surface of two dimensions in R^d, each coordinate of unit variance."""
    rng = np.random.default_rng([seed, n, d])
    t = rng.normal(size=(n, 2))
    shape = np.random.default_rng([seed, d])
    bend, phase = shape.normal(size=(2, d)) / 2, shape.uniform(0, 2 * np.pi, d)
    x = np.sin(t @ bend + phase)
    return (x - x.mean(axis=0)) / x.std(axis=0) if d > 2 else t


def support(dims: Sequence[int], n: int = 500, seed: int = 0) -> dict[str, list[float]]:
    """Error over the ambient dimension, for inputs that fill it and for inputs on a surface in it."""
    found: dict[str, list[float]] = {}
    for d in dims:
        f = waves(d, seed)
        for where in ("filled", "surface"):
            rng = np.random.default_rng([seed, n, d])
            x = manifold(n + 1000, d, seed) if where == "surface" else rng.normal(size=(n + 1000, d))
            x = x / np.sqrt(d)  # pairs of points are as far apart at every d
            y = f(x)
            data = x[:n], y[:n] - y[:n].mean(), x[n:], y[n:] - y[:n].mean()
            for name, learner in (("RBF", lengths((0.5, 1.0, 2.0), 1.0)), ("network", trained)):
                scaled = data if name == "RBF" else (data[0] * d**0.5, data[1], data[2] * d**0.5, data[3])
                found.setdefault(f"{name}, {where}", []).append(error_of(learner, *scaled))
    return found


def rough(smoothness: float, seed: int, most: int = 12) -> Callable[[np.ndarray], np.ndarray]:
    """A periodic function of two variables with Fourier coefficients |k|^-(smoothness + 1), of unit variance."""
    rng = np.random.default_rng(seed)
    grid = np.array([(a, b) for a in range(most + 1) for b in range(-most, most + 1) if a > 0 or b > 0])
    size = rng.normal(size=len(grid)) * np.linalg.norm(grid, axis=1) ** -(smoothness + 1)
    phase = rng.uniform(0, 2 * np.pi, len(grid))
    return lambda x: np.sqrt(2) * np.cos(np.pi * x @ grid.T + phase) @ size / np.linalg.norm(size)


def longer(x: np.ndarray, y: np.ndarray, seed: int):
    """Fine structure is learnt late."""
    return trained(x, y, seed, steps=6000)


def smooth(orders: Sequence[float], sizes: Sequence[int], seed: int = 0) -> dict[str, list[float]]:
    """Error over n for rough and smooth targets on a square."""
    found: dict[str, list[float]] = {}
    for order in orders:
        f = rough(order, seed)
        for n in sizes:
            rng = np.random.default_rng([seed, n])
            x, new = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (1000, 2))
            for name, learner in (("RBF", lengths((0.1, 0.2, 0.4), 1.0)), ("network", longer)):
                found.setdefault(f"{name}, s = {order:g}", []).append(error_of(learner, x, f(x), new, f(new)))
    return found


def step(
    n: int = 60, seed: int = 0
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, tuple[float, float]]]:
    """A jump in one dimension: a grid, every learner's function on it, and its (error, overshoot)."""
    x = np.random.default_rng(seed).uniform(-1, 1, (n, 1))
    grid = np.linspace(-1, 1, 401)[:, None]
    jump = lambda x: np.sign(x[:, 0])
    learners = {
        "RBF": lengths((0.1, 0.2, 0.4), 1.0),
        "Laplace": lambda x, y, seed: ridged(nk.kernels.Laplace(1.0), x, y),
        "NTK": ntk,
        "network": lambda x, y, seed: trained(x, y, seed, steps=15_000),
    }
    curves, numbers = {}, {}
    for name, learner in learners.items():
        error, predict = best(learner(x, jump(x), seed), grid, jump(grid))
        curves[name] = predict(grid)
        numbers[name] = error, float(np.abs(curves[name]).max() - 1)
    return grid[:, 0], curves, numbers


def latent(dims: Sequence[int], n: int = 1500, seeds: int = 2) -> dict[str, list[float]]:
    """Error over d for a polynomial of two directions, at one n."""
    learners = {
        "RBF": lambda x, y, s: ridged(nk.kernels.RBF(x.shape[1] ** 0.5), x, y),
        "one step": one_step,
        "AGOP kernel": agop,
    }
    found: dict[str, list[float]] = {name: [] for name in learners}
    for d in dims:
        for name, learner in learners.items():
            errors = [error_of(learner, *draw(target(d, seed), d, n, seed), seed) for seed in range(seeds)]
            found[name].append(float(np.mean(errors)))
    return found


def curse(d: int, sizes: Sequence[int], seed: int = 0, test: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Expected and measured errors over n for functions drawn from a Laplace Gaussian process on the cube.

    The machine has the kernel that the functions were drawn with, so nothing does better; the expected error is the
    posterior variance, which falls as n^(-1/d).
    """
    rng = np.random.default_rng([seed, d])
    kernel = nk.kernels.Laplace((d / 6) ** 0.5)  # the root mean square distance of two points
    x = rng.uniform(size=(max(sizes) + test, d))
    matrix = kernel(x)
    values = cholesky(matrix + 1e-12 * np.eye(len(x)), lower=True) @ rng.normal(size=(len(x), 8))
    new = slice(max(sizes), None)
    expected, measured = [], []
    for n in sizes:
        factor = cho_factor(matrix[:n, :n], lower=True)
        weights = cho_solve(factor, matrix[:n, new])
        expected.append(float(np.mean(1 - np.sum(weights * matrix[:n, new], axis=0))))
        measured.append(float(np.mean((values[new] - weights.T @ values[:n]) ** 2)))
    return np.array(expected), np.array(measured)
