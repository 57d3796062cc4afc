r"""The first-order effect of training to its end, as a short sum of rank-one terms.

The effect is sum_ij ehat_i ehat_j / D_ij over pairs of eigenvalues, D_ij = lam_i + lam_j - lr lam_i lam_j. With
s = lam / (1 - lr lam/2) this is a sum 1/(s_i + s_j), which Wachspress' shifts p_k separate:

    1/(s_i + s_j) = sum_{k <= r} F_k(s_i) F_k(s_j) + R_i R_j / (s_i + s_j),   |R| <= sqrt(tol),

with r = ceil(ln(4 s_max/s_min) ln(4/tol) / pi^2). So r vectors do what a tensor of N^4 entries would.
"""

import math

import numpy as np

from ..linear.factor import RationalFactor

TOLERANCE = 1e-10


def rank_needed(ratio: float, tol: float = TOLERANCE) -> int:
    """Terms for an entrywise relative error `tol` if s_max/s_min = `ratio`."""
    return max(1, math.ceil(math.log(4 * ratio) * math.log(4 / tol) / math.pi**2))


def wachspress_shifts(least: float, most: float, count: int) -> np.ndarray:
    """p_k = most dn((2k - 1) Kc / (2 count)) with complementary modulus least/most, the largest first.

    By the arithmetic-geometric mean of the complementary modulus, which a condition number of 1e10 does not round
    away; the smaller half by p_k p_{count+1-k} = least * most.
    """
    a, b, means = 1.0, least / most, []
    while True:
        a, b, c = (a + b) / 2, math.sqrt(a * b), (a - b) / 2
        means.append((a, c))
        if c < 1e-17 * a or len(means) > 40:
            break
    k = np.arange(1, count + 1)
    angle = 2.0 ** len(means) * a * (2 * k - 1) / (2 * count) * (math.pi / (2 * a))
    before = angle
    for mean, gap in reversed(means):
        before, angle = angle, (angle + np.arcsin(gap / mean * np.sin(angle))) / 2
    shifts = most * np.cos(angle) / np.cos(before - angle)
    half = count // 2
    shifts[count - half :] = least * most / shifts[:half][::-1]
    if count % 2:
        shifts[half] = math.sqrt(least * most)
    return shifts


def accumulated_pairs(
    factor: RationalFactor, residual: np.ndarray, lr: float, tol: float = TOLERANCE
) -> tuple[np.ndarray, np.ndarray]:
    """P, Q (r, m) with sum_k P_k Q_k^T = sum over steps of (residual) x (what was accumulated before).

    This is Z_A contracted with two residuals: entry (i, j) in the eigenbasis is (1 - lr lam_i) / (lam_i D_ij).
    `lr` = 0 is gradient flow.
    """
    least, most = (lam / (1 - lr * lam / 2) for lam in (factor.lam_min, factor.lam_max))
    shifts = wachspress_shifts(least, most, rank_needed(most / least, tol))
    right = []
    vector = factor.enter(residual)
    for k, p in enumerate(shifts):
        if k:
            last = shifts[k - 1]
            vector = math.sqrt(p / last) * ((1 + last * lr / 2) * factor.times(vector) - last * vector)
        else:
            vector = math.sqrt(2 * p) * vector
        vector = factor.divided(vector, p, 1 - p * lr / 2)
        right.append(vector)
    q = np.stack(right, axis=1)
    both = factor.leave(np.concatenate([factor.divided(q, 0.0, 1.0) - lr * q, q], axis=1)).T
    return both[: len(shifts)], both[len(shifts) :]
