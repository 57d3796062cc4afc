"""`propagate` at infinite width: every layer equals the kernel of the network cut off there."""

import numpy as np
import pytest

import nearkernel as nk
from support import helpers

X = np.vstack([helpers.points(3, 4), helpers.points(1, 4), -helpers.points(1, 4, 1)])  # a copy among them


@pytest.mark.parametrize(
    "activation, parametrization", [("tanh", "ntk"), ("relu", "mean_field"), (helpers.hard_tanh, "standard")]
)
def test_every_layer_is_the_kernel_of_the_network_cut_off_there(activation, parametrization):
    def net(depth):
        return nk.MLP(4, (7,) * depth, 2, activation, 1.3, 0.1, parametrization)

    found = nk.propagate(net(4), X)
    assert len(found) == 5 and len(list(found)) == 5
    for layer in (5,) if parametrization == "mean_field" else (1, 3, 5):
        nngp, ntk = nk.kernels.nngp_and_ntk(net(layer - 1), X)
        np.testing.assert_allclose(found[layer].kernel, nngp, rtol=1e-10)
        np.testing.assert_allclose(found[layer].ntk, ntk, rtol=1e-7)
        size = np.sqrt(np.diagonal(nngp))
        np.testing.assert_allclose(found[layer].correlation, nngp / np.outer(size, size), atol=1e-10)


def test_every_layer_of_any_network_is_the_kernel_of_the_network_cut_off_there():
    L = nk.layers
    block = L.Residual([L.LayerNorm(), L.Activation("gelu"), L.Dense(5, bias_var=0.2)])
    vectors = [
        L.Dense(5, 1.4, 0.1),
        block,
        L.Concat([[L.Dense(4)], [L.Dense(6)]]),
        L.Activation("relu"),
        L.Dense(1),
    ]
    conv = L.Conv(6, (3, 3), weight_var=1.5, bias_var=0.1)
    images = [conv, L.Activation("relu"), conv, L.Activation("relu"), L.GlobalAvgPool(), L.Dense(2)]
    pixels = np.random.default_rng(1).normal(size=(3, 4, 4, 1))
    for shape, layers, x, cuts in (((4,), vectors, X, (1, 2, 3, 5)), ((4, 4, 1), images, pixels, (1, 3, 6))):
        found = nk.propagate(nk.Network(shape, layers), x)
        assert len(found) == len(cuts)
        for layer, cut in zip(found, cuts, strict=True):
            end = [L.Flatten()] if len(shape) > 1 and cut < 6 else []
            nngp, ntk = nk.kernels.nngp_and_ntk(nk.Network(shape, layers[:cut] + end), x)
            np.testing.assert_allclose(layer.kernel, nngp, rtol=1e-10)
            np.testing.assert_allclose(layer.ntk, ntk, rtol=1e-7)
            np.testing.assert_allclose(np.diagonal(layer.correlation), 1.0, atol=1e-12)
    with pytest.raises(
        TypeError,
        match=r"`order=1` does not support `layers\[1\].*, LayerNorm.* supports alternating Dense and Activation",
    ):
        nk.propagate(nk.Network(4, vectors), X, order=1)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.propagate(nk.kernels.Linear(), X),
            "`net` must be an nk.MLP or nk.Network, .*; got Linear",
        ),
        (lambda: nk.propagate(nk.MLP(4), X, order=2), "`order` must be 0 or 1; got 2"),
        (lambda: nk.propagate(nk.MLP(3), X), "`x` has 4 features per row; 3 expected"),
        (lambda: nk.MLP(3, (0,)), "`widths` must be at least 1; got 0"),
        (lambda: nk.propagate(nk.MLP(4), X)[0], "`layer` must be from 1 to 2; got 0"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call()
