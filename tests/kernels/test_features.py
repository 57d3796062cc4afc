"""Random features tend to the covariance of their layer; given features are their dot product."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.activations import get
from nearkernel.theory import dual
from support import helpers

X = helpers.points(4, 3)


def layer_covariance(activation, weight_var, bias_var):
    first = bias_var + weight_var * X @ X.T / 3
    q = np.diagonal(first)
    correlation = np.clip(first / np.sqrt(np.outer(q, q)), -1.0, 1.0)
    return dual(get(activation), q[:, None], q, correlation)[0]


def test_features_are_the_formula():
    kernel = nk.kernels.RandomFeatures(3, 7, jax.random.key(0), "tanh", 1.6, 0.2)
    weight, bias = np.asarray(kernel.weight), np.asarray(kernel.bias)
    phi = np.tanh(np.sqrt(1.6 / 3) * X @ weight + np.sqrt(0.2) * bias) / np.sqrt(7)
    np.testing.assert_allclose(kernel.features(X), phi, rtol=1e-12)
    np.testing.assert_allclose(kernel(X), phi @ phi.T, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_error_falls_as_the_root_of_the_size(activation):
    """Root mean square over 40 draws, at sizes 16 times apart: a ratio of 4, within its own error."""
    theory = layer_covariance(activation, 1.6, 0.2)
    errors = {}
    for size in (50, 800):
        draws = [
            nk.kernels.RandomFeatures(3, size, jax.random.key(seed), activation, 1.6, 0.2)(X) - theory
            for seed in range(40)
        ]
        errors[size] = np.sqrt(np.mean(np.square(draws)))
        assert np.abs(np.mean(draws, axis=0)).max() < 4 * np.std(draws, axis=0, ddof=1).max() / np.sqrt(40)
    assert 3.0 < errors[50] / errors[800] < 5.3


def test_given_features_are_their_dot_product():
    kernel = nk.kernels.FeatureKernel(lambda x: x**3)
    np.testing.assert_allclose(kernel(X), X**3 @ (X**3).T, rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), (X**6).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"in_dim": 0}, ValueError, "`in_dim` must be at least 1; got 0"),
        ({"size": 0}, ValueError, "`size` must be at least 1; got 0"),
        ({"size": 3.0}, TypeError, "`size` must be an integer; got 3.0"),
        ({"activation": "tanhh"}, ValueError, r"'tanhh' is unknown.*Did you mean 'tanh'\?"),
        ({"weight_var": 0.0}, ValueError, "`weight_var` must be greater than 0; got 0.0"),
        ({"bias_var": -1.0}, ValueError, "`bias_var` must be at least 0; got -1.0"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        nk.kernels.RandomFeatures(**({"in_dim": 3, "size": 4, "key": jax.random.key(0)} | arguments))
