"""Infinite-width kernels of networks made of layers: against neural-tangents, and against drawn networks."""

from pathlib import Path

import numpy as np
import pytest

import nearkernel as nk
from support.architectures import GOLDEN
from support.cases import few
from support.networks import network

L = nk.layers
STORED = np.load(Path(__file__).parents[2] / "golden" / "architectures.npz")


def inputs_of(name):
    """The inputs that the stored values were made from (see benchmarks/_stax.py)."""
    draw = np.random.default_rng(list(GOLDEN).index(name)).normal
    shape = GOLDEN[name][0]
    return draw(size=(4, *shape)), draw(size=(4, *shape))


@pytest.mark.parametrize("name", few(GOLDEN, 6))
def test_it_agrees_with_neural_tangents(name):
    """To 1e-12; on the diagonal of a tangent kernel they have 8 digits behind relu."""
    net, (x1, x2) = network(*GOLDEN[name]), inputs_of(name)
    for pair, sides in {"own": (x1,), "cross": (x1, x2)}.items():
        for kind, found in zip(("nngp", "ntk"), nk.kernels.nngp_and_ntk(net, *sides), strict=True):
            expected = STORED[f"{name}/{pair}/{kind}"]
            apart = np.abs(found / expected - 1.0)
            if pair == "own":
                assert np.diagonal(apart).max() < (2e-8 if kind == "ntk" else 1e-12)
                np.fill_diagonal(apart, 0.0)
            assert apart.max() < 1e-12, (pair, kind)


@pytest.mark.parametrize("count", few([1, 7], {7}))
@pytest.mark.parametrize("last", ["pool", "blocks", "attention"])
def test_tiles_do_not_show(count, last):
    """Whole matrices are those of single pairs, however many inputs there are."""
    layers = {
        "pool": [L.Conv(4, (3, 3)), L.Activation("relu"), L.GlobalAvgPool()],
        "blocks": [
            L.Conv(4, (3, 3)),
            L.Activation("relu"),
            L.AvgPool((2, 2)),
            L.Conv(4, (3, 3)),
            L.Flatten(),
        ],
        "attention": [L.Dense(4), L.Attention(4), L.GlobalAvgPool()],
    }[last]
    net = nk.Network((12, 12, 2), [*layers, L.Dense(1)])
    x = np.random.default_rng(count).normal(size=(count, 12, 12, 2))
    kernel = nk.kernels.NTK(net)
    single = [[kernel(x[i : i + 1], x[j : j + 1])[0, 0] for j in range(count)] for i in range(count)]
    np.testing.assert_allclose(kernel(x), single, rtol=1e-12)
