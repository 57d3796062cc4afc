"""The short sum that stands for the tensor X: its length, its error, its shifts, its two bases."""

import mpmath
import numpy as np
import pytest

from nearkernel.dynamics.linear.factor import Spectrum, tridiagonal
from nearkernel.dynamics.orders.rank_one_sum import accumulated_pairs, rank_needed, wachspress_shifts
from support.helpers import relative_error


def spectrum_of(condition: float, n: int = 23, seed: int = 0) -> Spectrum:
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    return Spectrum(np.logspace(0, -np.log10(condition), n), vectors)


def separated_error(ratio: float, tol: float, terms: int | None = None) -> float:
    """The largest relative error of sum_k F_k(s) F_k(t) for 1/(s + t), which is R(s) R(t)."""
    count = rank_needed(ratio, tol) if terms is None else terms
    shifts = wachspress_shifts(1.0, ratio, count)
    s = np.geomspace(1.0, ratio, 4001)
    left = np.prod((s[:, None] - shifts) / (s[:, None] + shifts), axis=1)
    return float(np.abs(left).max() ** 2)


@pytest.mark.parametrize(
    ("tol", "ranks"), ((1e-6, (10, 17, 24, 31, 38)), (1e-8, (13, 22, 31, 40, 49))), ids=("1e-6", "1e-8")
)
def test_the_rank_formula_is_what_is_needed(tol, ranks):
    for ratio, rank in zip((1e2, 1e4, 1e6, 1e8, 1e10), ranks, strict=True):
        assert rank_needed(ratio, tol) == rank
        assert separated_error(ratio, tol) <= tol
        assert separated_error(ratio, tol, rank - 1) > tol  # not one term to spare


@pytest.mark.parametrize("ratio", (1.0, 3.0, 1e3, 1e10))
@pytest.mark.parametrize("count", (1, 2, 7, 30))
def test_shifts_are_elliptic_functions(ratio, count):
    with mpmath.workdps(40):
        m = 1 - mpmath.mpf(ratio) ** -2
        quarter = mpmath.ellipk(m)
        places = [(2 * k - 1) * quarter / (2 * count) for k in range(1, count + 1)]
        expected = [float(mpmath.re(ratio * mpmath.ellipfun("dn", u, m=m))) for u in places]
    # Near its minimum the error hardly depends on the shifts: seven digits of them are more than enough.
    np.testing.assert_allclose(wachspress_shifts(1.0, ratio, count), expected, rtol=1e-7)


def test_the_sum_over_two_eigenvalues_becomes_a_sum_of_two_numbers():
    lam, lr = np.array([0.01, 0.3, 1.1]), 1.7
    s, c = lam / (1 - lr * lam / 2), 1 / (1 - lr * lam / 2)
    below = lam[:, None] + lam - lr * np.outer(lam, lam)
    np.testing.assert_allclose(np.outer(c, c) / (s[:, None] + s), 1 / below, rtol=1e-13)


def exact_pairs(spectrum, residual, lr):
    lam, v = spectrum.lam, spectrum.vectors
    e = v.T @ residual
    inner = ((1 - lr * lam) / lam * e)[:, None] * e / (lam[:, None] + lam - lr * np.outer(lam, lam))
    return v @ inner @ v.T


@pytest.mark.parametrize("lr", (0.0, 0.7, 1.9))
@pytest.mark.parametrize("condition", (1e2, 1e6, 1e10))
def test_both_bases_give_the_whole_effect(condition, lr):
    spectrum = spectrum_of(condition)
    matrix = (spectrum.vectors * spectrum.lam) @ spectrum.vectors.T
    residual = np.random.default_rng(1).normal(size=len(matrix))
    expected = exact_pairs(spectrum, residual, lr)
    left, right = accumulated_pairs(spectrum, residual, lr)
    assert relative_error(left.T @ right, expected) < 1e-9
    factor = tridiagonal((matrix + matrix.T) / 2)
    left, right = accumulated_pairs(factor, residual, lr)
    # The matrix itself is known to 16 digits, so its smallest eigenvalue only to 16 - log10(condition).
    assert relative_error(left.T @ right, expected) < 1e-9 + 1e-14 * condition


def test_the_sum_solves_the_matrix_equation():
    """K Y + Y K - lr K Y K = e e^T, and the effect is K^-1 (1 - lr K) Y."""
    spectrum, lr = spectrum_of(40.0, n=9), 0.8
    k = (spectrum.vectors * spectrum.lam) @ spectrum.vectors.T
    e = np.random.default_rng(2).normal(size=9)
    left, right = accumulated_pairs(spectrum, e, lr)
    y = np.linalg.solve(np.linalg.solve(k, np.eye(9) - lr * k), left.T @ right)
    np.testing.assert_allclose(k @ y + y @ k - lr * k @ y @ k, np.outer(e, e), atol=1e-8)


def test_a_coarser_tolerance_takes_fewer_terms():
    spectrum = spectrum_of(1e4)
    residual = np.ones(23)
    expected = exact_pairs(spectrum, residual, 0.5)
    for tol in (1e-3, 1e-6):
        left, right = accumulated_pairs(spectrum, residual, 0.5, tol)
        s = spectrum.lam / (1 - 0.25 * spectrum.lam)
        assert len(left) == rank_needed(s.max() / s.min(), tol)
        inner = spectrum.vectors.T @ (left.T @ right - expected) @ spectrum.vectors
        exact = spectrum.vectors.T @ expected @ spectrum.vectors
        assert np.abs(inner / exact).max() <= 1.01 * tol


@pytest.mark.parametrize("n", (1, 2, 30))
def test_a_tridiagonal_factor_is_the_spectrum(n):
    spectrum = spectrum_of(50.0, n=n) if n > 1 else Spectrum(np.array([2.0]), np.eye(1))
    matrix = (spectrum.vectors * spectrum.lam) @ spectrum.vectors.T
    factor = tridiagonal(matrix.copy())
    right = np.random.default_rng(3).normal(size=(n, 3))
    np.testing.assert_allclose(factor.leave(factor.enter(right)), right, atol=1e-13)
    np.testing.assert_allclose(factor.leave(factor.times(factor.enter(right))), matrix @ right, atol=1e-13)
    found = factor.leave(factor.divided(factor.enter(right), 0.3, 0.7))
    np.testing.assert_allclose(found, np.linalg.solve(0.3 * np.eye(n) + 0.7 * matrix, right), atol=1e-12)
    np.testing.assert_allclose(factor.solve(right), spectrum.solve(right), atol=1e-11)
    np.testing.assert_allclose(factor.solve(right[:, 0]), spectrum.solve(right[:, 0]), atol=1e-11)
    assert factor.lam_min == pytest.approx(spectrum.lam_min) and factor.lam_max == pytest.approx(
        spectrum.lam_max
    )


def test_a_singular_matrix_has_no_tridiagonal_factor():
    columns = np.random.default_rng(4).normal(size=(8, 5))
    assert tridiagonal(columns @ columns.T) is None
