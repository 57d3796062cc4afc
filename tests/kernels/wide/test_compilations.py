"""A new number of points, and a new depth, compile nothing."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

X = np.random.default_rng(0).normal(size=(800, 5))
NET = nk.MLP(5, (8, 8), 1, "relu", 1.5, 0.1)
FIRST, LATER = (300, 777), (310, 790)
CALLS = {
    "relu": lambda n: nk.kernels.nngp_and_ntk(NET, X[:n]),
    "erf": lambda n: nk.kernels.nngp_and_ntk(nk.MLP(5, (8, 8), 1, "erf", 1.5, 0.1), X[:n]),
    "tanh": lambda n: nk.kernels.nngp_and_ntk(nk.MLP(5, (8, 8), 1, "tanh", 1.5, 0.1), X[:n]),
    "new points": lambda n: nk.kernels.NTK(NET)(X[:n], X[n:]),
    "laplace": lambda n: nk.kernels.Laplace(2.0)(X[:n]),
    "forecast": lambda n: nk.forecast(NET, X[:n], X[:n, 0], nk.GradientFlow(), X[-9:]).cov,
    "posterior": lambda n: nk.posterior(nk.kernels.NNGP(NET), X[:n], X[:n, 0], X[-9:], 0.1).std,
}


@pytest.fixture
def compilations():
    """A list that grows by one entry for each program that is compiled, or read from a cache."""
    found: list[str] = []
    listening = [True]

    def listen(event: str, _seconds: float, **_) -> None:
        if listening[0] and event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    listening[0] = False


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", few(["float64", "float32"], 1))
def test_a_new_number_of_points_compiles_nothing(name, dtype, compilations):
    jax.clear_caches()
    with nk.precision(dtype):
        for n in FIRST:
            CALLS[name](n)
        before = len(compilations)
        assert before or name == "laplace"  # which needs none
        for n in LATER:
            CALLS[name](n)
    assert len(compilations) == before


@pytest.mark.parametrize("activation", few(["relu", "erf", "gelu", "sin"], 2))
def test_a_new_depth_compiles_nothing_and_gives_the_same(activation, compilations):
    deep = lambda depth: nk.MLP(5, (8,) * depth, 1, activation, 1.5, 0.1)
    jax.clear_caches()
    nk.kernels.nngp_and_ntk(deep(3), X[:50])
    before = len(compilations)
    found = {depth: nk.kernels.nngp_and_ntk(deep(depth), X[:50]) for depth in (2, 4)}
    assert len(compilations) == before
    for depth, pair in found.items():
        traced = jax.jit(lambda x, net=deep(depth): nk.kernels.nngp_and_ntk(net, x))
        with jax.enable_x64(True):
            for one, other in zip(pair, traced(X[:50]), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10)


def test_data_of_single_inputs_are_not_compiled(compilations):
    jax.clear_caches()
    nk.kernels.NTK(NET).diag(X)
    assert not compilations
