"""Layers of finite networks: what they compute, and what they say when they do not fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few
from support.helpers import points, to_float64

L = nk.layers
NHWC = ("NHWC", "HWIO", "NHWC")
IMAGES = np.random.default_rng(0).normal(size=(3, 5, 6, 2))


def drawn(layer, shape, key=0):
    """Parameters of a layer by itself."""
    with jax.enable_x64(True):
        return layer.init(jax.random.key(key), shape)


@pytest.mark.parametrize("padding", few(("SAME", "VALID", "CIRCULAR"), 1))
@pytest.mark.parametrize(
    ("filter", "strides"), (((3, 3), (1, 1)), ((2, 4), (2, 1)), ((1, 3), (3, 2))), ids=str
)
def test_a_convolution_is_a_sum_over_its_filter(padding, filter, strides):
    layer = L.Conv(4, filter, strides, padding, weight_var=1.7, bias_var=0.3)
    params = drawn(layer, IMAGES.shape[1:])
    with jax.enable_x64(True):
        found = np.asarray(layer(params, jnp.asarray(IMAGES)))
    grid = layer.window.grid(IMAGES.shape[1:3])
    lows = [low for low, _ in layer.window.pads(IMAGES.shape[1:3])]
    expected = np.zeros((3, *grid, 4)) + 0.3**0.5 * np.asarray(params["bias"])
    scale = (1.7 / (2 * filter[0] * filter[1])) ** 0.5
    for p in np.ndindex(*grid):
        for d in np.ndindex(*filter):
            q = [p[k] * strides[k] + d[k] - lows[k] for k in range(2)]
            if padding == "CIRCULAR":
                q = [q[k] % IMAGES.shape[1 + k] for k in range(2)]
            elif any(not 0 <= q[k] < IMAGES.shape[1 + k] for k in range(2)):
                continue
            expected[:, *p] += scale * IMAGES[:, *q] @ np.asarray(params["weight"])[d]
    assert found.shape == (3, *layer.shape(IMAGES.shape[1:]))
    np.testing.assert_allclose(found, expected, atol=1e-13)
    if padding != "CIRCULAR":  # JAX's own rule of padding
        own = jax.eval_shape(
            lambda x, w: jax.lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC),
            jax.ShapeDtypeStruct(IMAGES.shape, jnp.float32), jax.ShapeDtypeStruct((*filter, 2, 4), jnp.float32),
        )  # fmt: skip
        assert own.shape == found.shape


def test_a_dilated_filter_skips_positions():
    x = np.arange(12.0).reshape(1, 6, 2)
    layer = L.Conv(1, 2, padding="VALID", dilation=3)
    params = drawn(layer, (6, 2))
    with jax.enable_x64(True):
        found = np.asarray(layer(params, jnp.asarray(x)))
    w = np.asarray(params["weight"])
    expected = 0.5 * np.stack([x[:, p] @ w[0] + x[:, p + 3] @ w[1] for p in range(3)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_a_locally_connected_layer_with_equal_weights_is_a_convolution():
    conv, local = (make(3, (3, 2), bias_var=0.2) for make in (L.Conv, L.LocallyConnected))
    params = drawn(conv, (5, 6, 2))
    with jax.enable_x64(True):
        flat = params["weight"].reshape(6, 2, 3).swapaxes(0, 1).reshape(12, 3)
        own = {
            "weight": jnp.broadcast_to(flat, (5, 6, 12, 3)),
            "bias": jnp.broadcast_to(params["bias"], (5, 6, 3)),
        }
        x = jnp.asarray(IMAGES)
        np.testing.assert_allclose(np.asarray(local(own, x)), np.asarray(conv(params, x)), atol=1e-13)


def test_pools_and_norms_are_means():
    with jax.enable_x64(True):
        x = jnp.asarray(IMAGES)
        blocks = IMAGES[:, :4].reshape(3, 2, 2, 2, 3, 2).mean(axis=(2, 4))
        np.testing.assert_allclose(np.asarray(L.AvgPool((2, 3))(None, x)), blocks, atol=1e-14)
        np.testing.assert_allclose(np.asarray(L.SumPool((2, 3))(None, x)), 6 * blocks, atol=1e-14)
        np.testing.assert_allclose(
            np.asarray(L.GlobalAvgPool()(None, x)), IMAGES.mean(axis=(1, 2)), atol=1e-14
        )
        np.testing.assert_allclose(
            np.asarray(L.GlobalSumPool()(None, x)), IMAGES.sum(axis=(1, 2)), atol=1e-13
        )
        edges = np.asarray(L.AvgPool((3, 3), (1, 1), "SAME", normalize_edges=True)(None, x))
        np.testing.assert_allclose(edges[:, 0, 0], IMAGES[:, :2, :2].mean(axis=(1, 2)), atol=1e-14)
        for axes, over in (("channel", 3), ("all", (1, 2, 3))):
            found = np.asarray(L.LayerNorm(axes)(None, x))
            assert (
                np.abs(found.mean(axis=over)).max() < 1e-12 and np.abs(found.var(axis=over) - 1).max() < 1e-6
            )


@pytest.mark.merge
def test_branches_and_repetitions():
    x = points(4, 6)
    block = [L.Dense(6, bias_var=0.1), L.Activation("tanh")]
    net = nk.Network(6, [L.Residual(block), L.Repeat(block, 3), L.Dense(2)])
    params = to_float64(net.init(jax.random.key(0)))
    assert [len(params), len(params[0]), params[1][0]["weight"].shape] == [3, 1, (3, 6, 6)]
    assert jax.tree.structure(net.lr_factors()) == jax.tree.structure(params)

    def layer(p, z):
        return np.tanh(z @ p["weight"] / 6**0.5 + 0.1**0.5 * p["bias"])

    z = x + layer(jax.tree.map(np.asarray, params[0][0]), x)
    for i in range(3):
        z = layer(jax.tree.map(lambda a, i=i: np.asarray(a)[i], params[1][0]), z)
    z = z @ np.asarray(params[2]["weight"]) / 6**0.5
    np.testing.assert_allclose(np.asarray(net(params, x)), z, atol=1e-12)
    both = nk.Network(
        6, [L.Concat([[L.Dense(3)], []]), L.Dense(4), L.Product([[], [L.Dense(4)]]), L.Dense(1)]
    )
    assert both(both.init(jax.random.key(0)), x).shape == (4, 1)


def test_dropout_needs_a_key():
    net = nk.Network(6, [L.Dense(500), L.Dropout(0.25), L.Dense(1)])
    params, x = net.init(jax.random.key(0)), points(2, 6)
    np.testing.assert_array_equal(net(params, x), net(params, x))
    one, two = (np.asarray(net(params, x, key=jax.random.key(k))) for k in (1, 2))
    assert not np.allclose(one, two)


def test_an_mlp_may_have_variances_and_activations_of_each_layer():
    net = nk.MLP(3, (4, 5), 2, ("tanh", "erf"), weight_var=(1.0, 2.0, 3.0), bias_var=(0.1, 0.0, 0.3))
    same = nk.Network(3, [
        L.Dense(4, 1.0, 0.1), L.Activation("tanh"), L.Dense(5, 2.0, 0.0), L.Activation("erf"), L.Dense(2, 3.0, 0.3),
    ])  # fmt: skip
    params, x = net.init(jax.random.key(0)), points(4, 3)
    np.testing.assert_allclose(np.asarray(net(params, x)), np.asarray(same(params, x)), atol=1e-14)
    for one, other in zip(nk.kernels.nngp_and_ntk(net, x), nk.kernels.nngp_and_ntk(same, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    plain = nk.MLP(3, (4, 5), 2, "tanh", (1.5,) * 3, (0.2,) * 3)
    np.testing.assert_allclose(
        nk.kernels.NTK(plain)(x), nk.kernels.NTK(nk.MLP(3, (4, 5), 2, "tanh", 1.5, 0.2))(x)
    )


@pytest.mark.parametrize(
    ("make", "text"),
    (
        (lambda: nk.Network((8, 8, 3), [L.Conv(4, (9, 9), padding="VALID"), L.Flatten()]),
         r"`layers\[0\]`, Conv\(4, \(9, 9\), padding='VALID'\): its filter \(9, 9\) is larger than its input"),
        (lambda: nk.Network((8, 3), [L.Conv(4, (3, 3)), L.Flatten()]),
         r"`layers\[0\]`.*its filter \(3, 3\) has 2 axes, and its input 1: give a filter of 1 numbers"),
        (lambda: nk.Network((8, 8, 3), [L.Conv(4)]),
         r"`layers` end in shape \(8, 8, 4\), which still has positions: add Flatten"),
        (lambda: nk.Network((8, 8, 3), [L.Conv(4), L.Residual([L.Activation(), L.Conv(5)]), L.Flatten()]),
         r"`layers\[1\]`, Residual of 2 layers: its branch maps shape \(8, 8, 4\) to \(8, 8, 5\)"),
        (lambda: nk.Network((4,), [L.Dense(3), L.Sum([[L.Dense(3)], [L.Dense(4)]])]),
         r"`layers\[1\]`, Sum of 2 branches: its branches end in different shapes, \(3,\), \(4,\)"),
        (lambda: nk.Network((4,), [L.Attention(3)]),
         r"`layers\[0\]`, Attention.*attention needs positions, and its input .* has none"),
        (lambda: nk.Network((4,), [L.Residual([L.Dense(4), L.Residual([L.Dense(5)])])]),
         r"`layers\[0\].branch\[1\]`, Residual of 1 layers: its branch maps"),
        (lambda: nk.Network((4,), [L.Dense(4), "relu"]), r"`layers\[1\]` must be a layer of nk.layers; got 'relu'"),
        (lambda: nk.Network((0,), [L.Dense(4)]), "`in_shape` must be at least 1; got 0"),
        (lambda: L.Conv(4, (3, 3), strides=(1,)), "`filter`, `strides` and `dilation` must have"),
        (lambda: L.Conv(4, padding="same"), "`padding` must be one of 'SAME', 'VALID', 'CIRCULAR'; got 'same'"),
        (lambda: nk.Network((4, 2), [L.Conv(3, 3), L.GlobalAvgPool(), L.GlobalAvgPool(), L.Dense(1)]),
         r"`layers\[2\]`, GlobalAvgPool\(\): a pool needs positions, and its input of shape \(3,\) has none: leave"),
        (lambda: nk.Network((4, 2), [L.Conv(3, 3), L.Flatten(), L.GlobalSumPool(), L.Dense(1)]),
         r"`layers\[2\]`, GlobalSumPool\(\): a pool needs positions"),
        (lambda: nk.Network((4, 2), [L.GlobalAvgPool(), L.Residual([L.AvgPool(1), L.Dense(2)]), L.Dense(1)]),
         r"`layers\[1\].branch\[0\]`, AvgPool\(\(1,\)\): a pool needs positions"),
        (lambda: L.Dropout(1.5), "`keep` is a probability and must be at most 1; got 1.5"),
        (lambda: L.LayerNorm("channels"),
         "`axes` must be one of 'channel', 'all'; got 'channels'. Did you mean 'channel'"),
        (lambda: L.Sum([]), "`branches` must contain at least one branch"),
        (lambda: nk.Network(3, [L.Conv(2, 3), L.Dense(1)]), "a filter needs positions, and its input has none: use"),
        (lambda: L.Repeat([L.Dense(3)], 10**9), "`count` must be at most 1000000; got 1000000000"),
        (lambda: L.AvgPool(2, normalize_edges="no"), "`normalize_edges` must be True or False; got 'no'"),
        (lambda: nk.MLP(3, (4,), weight_var=(1.0, 2.0, 3.0)),
         "`weight_var` must be one value, or one per layer, 2 of them; got 3"),
    ),
)  # fmt: skip
def test_what_does_not_fit_is_told_with_its_place(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


@pytest.mark.parametrize(
    ("layers", "text"),
    (
        ([L.Activation(), L.Dense(1)], r"`layers\[0\]`.*an activation needs weights before it"),
        ([L.Dense(4), L.Activation(), L.Activation(), L.Dense(1)],
         r"`layers\[2\]`.*of inputs that are not Gaussian has no closed-form limit: put Dense or Conv before it"),
        ([L.Dense(4), L.Residual([L.Activation()]), L.Dense(1)], r"`layers\[1\]`, Residual.*branch has no weights"),
        ([L.Sum([[], []]), L.Dense(1)], r"`layers\[0\]`, Sum.*two of its branches have no weights, so they are"),
        ([L.LayerNorm(), L.Dense(1)], r"`layers\[0\]`.*normalize `x` itself"),
        ([L.Dense(4), L.Product([[L.Activation()], [L.Dense(4)]]), L.Activation(), L.Dense(1)],
         r"`layers\[2\]`.*not Gaussian"),
        ([L.Product([[], [L.Dense(3)]]), L.Dense(1)], r"`layers\[0\]`.*a branch passes the inputs on unchanged"),
    ),
)  # fmt: skip
def test_what_has_no_wide_limit_is_told_with_its_place(layers, text):
    net = nk.Network((3,), layers)
    assert net(net.init(jax.random.key(0)), points(2, 3)).shape == (2, 1)  # as a finite network it is fine
    with pytest.raises(ValueError, match=text):
        nk.kernels.NTK(net)


def test_softmax_of_random_scores_has_no_closed_limit():
    net = nk.Network((4, 3), [L.Attention(8, scaling="sqrt"), L.Flatten(), L.Dense(1)])
    with pytest.raises(
        ValueError, match=r"`layers\[0\]`.*'softmax' has no closed form for them: use `scaling=\"linear\"`"
    ):
        nk.kernels.NNGP(net)


def test_inputs_of_another_shape_are_told():
    net = nk.Network((4, 3), [L.Conv(8, 3), L.Flatten(), L.Dense(1)])
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, 4, 3\); got \(2, 3, 4\)"):
        nk.kernels.NTK(net)(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, 4, 3\); got \(2, 4\)"):
        net(net.init(jax.random.key(0)), np.ones((2, 4)))


def test_bad_networks_in_one_line_are_told():
    with pytest.raises(
        ValueError, match=r"`in_shape` must have positions and channels, such as \(32, 32, 3\)"
    ):
        nk.CNN((8,))
    with pytest.raises(ValueError, match="`head` must be"):
        nk.CNN((8, 8, 1), head="mean")
    with pytest.raises(
        ValueError, match=r"`layers\[1\]`, PositionEmbedding.*infinitely many channels: put Dense or Conv"
    ):
        nk.kernels.NTK(nk.Network((4, 2), [L.Conv(3, 2), L.PositionEmbedding(), L.Flatten(), L.Dense(1)]))
        nk.kernels.NTK(nk.Network((4, 2), [L.Identity(), L.PositionEmbedding(), L.Flatten(), L.Dense(1)]))
