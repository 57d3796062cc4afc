"""Iterations for (K + shift) a = y that need only products with K; each reports how far it came.

Residuals are relative to y, the worst column counts, and the last one is computed from the coefficients, not carried.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._run.blas import one_thread
from .products import AbstractProducts

Watch = Callable[[int, float], None]  # (iteration, relative residual)


class Iterated(NamedTuple):
    """Coefficients (n, columns), the true relative residual, those on the way, seconds, and a `note` on trouble."""

    coefficients: np.ndarray
    residual: float
    history: np.ndarray
    seconds: float
    note: str = ""

    @property
    def iterations(self) -> int:
        return len(self.history)


def silent(iteration: int, residual: float) -> None:
    pass


def relative(residual: np.ndarray, right: np.ndarray) -> float:
    """|residual| / |right|, the worst column; columns of zeros count as they are."""
    return _relative(residual, _scale(right))


def _relative(residual: np.ndarray, scale: np.ndarray) -> float:
    return float((np.linalg.norm(residual, axis=0) / scale).max())


def _scale(right: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(right, axis=0)
    return np.where(norms > 0, norms, 1.0)


def conjugate_gradients(
    products: AbstractProducts,
    right: np.ndarray,
    shift: float,
    precondition: Callable[[np.ndarray], np.ndarray],
    tol: float,
    most: int,
    watch: Watch = silent,
) -> Iterated:
    """All columns at once, each with its own steps; started again where the carried residual has drifted away."""
    begin, scale = time.perf_counter(), _scale(right)
    solution, residual = np.zeros_like(right), right.copy()
    history: list[float] = []
    true, before = _relative(right, scale), math.inf
    while true > tol and len(history) < most and true < 0.5 * before:
        before = true
        _conjugate(products, solution, residual, shift, precondition, tol, most, scale, history, watch)
        residual = right - products.times(solution) - shift * solution
        true = _relative(residual, scale)
    note = "" if true <= tol or len(history) >= most else "rounding errors prevent further progress"
    return Iterated(
        coefficients=solution,
        residual=true,
        history=np.array(history),
        seconds=time.perf_counter() - begin,
        note=note,
    )


def _conjugate(products, found, residual, shift, precondition, tol, most, scale, history, watch) -> None:
    """One run from `found` and its residual, both moved in place."""
    z = precondition(residual)
    direction, energy = z.copy(), np.einsum("ij,ij->j", residual, z)
    while len(history) < most:
        image = products.times(direction) + shift * direction
        curvature = np.einsum("ij,ij->j", direction, image)
        _require_positive(curvature, direction, shift)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        found += step * direction
        residual -= step * image
        history.append(_relative(residual, scale))
        watch(len(history), history[-1])
        if history[-1] <= tol:
            return
        z = precondition(residual)
        new = np.einsum("ij,ij->j", residual, z)
        direction *= np.divide(new, energy, out=np.zeros_like(new), where=energy > 0)
        direction += z
        energy = new


def _require_positive(curvature: np.ndarray, direction: np.ndarray, shift: float) -> None:
    square = np.einsum("ij,ij->j", direction, direction)
    worst = float(np.divide(curvature, square, out=np.zeros_like(square), where=square > 0).min())
    if worst < 0 and -worst > 1e-10 * max(
        shift, np.abs(curvature).max(initial=0.0) / square.max(initial=1e-300)
    ):
        raise ValueError(
            f"the kernel matrix is not positive: v.(K + {shift:.3g})v / v.v = {worst:.3g} for a direction v. "
            "Use a positive definite kernel, or a ridge above its most negative eigenvalue."
        )


def richardson(
    products: AbstractProducts,
    right: np.ndarray,
    shift: float,
    lr: float,
    momentum: float,
    steps: float,
    tol: float,
    most: int,
    watch: Watch = silent,
) -> Iterated:
    """a <- a + lr (y - (K + shift) a), the iteration of gradient descent: `steps` of it, or until `tol`."""
    begin, scale, history = time.perf_counter(), _scale(right), []
    solution, speed, residual = np.zeros_like(right), np.zeros_like(right), right.copy()
    count = int(min(steps, most))
    for _ in range(count):
        speed = momentum * speed + lr * residual
        solution += speed
        residual = right - products.times(solution) - shift * solution
        history.append(_relative(residual, scale))
        watch(len(history), history[-1])
        if not history[-1] < 1e100:
            break
        if math.isinf(steps) and history[-1] <= tol:
            break
    last = history[-1] if history else _relative(right, scale)
    return Iterated(solution, last, np.array(history), time.perf_counter() - begin)


def eigenpro(
    products: AbstractProducts,
    right: np.ndarray,
    shift: float,
    rank: int,
    sample: int,
    batch: int,
    tol: float,
    epochs: int,
    seed: int = 0,
    watch: Watch = silent,
) -> Iterated:
    r"""Stochastic gradient steps whose large eigendirections are damped, so that the small ones may be fast.

    With V, lam the top eigenpairs of K on a sample S, a batch B has the gradient g = (K + shift) a - y on B, and
    a_B -= lr g, a_S += lr V D V^T K_SB g with D = (1 - lam_q / lam) / lam (Ma and Belkin 2019).
    """
    begin, scale, draw = time.perf_counter(), _scale(right), np.random.default_rng(seed)
    sample = min(sample, products.n)
    chosen = np.sort(draw.choice(products.n, sample, replace=False))
    rows = products.columns(chosen).T  # (sample, n)
    lam, vectors = np.linalg.eigh(rows[:, chosen].astype(np.float64))
    rank = min(rank, sample - 1)
    tail, lam, vectors = max(float(lam[-rank - 1]), 0.0), lam[-rank:], vectors[:, -rank:]
    damping = (1.0 - tail / lam) / lam
    batch = min(batch, products.n)
    # The largest rate that a batch of points outside of the sample bears: eigenvalues of a sample alone flatter it.
    trial = draw.choice(np.setdiff1d(np.arange(products.n), chosen) if sample < products.n else chosen, batch)
    turned = vectors.T @ rows[:, trial]
    inside = products.among(trial) - (turned.T * damping) @ turned
    del turned
    with one_thread(batch):
        lr = 1.0 / (float(np.linalg.eigvalsh(inside)[-1]) + shift)
    del inside
    solution, history, kept, least = np.zeros_like(right), [], np.zeros_like(right), math.inf
    for _ in range(epochs):
        square = np.zeros(right.shape[1])
        for at in np.array_split(draw.permutation(products.n), -(-products.n // batch)):
            gradient = products.row_products(at, solution) + shift * solution[at] - right[at]
            square += np.einsum("ij,ij->j", gradient, gradient)
            solution[at] -= lr * gradient
            solution[chosen] += lr * vectors @ (damping[:, None] * (vectors.T @ (rows[:, at] @ gradient)))
        history.append(float((np.sqrt(square) / scale).max()))
        watch(len(history), history[-1])
        if history[-1] <= tol:
            break
        if not history[-1] < 2.0 * least:  # too fast after all: back to the last good epoch, at half the rate
            solution, lr = kept.copy(), 0.5 * lr
        else:
            kept, least = solution.copy(), min(least, history[-1])
    true = _relative(right - products.times(solution) - shift * solution, scale)
    return Iterated(solution, true, np.array(history), time.perf_counter() - begin)
