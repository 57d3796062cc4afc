r"""Averages of the relu family, in closed form but for one integral over one variable.

s(z) = z (m + h sgn z), so all that is needed is E[z_1^p1 ... sgn(z_i) sgn(z_j) ...]. Integrating by parts,

    E[z_i X] = sum_j K_ij E[d_j X],   d_j sgn(z_j) = 2 delta(z_j),

powers of z go, and each delta fixes one input at 0, where the others are Gaussian again, with one input less.
What remains are signs alone: (2/pi) arcsin of the correlation for two, and for four an integral of such terms along
the path on which all correlations grow together.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from ...activations.closed import PiecewiseLinear
from .base import KNOWN_TO_SLOPES, Averages, Fours, multisets, store

_NOISE = 1e-10
_TOGETHER = 4096  # sets of four inputs: each takes some kilobytes on the way
_PARALLEL = (
    1e-4  # below this angle, third powers of 1/angle would drown in rounding; the error is of its order
)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


class Folded:
    """One activation of the relu family."""

    def __init__(self, activation: PiecewiseLinear):
        self.mean = 0.5 * (activation.right + activation.left)
        self.half = 0.5 * (activation.right - activation.left)

    def averages(self, kernel: np.ndarray, derivatives: bool) -> Averages:
        """All averages under N(0, kernel) that have no delta functions left; pairs beyond slopes if `derivatives`."""
        n = len(kernel)
        fours: Fours = {orders: np.empty((n,) * 4) for orders in KNOWN_TO_SLOPES}
        groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for chosen in multisets(n):  # those with the same inputs equal are done together
            pattern = tuple(sorted(set(chosen)).index(a) for a in chosen)
            groups.setdefault(pattern, []).append(chosen)
        for pattern, members in groups.items():
            self.store_all(fours, kernel, members, pattern)
        return Averages(self._pairs(kernel, derivatives), fours)

    def store_all(
        self, fours: Fours, kernel: np.ndarray, sets: Sequence[tuple[int, ...]], pattern: tuple[int, ...]
    ) -> None:
        """Put the averages at each of `sets`, in which inputs are equal as `pattern` says, into `fours`."""
        for at in range(0, len(sets), _TOGETHER):
            part = sets[at : at + _TOGETHER]
            own = np.array([sorted(set(chosen)) for chosen in part])
            tables = self._fours(_regular(kernel[own[:, :, None], own[:, None, :]]), pattern)
            for chosen, table in zip(part, tables, strict=True):
                store(fours, chosen, table)

    def _fours(self, kernel: np.ndarray, pattern: tuple[int, ...]) -> np.ndarray:
        """(batch, 2, 2, 2, 2): averages of s and s' at four slots, slot k at the input `pattern[k]` of `kernel`."""
        found = np.zeros((2, 2, 2, 2, len(kernel)))
        for orders in itertools.product((0, 1), repeat=4):
            if sum(orders) % 2:
                continue
            powers = [0] * kernel.shape[1]
            for slot, order in zip(pattern, orders, strict=True):
                powers[slot] += 1 - order
            for size in (0, 2, 4):
                for slots in itertools.combinations(range(4), size):
                    signs = frozenset(p for p in set(pattern) if sum(pattern[k] == p for k in slots) % 2)
                    weight = self.mean ** (4 - size) * self.half**size
                    if weight:
                        found[orders] += weight * moment(kernel, tuple(powers), signs)
        return np.moveaxis(found, -1, 0)

    def _pairs(self, k: np.ndarray, derivatives: bool) -> np.ndarray:
        own = np.diagonal(k)
        size = np.sqrt(np.outer(own, own))
        cosine = np.clip(k / np.where(size > 0, size, 1.0), -1.0, 1.0)
        np.fill_diagonal(cosine, 1.0)
        angle, root = np.arcsin(cosine), np.sqrt(np.maximum(size**2 - k**2, 0.0))
        np.fill_diagonal(root, 0.0)
        m2, h2 = self.mean**2, 2 / np.pi * self.half**2
        e = np.zeros((6, 6, *k.shape))
        e[0, 0] = m2 * k + h2 * (k * angle + root)
        e[1, 1] = m2 + h2 * angle
        if not derivatives:
            return e
        # Parallel inputs have all of these 0, by symmetry, and so has the diagonal, and an input that is 0.
        off = (root > _PARALLEL * size) & (size > 1e-30 * own.max())
        with np.errstate(divide="ignore", invalid="ignore"):
            ka = own[:, None]
            e[2, 0] = h2 * root / ka
            e[2, 2] = h2 / root
            e[3, 1] = -h2 * k / (root * ka)
            e[4, 0] = h2 * (own / (ka * root) - 2 * root / ka**2)
            e[3, 3] = h2 * k / root**3
            e[4, 2] = -h2 * own / root**3
            e[5, 1] = h2 * k * (2 / (ka**2 * root) + own / (ka * root**3))
        for i, j in ((2, 0), (3, 1), (4, 0), (4, 2), (5, 1)):
            e[i, j] = np.where(off, e[i, j], 0.0)
            e[j, i] = e[i, j].T
        e[2, 2], e[3, 3] = np.where(off, e[2, 2], 0.0), np.where(off, e[3, 3], 0.0)
        return e


def _regular(kernel: np.ndarray) -> np.ndarray:
    """Covariances of linearly dependent inputs, moved a little: signs given that all else is 0 need some noise left.

    This costs such inputs, of which there are more than dimensions, an error of 1e-5.
    """
    eigenvalues = np.linalg.eigvalsh(kernel)
    singular = eigenvalues[:, 0] < _NOISE * eigenvalues[:, -1]
    own = np.diagonal(kernel, axis1=1, axis2=2)
    return kernel + (singular[:, None] * _NOISE * own)[:, :, None] * np.eye(kernel.shape[1])


def moment(kernel: np.ndarray, powers: tuple[int, ...], signs: frozenset[int]) -> np.ndarray:
    """E[prod z_i^powers[i] prod_{i in signs} sgn z_i] for each covariance of `kernel` (batch, k, k)."""
    if (sum(powers) + len(signs)) % 2:
        return np.zeros(len(kernel))
    i = next((i for i, p in enumerate(powers) if p), None)
    if i is None:
        return _signs(kernel, sorted(signs))
    rest = _less(powers, i)
    total = np.zeros(len(kernel))
    for j in range(kernel.shape[1]):
        if rest[j]:
            total += rest[j] * kernel[:, i, j] * moment(kernel, _less(rest, j), signs)
        elif j in signs:
            # K_ij 2 p(z_j = 0)
            density = kernel[:, i, j] * _inverse_root(kernel[:, j, j]) * np.sqrt(2 / np.pi)
            others = [k for k in range(kernel.shape[1]) if k != j]
            left = frozenset(others.index(k) for k in signs if k != j)
            total += density * moment(given_zero(kernel, j), tuple(rest[k] for k in others), left)
    return total


def _less(powers: tuple[int, ...], i: int) -> tuple[int, ...]:
    return tuple(p - (k == i) for k, p in enumerate(powers))


def _inverse_root(q: np.ndarray) -> np.ndarray:
    return np.where(q > 0, 1.0 / np.sqrt(np.where(q > 0, q, 1.0)), 0.0)


def given_zero(kernel: np.ndarray, j: int) -> np.ndarray:
    """Covariance of the others given z_j = 0."""
    others = [k for k in range(kernel.shape[1]) if k != j]
    column = kernel[:, others, j] * _inverse_root(kernel[:, j, j])[:, None]
    left = kernel[:, others][:, :, others] - column[:, :, None] * column[:, None, :]
    diagonal = np.arange(len(others))
    rounding = 1e-15 * kernel[:, others, others]
    own = left[:, diagonal, diagonal]
    left[:, diagonal, diagonal] = np.where(own > rounding, own, 0.0)
    return left


def _signs(kernel: np.ndarray, signs: list[int]) -> np.ndarray:
    """E[prod sgn z_i] of 0, 2 or 4 inputs."""
    if not signs:
        return np.ones(len(kernel))
    inverse = _inverse_root(kernel[:, signs, signs])
    c = kernel[:, signs][:, :, signs] * inverse[:, :, None] * inverse[:, None, :]
    c = np.clip(c, -1.0, 1.0)
    if len(signs) == 2:
        return 2 / np.pi * np.arcsin(c[:, 0, 1])
    u = 0.5 * (_NODES + 1.0)
    path, weights = 1.0 - (1.0 - u) ** 2, _WEIGHTS * (1.0 - u)  # dense at the end, where a root may vanish
    total = np.zeros(len(kernel))
    for i, j in itertools.combinations(range(4), 2):
        k, m = (slot for slot in range(4) if slot not in (i, j))
        end = np.arcsin(c[:, i, j])[:, None]
        near = np.abs(c[:, i, j])[:, None] < 1e-8
        t = np.where(near, path, np.sin(path * end) / np.where(near, 1.0, c[:, i, j][:, None]))
        rij, rkm = c[:, i, j][:, None] * t, c[:, k, m][:, None] * t
        rki, rkj, rmi, rmj = (c[:, x, y][:, None] * t for x, y in ((k, i), (k, j), (m, i), (m, j)))
        free = 1.0 - rij**2
        both = free * rkm - (rki * rmi + rkj * rmj - rij * (rki * rmj + rkj * rmi))
        own_k = free - (rki**2 + rkj**2 - 2 * rij * rki * rkj)
        own_m = free - (rmi**2 + rmj**2 - 2 * rij * rmi * rmj)
        rho = both * _inverse_root(np.maximum(own_k, 0.0)) * _inverse_root(np.maximum(own_m, 0.0))
        total += end[:, 0] * (np.arcsin(np.clip(rho, -1.0, 1.0)) @ weights)
    return 4 / np.pi**2 * total
