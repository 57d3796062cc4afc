r"""The last layer on fixed features: ridge regression, in closed form or by steps of gradient descent.

    1/2 |F a - y|^2 + ridge/2 |a|^2,    a = (F^T F + ridge)^-1 F^T y,    a <- a - lr [F^T (F a - y) + ridge a]

Along an eigenvector of F^T F of eigenvalue lam, t steps from a = 0 are the filter of `GradientDescent` at lam + ridge.
"""

import math

import numpy as np

from ..._base.status import Status, StatusKind
from ..algorithms.spectral import GradientDescent, Ridge
from ..linear.base import status_at

_MOST_STEPS = 100_000
_TOLERANCE = 1e-8  # of a; the gradient over the smallest eigenvalue bounds its error
_ROUNDING = 1e-14  # of the gradient, relative to that at a = 0


class RidgeHead:
    """Features F (n, m) and targets (n, out), factored once for every strength of the ridge."""

    def __init__(self, features: np.ndarray, y: np.ndarray):
        self.features, self.size = features, features.shape[1]
        self.force = features.T @ y
        if len(features) >= self.size:
            lam, self.basis = np.linalg.eigh(features.T @ features)
            self.along = self.basis.T @ self.force
        else:
            lam, left = np.linalg.eigh(features @ features.T)
            self.basis, self.along = features.T @ left, left.T @ y
        self.lam = np.maximum(lam, 0.0)
        self.cutoff = max(features.shape) * np.finfo(float).eps * self.lam[-1]

    def exact(self, ridge: float) -> np.ndarray:
        """a (m, out) in closed form; the minimum norm at ridge 0, where rounding must not count as an eigenvalue."""
        kept = self.lam > (0.0 if ridge > 0 else self.cutoff)
        weight = np.zeros_like(self.lam)
        weight[kept] = Ridge(ridge).filter(self.lam[kept])
        return self.basis @ (weight[:, None] * self.along)

    def smallest(self, ridge: float) -> float:
        """The smallest eigenvalue of F^T F + ridge along which a moves; 1 if there is none."""
        if ridge > 0:
            return ridge
        kept = self.lam[self.lam > self.cutoff]
        return float(kept[0]) if len(kept) else 1.0

    def best_descent(self, ridge: float) -> GradientDescent:
        """The heavy ball with the fastest rate for the eigenvalues of F^T F + ridge."""
        low = math.sqrt(self.smallest(ridge))
        high = max(math.sqrt(self.lam[-1] + ridge), low)
        return GradientDescent(4 / (high + low) ** 2, momentum=((high - low) / (high + low)) ** 2)

    def descended(
        self, ridge: float, algorithm: GradientDescent, start: np.ndarray
    ) -> tuple[np.ndarray, Status]:
        """a after real steps from `start` (m, out), and how they ended."""
        top = self.lam[-1] + ridge
        if top >= algorithm.limit():
            return np.full_like(start, np.inf), status_at(algorithm, top)
        tall = len(self.features) >= self.size
        gram = self.features.T @ self.features if tall else None
        a, last = start.copy(), start.copy()
        least = self.smallest(ridge)
        rounding = max(_ROUNDING * np.linalg.norm(self.force), np.finfo(float).tiny)
        endless = math.isinf(algorithm.steps)
        for step in range(_MOST_STEPS if endless else int(algorithm.steps)):
            product = gram @ a if gram is not None else self.features.T @ (self.features @ a)
            gradient = product + ridge * a - self.force
            if endless and np.linalg.norm(gradient) <= max(_TOLERANCE * least * np.linalg.norm(a), rounding):
                return a, Status(StatusKind.converged, f"converged after {step} steps")
            a, last = a - algorithm.lr * gradient + algorithm.momentum * (a - last), a
        if endless:
            message = f"not converged after {_MOST_STEPS} steps: increase the ridge or use the closed form"
            return a, Status(StatusKind.not_converged, message)
        return a, status_at(algorithm, top)
