r"""The last layer on fixed features: ridge regression, in closed form or by steps of gradient descent.

    1/2 |F a - y|^2 + ridge/2 |a|^2,    a = (F^T F + ridge)^-1 F^T y,    a <- a - lr [F^T (F a - y) + ridge a]

Along an eigenvector of F^T F of eigenvalue lam, t steps from a = 0 are the filter of `GradientDescent` at lam + ridge.
"""

import math

import numpy as np

from ._algorithms import GradientDescent, Ridge

_MOST_STEPS = 100_000
_TOLERANCE = 1e-9  # of the gradient, relative to that at a = 0


class RidgeHead:
    """Features F (n, m) and targets (n, out), factored once for every strength of the ridge."""

    def __init__(self, features: np.ndarray, y: np.ndarray):
        self.features, self.size = features, features.shape[1]
        n, m = features.shape
        self.force = features.T @ y
        if n >= m:
            lam, self.basis = np.linalg.eigh(features.T @ features)
            self.along = self.basis.T @ self.force
        else:
            lam, left = np.linalg.eigh(features @ features.T)
        kept = lam > max(n, m) * np.finfo(float).eps * max(lam[-1], 0.0)
        self.lam = lam[kept]
        if n >= m:
            self.basis, self.along = self.basis[:, kept], self.along[kept]
        else:
            root = np.sqrt(self.lam)
            self.basis = features.T @ (left[:, kept] / root)
            self.along = root[:, None] * (left[:, kept].T @ y)

    def exact(self, ridge: float) -> np.ndarray:
        """a (m, out) in closed form; the minimum norm at ridge 0."""
        return self.basis @ (Ridge(ridge).filter(self.lam)[:, None] * self.along)

    def best_descent(self, ridge: float) -> GradientDescent:
        """The heavy ball with the fastest rate for the eigenvalues of F^T F + ridge."""
        if len(self.lam) == 0:
            return GradientDescent(1.0 / (ridge or 1.0))
        high, low = (math.sqrt(self.lam[at] + ridge) for at in (-1, 0))
        low = math.sqrt(ridge) if ridge > 0 and len(self.lam) < self.size else low
        return GradientDescent(4 / (high + low) ** 2, momentum=((high - low) / (high + low)) ** 2)

    def descended(
        self, ridge: float, algorithm: GradientDescent, start: np.ndarray
    ) -> tuple[np.ndarray, str]:
        """a after real steps from `start` (m, out), and how they ended, in words."""
        top = (self.lam[-1] if len(self.lam) else 0.0) + ridge
        if top >= algorithm.limit():
            return np.full_like(start, np.inf), algorithm.advice(top)
        tall = len(self.features) >= self.size
        gram = self.features.T @ self.features if tall else None
        a, last = start.copy(), start.copy()
        small = _TOLERANCE * max(np.linalg.norm(self.force), np.finfo(float).tiny)
        endless = math.isinf(algorithm.steps)
        for step in range(_MOST_STEPS if endless else int(algorithm.steps)):
            product = gram @ a if gram is not None else self.features.T @ (self.features @ a)
            gradient = product + ridge * a - self.force
            if endless and np.linalg.norm(gradient) <= small:
                return a, f"converged after {step} steps"
            a, last = a - algorithm.lr * gradient + algorithm.momentum * (a - last), a
        if endless:
            return a, f"not converged after {_MOST_STEPS} steps: raise the ridge or use the closed form"
        return a, f"stopped at step {algorithm.steps:g}"
