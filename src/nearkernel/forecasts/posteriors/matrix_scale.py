r"""Several outputs of a Bayesian network of finite width: they share neurons, so their scale is a matrix.

Given the readout W (N, C), the outputs of a linear network are Gaussian with the covariance S (x) K, S = W^T W / N, a
Wishart matrix; for one output it is the Gamma variable of the scale law. Several linear layers multiply their
triangular factors (Bartlett): S = B B^T, B = A_L ... A_1 / sqrt(N_L ... N_1); squared diagonals of A are chi^2, entries
below are standard normal. In the eigenvectors of K the likelihood is a product over modes, so that a draw of S costs
P C^2. The integral over S is taken by importance sampling, with quasi-random draws of a Student law that is fitted to
the posterior.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special as special
import scipy.stats.qmc

from ..._run.memory import require_fits
from .scale_mixture import Process

_DRAWS = 2**12  # of the matrix; a power of two, as Sobol points want
_FREEDOM = 8  # of the Student law: its tails are heavier than those of the posterior
_ROUNDS = 6  # of fitting the Student law
_ENOUGH = 0.3  # share of draws that count, with which it fits


class MatrixMixture(NamedTuple):
    """Gaussian laws of C outputs at m inputs, for each of k scales.

    **Fields:** `weights` (k,); `scales` (k, C, C); `means` and `variances` (k, m, C); `log_evidence`; `share` of draws
    that count.
    """

    weights: np.ndarray
    scales: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    log_evidence: float
    share: float


class _Factors:
    """B as a function of a vector: logarithms of diagonals and entries below them, of all layers."""

    def __init__(self, widths: tuple[int, ...], out: int):
        self.out, self.shapes, self.norm = out, [], math.sqrt(math.prod(map(float, widths)))
        self.freedom: list[np.ndarray] = []
        rows = out
        for width in reversed(widths):  # the readout first
            columns = min(rows, width)
            self.shapes.append((rows, columns))
            self.freedom.append(width - np.arange(columns, dtype=float))
            rows = columns
        self.diagonals = sum(columns for _, columns in self.shapes)
        self.size = sum(columns + len(np.tril_indices(rows, -1, columns)[0]) for rows, columns in self.shapes)

    def start(self) -> np.ndarray:
        """The peak of the prior."""
        found = np.zeros(self.size)
        found[: self.diagonals] = 0.5 * np.log(np.concatenate(self.freedom))
        return found

    def matrix(self, v: np.ndarray) -> np.ndarray:
        """B (k, out, columns) of vectors (k, size)."""
        found, at, below = np.eye(self.out)[None] / self.norm, 0, self.diagonals
        for rows, columns in self.shapes:
            factor = np.zeros((len(v), rows, columns))
            i, j = np.tril_indices(rows, -1, columns)
            factor[:, np.arange(columns), np.arange(columns)] = np.exp(v[:, at : at + columns])
            factor[:, i, j] = v[:, below : below + len(i)]
            at, below, found = at + columns, below + len(i), found @ factor
        return found

    def log_prior(self, v: np.ndarray) -> np.ndarray:
        """(k,)."""
        logs, nu = v[:, : self.diagonals], np.concatenate(self.freedom)
        normal = math.log(2.0) * (nu / 2 - 1) + special.gammaln(nu / 2)
        chi = (nu * logs - 0.5 * np.exp(2 * logs) - normal).sum(axis=1)
        rest = v[:, self.diagonals :]
        return chi - 0.5 * (rest**2 + math.log(2 * math.pi)).sum(axis=1)


class _Modes:
    """Likelihood and laws of C outputs with the covariance S (x) K + rest, in the basis of a `Process`."""

    def __init__(self, process: Process):
        self.process = process

    def log_likelihood(self, root: np.ndarray) -> np.ndarray:
        """Of every S = B B^T, from B (k, C, columns): (k,)."""
        p = self.process
        scales, vectors = _eigen(root)
        y = p.y @ vectors  # (k, P, C)
        d = scales[:, None, :] * p.lam[:, None] + p.shift
        with np.errstate(divide="ignore", over="ignore"):
            fit = (y**2 / d + np.log(d)).sum(axis=(1, 2)) + p.y.shape[1] * p.log_det
        return -0.5 * (fit + p.y.size * math.log(2 * math.pi))

    def law(self, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (k, m, C)."""
        p = self.process
        scales, vectors = _eigen(root)
        d = scales[:, None, :] * p.lam[:, None] + p.shift  # (k, P, C)
        pulled = (p.y @ vectors) / d
        scales = scales[:, None, :]
        means = scales * (p.cross @ pulled) + (p.offset @ pulled)[:, None]
        seen = (
            scales**2 * (p.cross**2 @ (1 / d))
            + 2 * scales * ((p.cross * p.offset) @ (1 / d))
            + (p.offset**2 @ (1 / d))[:, None]
        )
        own = np.maximum(scales * p.new[:, None] + p.bias - seen, 0.0)
        return means @ vectors.transpose(0, 2, 1), own @ (vectors**2).transpose(0, 2, 1)


def _eigen(root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    vectors, singular, _ = np.linalg.svd(root, full_matrices=True)
    scales = np.zeros(vectors.shape[:2])
    scales[:, : singular.shape[1]] = singular**2
    return scales, vectors


def matrix_mixture(process: Process, widths: tuple[int, ...]) -> MatrixMixture:
    """The law of all outputs, by the posterior of their scale."""
    factors, modes = _Factors(widths, process.y.shape[1]), _Modes(process)
    entries = _DRAWS * process.y.shape[1] * max(len(process.lam), len(process.new))
    require_fits(8 * 8 * entries, f"{_DRAWS} laws of {len(process.new)} points", "use fewer points at a time")

    def log_density(v: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            found = factors.log_prior(v) + modes.log_likelihood(factors.matrix(v))
        return np.where(np.isnan(found), -np.inf, found)

    center, spread = _peak(log_density, factors.start())
    for _ in range(_ROUNDS):
        v, logs = _weighed(log_density, center, spread)
        weights = np.exp(logs - special.logsumexp(logs))
        share = 1.0 / (len(v) * (weights**2).sum())
        if share > _ENOUGH:
            break
        center = weights @ v
        away = (v - center) * np.sqrt(weights)[:, None]
        spread = away.T @ away + 1e-3 * spread  # never flat
    root = factors.matrix(v)
    means, variances = modes.law(root)
    log_evidence = float(special.logsumexp(logs) - math.log(len(v)))
    return MatrixMixture(
        weights, root @ root.transpose(0, 2, 1), means, variances, log_evidence, float(share)
    )


def _peak(log_density, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the density is largest, and the covariance of the Gaussian that osculates it there."""
    step = 1e-4
    moves = step * np.eye(len(start))

    def value_and_slope(v: np.ndarray) -> tuple[float, np.ndarray]:
        found = log_density(np.concatenate([v[None], v + moves, v - moves]))
        return -float(found[0]), -(found[1 : len(v) + 1] - found[len(v) + 1 :]) / (2 * step)

    at = scipy.optimize.minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-3}).x
    curvature = np.array(
        [(value_and_slope(at + m)[1] - value_and_slope(at - m)[1]) / (2 * step) for m in moves]
    )
    lam, vectors = scipy.linalg.eigh(0.5 * (curvature + curvature.T))
    lam = np.maximum(lam, 1e-2)  # a flat direction is taken to be of size 10
    return at, (vectors / lam) @ vectors.T


def _weighed(log_density, center: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws (k, size) of the Student law, and the logarithms of density over their own."""
    size = len(center)
    uniform = scipy.stats.qmc.Sobol(size + 1, rng=np.random.default_rng(0)).random(_DRAWS)
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    z, chi = special.ndtri(uniform[:, :size]), 2 * special.gammaincinv(_FREEDOM / 2, uniform[:, size])
    lam, vectors = scipy.linalg.eigh(spread)
    lam = np.maximum(lam, 1e-12 * lam[-1])
    t = z * np.sqrt(_FREEDOM / chi)[:, None]
    own = (
        special.gammaln((_FREEDOM + size) / 2)
        - special.gammaln(_FREEDOM / 2)
        - size / 2 * math.log(_FREEDOM * math.pi)
        - 0.5 * np.log(lam).sum()
        - (_FREEDOM + size) / 2 * np.log1p((t**2).sum(axis=1) / _FREEDOM)
    )
    v = center + (t * np.sqrt(lam)) @ vectors.T
    return v, log_density(v) - own
