r"""All outputs at once, nearly Gaussian: their joint density and draws with four given cumulants.

With x the outputs in units in which their covariance is 1, and cumulants k in the same units,

    p(f) = N(f; mean, cov) [1 + k_ijk He_ijk(x)/6 + k_ijkl He_ijkl(x)/24],
    f_b  = mean_b + (L z)_b + k_bij (z_i z_j - 1_ij)/6 + k_bijk (z_i z_j z_k - 3 z_i 1_jk)/24      for normal z,

whose cumulants are the given ones up to squares of k_ijk.
"""

import math

import numpy as np
import scipy.linalg

from ..._run.memory import rows_that_fit

_NONE = 1e-9  # of the largest variance: what training has fixed


class JointLaw:
    """`mean` (m,), `cov` (m, m), `third` (m, m, m), `fourth` (m, m, m, m) of outputs in a row."""

    def __init__(self, mean: np.ndarray, cov: np.ndarray, third: np.ndarray, fourth: np.ndarray):
        self.mean, self.third, self.fourth = mean, third, fourth
        lam, vectors = scipy.linalg.eigh(cov)
        free = lam > _NONE * max(lam[-1], 0.0)
        self.root, self.inverse = vectors[:, free] * np.sqrt(lam[free]), vectors[:, free] / np.sqrt(lam[free])
        self.peak = math.exp(-0.5 * float(np.log(2 * math.pi * lam[free]).sum()))  # of the Gaussian

    @property
    def regular(self) -> bool:
        """Whether no combination of outputs is fixed."""
        return self.root.shape[1] == len(self.mean)

    def density(self, f: np.ndarray) -> np.ndarray:
        """(s,) at outputs `f` (s, m)."""
        x, k3, k4 = (f - self.mean) @ self.inverse, self.third, self.fourth
        for _ in range(3):
            k3 = np.tensordot(k3, self.inverse, axes=(0, 0))  # to units, axis by axis
        for _ in range(4):
            k4 = np.tensordot(k4, self.inverse, axes=(0, 0))
        bracket = np.concatenate([_bracket(part, k3, k4) for part in _parts(x)])
        return self.peak * np.exp(-0.5 * (x * x).sum(axis=1)) * bracket

    def draws(self, noise: np.ndarray) -> np.ndarray:
        """(s, m) outputs from standard normal `noise` (s, m)."""
        k3, k4 = self.third, self.fourth
        for _ in range(2):
            k3 = np.tensordot(k3, self.inverse, axes=(1, 0))  # the first output stays as it is
        for _ in range(3):
            k4 = np.tensordot(k4, self.inverse, axes=(1, 0))
        straight = self.root - np.einsum("bijj->bi", k4) / 8
        middle = self.mean - np.einsum("bii->b", k3) / 6
        parts = [z @ straight.T + _bent(z, k3, k4) for z in _parts(noise[:, : self.root.shape[1]])]
        return middle + np.concatenate(parts)


def _parts(x: np.ndarray) -> list[np.ndarray]:
    rows = rows_that_fit(32.0 * x.shape[1] ** 2)
    return [x[start : start + rows] for start in range(0, len(x), rows)]


def _bracket(x: np.ndarray, k3: np.ndarray, k4: np.ndarray) -> np.ndarray:
    """1 + k_ijk He_ijk(x)/6 + k_ijkl He_ijkl(x)/24"""
    by_x = np.einsum("ijk,sk->sij", k3, x)
    by_xx = np.einsum("ijkl,sk,sl->sij", k4, x, x, optimize=True)
    three = np.einsum("sij,si,sj->s", by_x, x, x) - 3 * np.einsum("sii->s", by_x)
    four = np.einsum("sij,si,sj->s", by_xx, x, x) - 6 * np.einsum("sii->s", by_xx)
    return 1 + three / 6 + (four + 3 * np.einsum("iijj->", k4)) / 24


def _bent(z: np.ndarray, k3: np.ndarray, k4: np.ndarray) -> np.ndarray:
    """k_bij z_i z_j/6 + k_bijk z_i z_j z_k/24"""
    squared = np.einsum("bij,si,sj->sb", k3, z, z, optimize=True)
    cubed = np.einsum("bijk,si,sj,sk->sb", k4, z, z, z, optimize=True)
    return squared / 6 + cubed / 24
