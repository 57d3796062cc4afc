"""nk.precision("float32"): five digits of every entry, in arrays of half the size."""

import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

X = np.random.default_rng(0).normal(size=(300, 12))
X[7] = X[3] * (1 + 1e-4)  # nearly parallel


@pytest.mark.parametrize("activation", few(["relu", "erf", "gelu", "tanh", "sigmoid", "softplus", "silu"], 3))
def test_kernels_in_float32_have_five_digits(activation):
    net = nk.MLP(12, (8,) * 3, 1, activation, 1.5, 0.1)
    exact = nk.kernels.nngp_and_ntk(net, X)
    with nk.precision("float32"):
        found = nk.kernels.nngp_and_ntk(net, X)
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == np.float32 and other.dtype == np.float64
        size = np.sqrt(np.outer(np.diagonal(other), np.diagonal(other)))
        assert (np.abs(one - other) / size).max() < 1e-5
