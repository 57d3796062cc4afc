"""Linear, polynomial, Gaussian and Laplace kernels against their formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as sk

import nearkernel as nk
from support import helpers

X, Y = helpers.points(9, 4), helpers.points(5, 4, 1)


@pytest.mark.parametrize(
    "kernel, formula",
    [
        (nk.kernels.Linear(), lambda x, y: x @ y.T),
        (nk.kernels.Polynomial(), lambda x, y: (x @ y.T + 1.0) ** 2),
        (nk.kernels.Polynomial(5, 0.3), lambda x, y: (x @ y.T + 0.3) ** 5),
        (nk.kernels.RBF(), lambda x, y: np.exp(-(cdist(x, y) ** 2) / 2)),
        (nk.kernels.RBF(0.4), lambda x, y: np.exp(-(cdist(x, y) ** 2) / 0.32)),
        (nk.kernels.Laplace(), lambda x, y: np.exp(-cdist(x, y))),
        (nk.kernels.Laplace(2.5), lambda x, y: np.exp(-cdist(x, y) / 2.5)),
        (nk.kernels.Matern(2.5, nu=0.5), lambda x, y: np.exp(-cdist(x, y) / 2.5)),
        (nk.kernels.Matern(1.3), sk.Matern(1.3, nu=1.5)),
        (nk.kernels.Matern(0.6, nu=2.5), sk.Matern(0.6, nu=2.5)),
        (
            nk.kernels.Periodic(1.7, 0.8),
            lambda x, y: np.exp(
                -2 * (np.sin(np.pi * (x[:, None] - y[None]) / 1.7) ** 2).sum(axis=2) / 0.8**2
            ),
        ),
        (
            nk.kernels.ARD(nk.kernels.RBF(1.0), [0.5, 1.0, 2.0, 4.0]),
            sk.RBF([0.5, 1.0, 2.0, 4.0]),
        ),
        (
            nk.kernels.ARD(nk.kernels.Matern(2.0), [0.5, 1.0, 2.0, 4.0]),
            sk.Matern([1.0, 2.0, 4.0, 8.0], nu=1.5),
        ),
    ],
)
def test_equal_to_the_formula(kernel, formula):
    np.testing.assert_allclose(kernel(X), formula(X, X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X, Y), formula(X, Y), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(formula(X, X)), rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_neighbours_keep_their_distance(offset):
    """1 - k of points 1e-7 apart, relative to their norms: no cancellation."""
    x = helpers.points(4, 3) + offset
    size = np.linalg.norm(x, axis=1)
    y = x + 1e-7 * size[:, None] * helpers.points(4, 3, 1)
    distance = np.linalg.norm(x - y, axis=1)
    laplace = np.diagonal(nk.kernels.Laplace(size.max())(x, y))
    np.testing.assert_allclose(-np.log(laplace), distance / size.max(), rtol=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_polynomial_is_the_dot_product_of_its_features(degree, bias):
    from math import comb

    kernel = nk.kernels.Polynomial(degree, bias)
    assert kernel.features(X).shape == (9, comb(4 + degree, degree))
    np.testing.assert_allclose(
        kernel.features(X) @ kernel.features(Y).T, kernel(X, Y), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: nk.kernels.Polynomial(0), ValueError, "`degree` must be at least 1; got 0"),
        (lambda: nk.kernels.Polynomial(2.5), TypeError, "`degree` must be an integer; got 2.5"),
        (lambda: nk.kernels.Polynomial(2, -1.0), ValueError, "`bias` must be at least 0; got -1.0"),
        (lambda: nk.kernels.Matern(1.0, nu=2.0), ValueError, "`nu` must be 0.5, 1.5 or 2.5; got 2.0"),
        (lambda: nk.kernels.Matern(0.0), ValueError, "`length` must be greater than 0; got 0.0"),
        (lambda: nk.kernels.Periodic(0.0), ValueError, "`period` must be greater than 0; got 0.0"),
        (
            lambda: nk.kernels.ARD(nk.kernels.RBF(), [1.0, -1.0]),
            ValueError,
            r"`lengths` must be a vector of numbers greater than 0, one per column; .* smallest value -1",
        ),
        (
            lambda: nk.kernels.ARD(nk.kernels.NNGP(nk.MLP(3)), [1.0, 1.0]),
            ValueError,
            r"`lengths` must have shape \(3,\), as `kernel` needs; got \(2,\)",
        ),
        (lambda: nk.kernels.RBF(0.0), ValueError, "`length` must be greater than 0; got 0.0"),
        (lambda: nk.kernels.RBF("1"), TypeError, "`length` must be one number; got '1'"),
        (lambda: nk.kernels.Laplace(np.inf), ValueError, "`length` must be finite; got inf"),
        (lambda: nk.kernels.Laplace(np.nan), ValueError, "`length` must be a number; got nan"),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("length", [1.5, 1e-30, 1e30])
def test_float32_entries_of_numpy_are_those_of_the_compiled_program(length, monkeypatch):
    x, kernel = np.random.default_rng(4).normal(size=(130, 3)), nk.kernels.RBF(length)
    with nk.precision("float32"):
        found = kernel(x)
        monkeypatch.setattr(nk.kernels.RBF, "pairs_on_host", lambda *_: None)
        expected = kernel(x)
    assert found.dtype == expected.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-6
