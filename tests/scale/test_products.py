"""Products with a kernel matrix that is never held whole."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.scale.pivoted import Preconditioner, bytes_for, pivoted_cholesky
from nearkernel.scale.products import Held, Recomputed, products_of

rng = np.random.default_rng(3)
X = rng.normal(size=(930, 5))  # more than two tiles, none of them full at the end
RIGHT = rng.normal(size=(930, 3))
NET = nk.MLP(5, (8, 8), 1, "relu")
KERNELS = {
    "rbf": nk.kernels.RBF(1.5),
    "ntk": nk.kernels.NTK(NET),
    "algebra": nk.kernels.Laplace(2.0) * nk.kernels.RBF(1.0) + 0.5 * nk.kernels.Linear(),
    "features": nk.kernels.RandomFeatures(5, 40, jax.random.key(0)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_recomputed_products_are_those_of_the_matrix(name):
    with jax.enable_x64(True):
        kernel = KERNELS[name]
        matrix, again = kernel.matrix(X, None), Recomputed(kernel, X, 10**9)
        scale = np.abs(matrix).max() * len(X)
        assert np.abs(again.times(RIGHT) - matrix @ RIGHT).max() < 1e-13 * scale
        at = np.array([901, 3, 400])
        assert np.abs(again.columns(at) - matrix[:, at]).max() < 1e-13 * scale
        assert np.abs(again.row_products(at, RIGHT) - matrix[at] @ RIGHT).max() < 1e-13 * scale
        assert np.abs(again.diagonal() - np.diagonal(matrix)).max() < 1e-13 * scale


def test_products_do_not_depend_on_threads():
    with jax.enable_x64(True):
        one, two = Recomputed(KERNELS["rbf"], X, 10**9), Recomputed(KERNELS["rbf"], X, 10**9)
        one.threads, two.threads = 1, 5
        assert np.array_equal(one.times(RIGHT), two.times(RIGHT))


def test_the_budget_decides_what_is_held():
    with jax.enable_x64(True):
        assert isinstance(products_of(KERNELS["rbf"], X, 2 * 8 * 930**2), Held)
        assert isinstance(products_of(KERNELS["rbf"], X, 2 * 8 * 930**2 - 1), Recomputed)


def test_pivoted_cholesky_is_exact_on_its_pivots_and_near_optimal():
    with jax.enable_x64(True):
        matrix = KERNELS["rbf"].matrix(X[:400], None)
    found = pivoted_cholesky(Held(matrix), 60, seed=1)
    rest = matrix - found.factor @ found.factor.T
    assert np.abs(rest[found.pivots]).max() < 1e-10
    assert len(np.unique(found.pivots)) == 60
    assert found.left == pytest.approx(np.trace(rest) / 400, rel=1e-9)
    assert np.linalg.eigvalsh(rest)[0] > -1e-10
    best = np.linalg.eigvalsh(matrix)[:-60].sum()  # no rank-60 matrix leaves less
    assert best <= np.trace(rest) < 3 * best


def test_pivoted_cholesky_stops_at_the_rank_of_the_kernel():
    with jax.enable_x64(True):
        matrix = nk.kernels.Linear().matrix(X[:100], None)
    found = pivoted_cholesky(Held(matrix), 50)
    assert found.factor.shape[1] == 5 and np.abs(found.factor @ found.factor.T - matrix).max() < 1e-12


def test_preconditioner_is_the_inverse():
    factor = rng.normal(size=(80, 7))
    inverse = np.linalg.inv(factor @ factor.T + 0.3 * np.eye(80))
    right = rng.normal(size=(80, 2))
    assert np.abs(Preconditioner(factor, 0.3)(right) - inverse @ right).max() < 1e-12


@pytest.mark.parametrize("d", [2, 5])
def test_centers_in_float32_predict_as_in_float64(d):
    x, y = X[:, :d], np.sin(X[:, 0])
    solver = nk.dynamics.Nystrom(centers=200)
    fit = lambda: nk.solve(KERNELS["rbf"], x, y, nk.Ridge(0.1), solver=solver).predict(x[:50]).mean
    with nk.precision("float32"):
        single = fit()
    assert np.abs(single - fit()).max() < 1e-3


def test_dear_products_get_more_columns_within_the_memory():
    with jax.enable_x64(True):
        held, again = Held(KERNELS["rbf"].matrix(X, None)), Recomputed(KERNELS["rbf"], X, 10**9)
        ample, scarce = (nk.dynamics.ConjugateGradients(memory=size) for size in (10**9, 2 * 10**6))
        assert ample.rank_for(held) == 91 and ample.rank_for(again) == 236
        assert bytes_for(930, scarce.rank_for(again)) <= 10**6 < bytes_for(930, 236)
        assert nk.dynamics.ConjugateGradients(rank=5).rank_for(again) == 5
