"""Standard deviations are had without the (m, m) covariance, and are the roots of its diagonal."""

import tracemalloc

import numpy as np
import pytest

import nearkernel as nk

N, M, DIM = 24, 3000, 3
rng = np.random.default_rng(5)
X, Y, NEW = rng.normal(size=(N, DIM)), rng.normal(size=N), rng.normal(size=(M, DIM))
NET = nk.MLP(DIM, (16,), 1, "erf", 1.3, 0.2)
NOISY = nk.SGD(0.01, 6, 4, momentum=0.3, noise=0.2)
LAWS = {
    "forecast": lambda x: nk.forecast(NET, X, Y, nk.GradientFlow(), x),
    "forecast at a time": lambda x: nk.forecast(NET, X, Y, nk.GradientFlow(0.7), x),
    "last layer": lambda x: nk.forecast((nk.kernels.NNGP(NET),) * 2, X, Y, nk.GradientFlow(), x),
    "posterior": lambda x: nk.posterior(nk.kernels.NNGP(NET), X, Y, x, noise=0.1),
    "SGD, forecast": lambda x: nk.forecast(NET, X, Y, NOISY, x),
    "SGD, kernel": lambda x: nk.solve(nk.kernels.NTK(NET), X, Y, NOISY).predict(x),
    "SGD, network": lambda x: nk.solve(nk.expand(NET, NET.init(0)), X, Y, NOISY).predict(x),
}


@pytest.mark.parametrize("name", LAWS)
def test_std_needs_no_matrix(name):
    few = LAWS[name](NEW[:7])
    std = few.std
    assert "cov" not in vars(few)
    np.testing.assert_allclose(std**2, np.diagonal(few.cov), atol=1e-12 * np.abs(few.cov).max())
    tracemalloc.start()
    try:
        many = LAWS[name](NEW).std
        assert tracemalloc.get_traced_memory()[1] < 8 * M**2 / 8
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(many[:7], std, rtol=1e-9)
