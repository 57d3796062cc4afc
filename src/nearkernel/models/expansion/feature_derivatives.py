"""The derivatives of quadratic and cubic models of given features: arrays of features, products of meta-features."""

from collections.abc import Iterator

import jax
import numpy as np

from ..._run.memory import rows_that_fit
from .derivatives import BATCH, BUDGET, AbstractDerivatives, Batches, padded
from .features import require_finite_features
from .quadratic import CubicModel, QuadraticModel, is_product

_ROWS = 16  # sets of inputs are filled up to a multiple of this


class FeatureDerivatives(AbstractDerivatives):
    r"""Derivatives of one output of a quadratic or cubic `model` on inputs `x`, at $W = 0$ and $\epsilon = 1$.

    Features are an array, meta-features are products. All outputs share them."""

    def __init__(self, model: QuadraticModel, x: np.ndarray):
        super().__init__()
        # Few shapes, so that few compilations serve sets of all sizes; what is not needed is cut off or weighs 0.
        self.model, self.outputs = model, len(x)
        self.x = np.pad(x, ((0, -len(x) % _ROWS), (0, 0)), mode="edge")
        self.phi = require_finite_features(
            np.asarray(_features(model, self.x), dtype=np.float64)[: len(x)], self.x
        )
        self.size = self.phi.shape[1]
        self.degree = 3 if isinstance(model, CubicModel) else 2

    def push(self, v: np.ndarray) -> np.ndarray:
        self.passes["push"] += len(v)
        return v @ self.phi.T

    def pull(self, p: np.ndarray) -> np.ndarray:
        self.passes["pull"] += len(p)
        return p @ self.phi

    def bend(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._run("bend", u, v)

    def bend_pull(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._run("bend_pull", p, v)

    def twist(self, u: np.ndarray) -> np.ndarray:
        return self._run("twist", u)

    def twist_pull(self, p: np.ndarray, u: np.ndarray) -> np.ndarray:
        r"""$\sum_a p_a \Psi_a[u, u, \cdot]$ for weights `p` and directions `u`."""
        return self._run("twist_pull", p, u)

    def curve(self, k: int, w: Batches) -> np.ndarray:
        if k == 1:
            return 0.5 * self.bend(w[0], w[0])
        rows = self.bend(w[0], w[1])
        return rows + self.twist(w[0]) / 6 if self.degree > 2 else rows

    def curved(self, k: int, r: Batches, w: Batches) -> tuple[np.ndarray, np.ndarray]:
        if k == 1:
            return self.curve(1, w), self.bend_pull(r[0], w[0])
        weights = self.bend_pull(r[1], w[0]) + self.bend_pull(r[0], w[1])
        if self.degree > 2:
            weights += 0.5 * self.twist_pull(r[0], w[0])
        return self.curve(2, w), weights

    def _run(self, kind: str, *batches: np.ndarray) -> np.ndarray:
        self.passes[kind] += len(batches[0])
        pulls = kind.endswith("pull")
        total = np.zeros((len(batches[0]), self.size if pulls else len(self.x)))
        step = BATCH if len(batches[0]) > 1 else 1
        if pulls:
            batches = (padded(batches[0], len(total), len(self.x)), *batches[1:])
        for part in self._parts(step):
            for first in range(0, len(total), step):
                batch = [b[first : first + step] for b in batches]
                if pulls:
                    batch[0] = batch[0][:, part]
                batch = [padded(b, step, b.shape[1]) for b in batch]
                values = np.asarray(_FEATURE_PASSES[kind](self.model, self.x[part], *batch))
                values = values[: len(total) - first]
                if pulls:
                    total[first : first + step] += values
                else:
                    total[first : first + step, part] = values
        return total if pulls else total[:, : self.outputs]

    def _parts(self, directions: int) -> Iterator[slice]:
        """Rows that fit in memory, with so many directions at once."""
        rows = rows_that_fit(self._row_bytes(directions), BUDGET)
        return (slice(at, at + rows) for at in range(0, len(self.x), rows))

    def bend_pull_sum(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""$\sum_a \psi_a \sum_r p_{ra} v_r$: each input has its own direction, so all R cost one pass."""
        self.passes["bend_pull_sum"] += len(p)
        total = np.zeros(self.size)
        p = padded(p, len(p), len(self.x))
        for part in self._parts(1):
            total += np.asarray(_own_directions(self.model, self.x[part], p[:, part].T @ v))
        return total

    def drifts(self, u: np.ndarray) -> Iterator[np.ndarray]:
        r"""$\psi(x)\, u$, (n, f), for directions `u`: how the features move with the weights."""
        for direction in u:
            parts = [_meta(self.model, self.x[part], direction) for part in self._parts(1)]
            yield np.concatenate(parts)[: self.outputs]

    def _row_bytes(self, directions: int) -> int:
        """A row of psi may be an array (f, f), and of Psi (f, f, f)."""
        array = 0 if is_product(self.model.psi) else self.size**2
        if isinstance(self.model, CubicModel) and not is_product(self.model.Psi):
            array = self.size**3
        return 8 * (2 * array + 2 * directions * self.size)


@jax.jit
def _features(model, x):
    return model.features(x)


@jax.jit
def _meta(model, x, u):
    return model.meta(x, u)


@jax.jit
def _own_directions(model, x, u):
    return jax.vmap(lambda row, direction: model.meta(row[None], direction)[0])(x, u).sum(0)


@jax.jit
def _feature_bend(model, x, u, v):
    return jax.vmap(lambda a, b: model.meta(x, b) @ a)(u, v)


@jax.jit
def _feature_bend_pull(model, x, p, v):
    return jax.vmap(lambda a, b: a @ model.meta(x, b))(p, v)


@jax.jit
def _feature_twist(model, x, u):
    return jax.vmap(lambda a: model.third(x, a, a) @ a)(u)


@jax.jit
def _feature_twist_pull(model, x, p, u):
    return jax.vmap(lambda a, b: a @ model.third(x, b, b))(p, u)


_FEATURE_PASSES = {
    "bend": _feature_bend,
    "bend_pull": _feature_bend_pull,
    "twist": _feature_twist,
    "twist_pull": _feature_twist_pull,
}
