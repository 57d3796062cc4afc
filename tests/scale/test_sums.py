"""Sums in float32 within pieces, in float64 between them: six digits at any length."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.kernels.classical import stationary as _classic
from nearkernel.scale import centers as _centers
from nearkernel.scale.pivoted import Preconditioner, pivoted_cholesky
from nearkernel.scale.products import Held, Recomputed
from nearkernel.scale.sums import columns_times, gram_of

rng = np.random.default_rng(11)
X = rng.normal(size=(2500, 12))
WIDE = nk.kernels.RBF(4.0)


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("kernel", [WIDE, nk.kernels.NTK(nk.MLP(12, (8, 8), 1, "erf"))], ids=["rbf", "ntk"])
@pytest.mark.parametrize("positive", [True, False])
def test_products_in_float32_have_six_digits(kernel, positive):
    """Relative to their norm, also where terms cancel; entries alone cost less."""
    right = rng.normal(size=(2500, 2))
    right = np.abs(right) if positive else right
    with jax.enable_x64(True):
        exact = Recomputed(kernel, X, 10**9).times(right)
        with nk.precision("float32"):
            matrix, again = kernel.matrix(X, None), Recomputed(kernel, X, 10**9).times(right)
            held = Held(matrix).times(right)
    assert matrix.dtype == np.float32 and again.dtype == held.dtype == np.float64
    assert relative(matrix.astype(np.float64) @ right, exact) < 3e-7  # what the entries alone cost
    assert relative(again, exact) < 1e-6 and relative(held, exact) < 1e-6


def test_a_long_sum_in_float32_keeps_its_digits():
    """All in float32 the error would grow with the length of the sum."""
    long, ones = rng.uniform(0.5, 1.0, size=(400_000, 3)).astype(np.float32), np.ones((400_000, 1))
    exact = long.astype(np.float64).T @ ones
    assert np.abs(columns_times(long, ones) / exact - 1).max() < 1e-6
    assert np.abs(columns_times(long.astype(np.float64), ones) / exact - 1).max() < 1e-14


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gram_matrix_is_whole_and_symmetric(dtype):
    rows = rng.uniform(size=(9001, 7)).astype(dtype)
    found = gram_of(rows)
    exact = rows.astype(np.float64).T @ rows.astype(np.float64)
    assert np.array_equal(found, found.T) and found.dtype == np.float64
    assert relative(found, exact) < (1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("length", [0.6, 1.9, 4.0, 40.0])
def test_entries_from_one_product_have_six_digits(length):
    """Those of points that are far apart for their length take the usual way."""
    x = np.concatenate([X[:450], X[:5] + 1e-4, X[:5]])
    kernel = nk.kernels.RBF(length)
    exact = kernel(x)
    with nk.precision("float32"):
        single, cross = kernel(x), kernel(x[:333], x[50:])
    assert (
        single.dtype == np.float32 and np.array_equal(single, single.T) and np.all(np.diagonal(single) == 1)
    )
    assert np.abs(single - exact).max() < 2e-6 and np.abs(cross - exact[:333, 50:]).max() < 2e-6


def test_large_exponents_take_the_usual_way(monkeypatch):
    kernel, x = nk.kernels.RBF(1.0), X[:300] + 300.0  # one product would lose its digits
    exact = kernel(x)
    with nk.precision("float32"):
        assert np.abs(kernel(x) - exact).max() < 1e-3
        monkeypatch.setattr(_classic, "_LARGEST_EXPONENT", np.inf)
        assert np.abs(kernel(x) - exact).max() > 1e-2


def sums(kernel, centers, y, single):
    with jax.enable_x64(True), nk.precision("float32" if single else "float64"):
        return _centers._sums(kernel, X, y, centers, 10**9, single)


def test_sums_over_centers_in_float32_are_those_of_all_rows():
    y = np.stack([np.sin(X[:, 0]), 3.0 + X[:, 1]], axis=1)
    rows = WIDE(X, X[:150])
    expected = rows.T @ rows, rows.T @ y, np.square(y).sum(axis=0)
    for single, close in ((False, 1e-13), (True, 3e-7)):
        for found, exact in zip(sums(WIDE, X[:150], y, single), expected, strict=True):
            assert relative(found, exact) < close


def test_float32_is_for_centers_that_bear_it():
    rough, smooth = nk.kernels.RBF(2.0), nk.kernels.RBF(4.0)
    lam = {kernel: np.linalg.eigvalsh(kernel(X[:200]))[[0, -2]] for kernel in (rough, smooth)}
    with nk.precision("float32"):
        assert _centers._bear_float32(*lam[rough], 2500) and not _centers._bear_float32(*lam[smooth], 2500)
        assert _centers._bear_float32(*lam[smooth], 10**8)  # rounding averages out
    assert not _centers._bear_float32(*lam[rough], 2500)
    y, solver = np.sin(X[:, 0]), nk.dynamics.Nystrom(centers=X[:200])
    for kernel in (rough, smooth):
        double = nk.solve(kernel, X, y, nk.Ridge(0.1), solver=solver).predict(X[:50] + 0.1).mean
        with nk.precision("float32"):
            single = nk.solve(kernel, X, y, nk.Ridge(0.1), solver=solver).predict(X[:50] + 0.1).mean
        assert np.abs(single - double).max() < 1e-4


def test_a_preconditioner_in_float32_saves_as_many_iterations():
    y, found = np.sin(X[:, :1]), {}
    for dtype in ("float64", "float32"):
        with jax.enable_x64(True), nk.precision(dtype):
            factor = pivoted_cholesky(Recomputed(WIDE, X, 10**9), 300).factor
            assert factor.dtype == dtype
            found[dtype] = Preconditioner(factor, 0.1)(y)
            solver = nk.dynamics.ConjugateGradients(tol=1e-4, rank=300, memory="30MB")
            found[dtype, "solved"] = nk.solve(WIDE, X, y, nk.Ridge(0.1), solver=solver)
    assert relative(found["float32"], found["float64"]) < 1e-3
    double, single = found["float64", "solved"], found["float32", "solved"]
    assert single.ok and single.iterations <= double.iterations + 1
