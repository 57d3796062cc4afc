"""Quadratic and cubic models of which everything is known, and their training by brute force.

An input carries its own features: x = (phi, c), with psi(x) = sum_r c_r v_r v_r^T and Psi(x) = sum_r c_r^2 v_r v_r v_r.
So one model, compiled once, serves every random problem.
"""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.optimize

import nearkernel as nk

F, R = 11, 5  # features, and terms of the meta-features
DIRECTIONS = np.random.default_rng(42).normal(size=(R, F)) / math.sqrt(F)


def phi(x):
    return x[:, :F]


def psi(x, u):
    return (x[:, F:] * (DIRECTIONS @ u)) @ DIRECTIONS


def third(x, u, v):
    return (x[:, F:] ** 2 * (DIRECTIONS @ u) * (DIRECTIONS @ v)) @ DIRECTIONS


def psi_array(x):
    return np.einsum("nr,rj,rk->njk", x[:, F:], DIRECTIONS, DIRECTIONS)


def third_array(x):
    return np.einsum("nr,rj,rk,rl->njkl", x[:, F:] ** 2, DIRECTIONS, DIRECTIONS, DIRECTIONS)


def quadratic(eps: float, **options: Any) -> nk.QuadraticModel:
    return nk.QuadraticModel(phi, psi, eps, **options)


def cubic(eps: float, **options: Any) -> nk.models.CubicModel:
    return nk.models.CubicModel(phi, psi, third, eps, **options)


class Problem(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    x_new: np.ndarray


def problem(n: int, seed: int = 0, outputs: int | None = None, most: float = 2.0, new: int = 4) -> Problem:
    """Random, with singular values of the training features from 0.6 to `most`: no unlucky condition numbers."""
    rng = np.random.default_rng(seed)
    count = min(n, F)
    left = np.linalg.qr(rng.normal(size=(n, count)))[0]
    right = np.linalg.qr(rng.normal(size=(F, count)))[0]
    features = (left * np.linspace(most, 0.6, count)) @ right.T
    x = np.concatenate([features, rng.normal(size=(n, R))], axis=1)
    x_new = np.concatenate([rng.normal(size=(new, F)) / 3, rng.normal(size=(new, R))], axis=1)
    return Problem(x, rng.normal(size=n if outputs is None else (n, outputs)), x_new)


class Known:
    """One output of the quadratic model in NumPy, at weights (f,), from a start `w0`."""

    def __init__(self, x: np.ndarray, eps: float, w0: np.ndarray | None = None):
        self.phi, self.psi = x[:, :F], eps * psi_array(x)
        self.w0 = np.zeros(F) if w0 is None else w0

    def outputs(self, moved: np.ndarray) -> np.ndarray:
        w = self.w0 + moved
        return self.phi @ w + 0.5 * np.einsum("njk,j,k->n", self.psi, w, w)

    def features(self, moved: np.ndarray) -> np.ndarray:
        return self.phi + self.psi @ (self.w0 + moved)


def _root(function, start: np.ndarray) -> np.ndarray:
    found = scipy.optimize.root(function, start, tol=1e-15, options={"xtol": 1e-15})
    if np.abs(found.fun).max() >= 1e-12:
        raise RuntimeError(f"No root was found: {found.message}")
    return found.x


def moved_by(
    algorithm: Any, x: np.ndarray, y: np.ndarray, eps: float, w0: np.ndarray | None = None
) -> np.ndarray:
    """Where a rule without time takes one output's weights, by its definition alone."""
    model, start = Known(x, eps, w0), np.zeros(F)
    ridge = getattr(algorithm, "strength", 0.0)
    residual = lambda w: model.outputs(w) - y
    if ridge or len(x) > F:
        return _root(lambda w: ridge * w + model.features(w).T @ residual(w), start)
    if isinstance(algorithm, nk.Ridge):  # least |w|: w in the span of the features where it arrives
        both = _root(
            lambda v: np.concatenate([v[:F] - model.features(v[:F]).T @ v[F:], residual(v[:F])]),
            np.zeros(F + len(x)),
        )
        return both[:F]
    before = model.features(start)
    return before.T @ _root(lambda n: residual(before.T @ n), np.zeros(len(x)))


def followed(p: Problem, y: np.ndarray, eps: float, w0: np.ndarray, time: float) -> np.ndarray:
    """Where gradient flow takes one output's weights, to the two digits more than `nk.simulate` that order 2 needs."""
    model = Known(p.x, eps)
    found = scipy.integrate.solve_ivp(
        lambda _, w: -model.features(w).T @ (model.outputs(w) - y),
        (0.0, time),
        w0,
        method="DOP853",
        rtol=1e-13,
        atol=1e-15,
    )
    if not found.success:
        raise RuntimeError(f"The flow was not followed to its end: {found.message}")
    return found.y[:, -1]


def trained(
    algorithm: Any, p: Problem, eps: float, w0: np.ndarray | None = None, model: Any = quadratic
) -> np.ndarray:
    """The weights (out, f) after training, without any expansion.

    Runs have 17 inputs and two outputs, of which those that are not needed are zero and stay so: one compilation.
    """
    y = p.y.reshape(len(p.x), -1)
    start = np.zeros((y.shape[1], F)) if w0 is None else w0
    if isinstance(algorithm, nk.DirectOptimization | nk.Ridge):
        return start + np.stack([moved_by(algorithm, p.x, y[:, i], eps, start[i]) for i in range(len(start))])
    if isinstance(algorithm, nk.GradientFlow) and model is quadratic:
        time = min(algorithm.time, 80.0)  # 29 decay times of the slowest mode
        return np.stack([followed(p, y[:, i], eps, start[i], time) for i in range(len(start))])
    missing = (0, 17 - len(p.x))
    x, y = np.pad(p.x, (missing, (0, 0))), np.pad(y, (missing, (0, 2 - y.shape[1])))
    endless = isinstance(algorithm, nk.GradientDescent | nk.GradientFlow) and algorithm.end() == np.inf
    first, tol = np.pad(start, ((0, 2 - len(start)), (0, 0))), 1e-14 if endless else None
    run = nk.simulate(model(eps, out_dim=2), first, x, y, algorithm, tol=tol)
    if not run.ok:
        raise RuntimeError(f"Training failed: {run.status}")
    return run.params[: len(start)]


def exact_outputs(weights: np.ndarray, x: np.ndarray, eps: float) -> np.ndarray:
    return np.stack([Known(x, eps).outputs(w) for w in weights], axis=1)


def trained_outputs(algorithm: Any, p: Problem, eps: float) -> np.ndarray:
    """Outputs (m,) of the really trained model at the new inputs."""
    return exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0]


def solved(algorithm: Any, p: Problem, eps: float, order: int = 1) -> Any:
    """The solution to an order, without the warning that the correction is large: claims measure its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nk.solve(quadratic(eps), p.x, p.y, algorithm, order=order)
