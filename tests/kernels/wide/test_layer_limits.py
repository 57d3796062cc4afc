"""Limits of layers: drawn networks, nearly equal inputs, and everything else that kernels promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few
from support.helpers import points

L = nk.layers
IMAGES = np.random.default_rng(5).normal(size=(2, 5, 4, 2))
WIDTH, OUT, DRAWS = 96, 16, 60


def conv(**options):
    return L.Conv(WIDTH, (3, 3), **({"weight_var": 1.7, "bias_var": 0.1} | options))


HEAD = L.Dense(OUT, weight_var=1.3, bias_var=0.2)
RELU, TANH = L.Activation("relu"), L.Activation("tanh")
NETWORKS = {
    "conv and flatten": [conv(), RELU, conv(strides=(2, 1)), TANH, L.Flatten(), HEAD],
    "dilated circular conv": [
        conv(padding="CIRCULAR"), RELU, L.Conv(WIDTH, (3, 2), padding="VALID", dilation=(1, 2)), L.Flatten(), HEAD],
    "global pool": [conv(), RELU, conv(), TANH, L.GlobalAvgPool(), HEAD],
    "pool with edges": [
        conv(), RELU, L.AvgPool((3, 3), (2, 2), "SAME", normalize_edges=True), conv(), RELU, L.GlobalSumPool(), HEAD],
    "sum pool": [conv(), TANH, L.SumPool((2, 2), (1, 1)), L.Flatten(), HEAD],
    "locally connected": [
        conv(), RELU, L.LocallyConnected(WIDTH, (2, 2)), RELU, L.AvgPool((5, 2)), L.Flatten(), HEAD],
    "norm of features": [conv(), RELU, L.LayerNorm(), conv(), L.LayerNorm("all"), TANH, L.Flatten(), HEAD],
    "norm of all features": [conv(), RELU, L.LayerNorm("all"), conv(), RELU, L.GlobalAvgPool(), HEAD],
    "sum of features": [conv(), L.Sum([[RELU], [conv(), L.Activation("gelu")]]), conv(), RELU, L.Flatten(), HEAD],
    "residual and repeat": [
        conv(), L.Repeat([L.Residual([L.LayerNorm(), RELU, conv(weight_var=0.5)])], 2), TANH, L.GlobalAvgPool(), HEAD],
    "concat and product": [
        L.Concat([[conv()], []]), conv(), L.Product([[RELU, conv()], [TANH, conv()]]), L.Flatten(), HEAD],
    "concat and activation": [
        L.Concat([[conv()], [conv(weight_var=9.0), RELU, conv()]]), TANH, L.Flatten(), HEAD],
    "position embedding": [
        conv(), L.PositionEmbedding(0.7), RELU, conv(), L.PositionEmbedding(0.4, 0.2), TANH, L.GlobalAvgPool(), HEAD],
    "softmax attention": [conv(), RELU, L.Attention(WIDTH, 1, 4 * WIDTH, qk_var=1.5), RELU, L.GlobalAvgPool(), HEAD],
    "identity attention": [conv(), L.Attention(WIDTH, 24, 24, "sqrt", "identity", qk_var=0.1), L.Flatten(), HEAD],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_drawn_networks_agree(name):
    """Within 4 standard errors and the 3 % that a width of 96 is off."""
    net = nk.Network(IMAGES.shape[1:], NETWORKS[name])

    def observe(params):
        z = net(params, IMAGES)
        tangent = nk.kernels.EmpiricalNTK(net, params)(IMAGES)
        return {"nngp": z @ z.T / OUT, "ntk": tangent}

    found = nk.measure(observe, net, DRAWS, jax.random.key(3))
    for kind, theory in zip(("nngp", "ntk"), nk.kernels.nngp_and_ntk(net, IMAGES), strict=True):
        allowed = 4 * found.sem[kind] + 0.03 * np.abs(np.diagonal(theory)).max()
        assert (np.abs(found.mean[kind] - theory) < allowed).all(), (
            kind,
            found.mean[kind],
            theory,
            found.sem[kind],
        )


def test_an_activation_after_concat_sees_each_group_with_its_own_variance():
    x = points(5, 3)
    one, two = [L.Dense(7, weight_var=0.3)], [L.Dense(21, weight_var=6.0), RELU, L.Dense(14, bias_var=1.0)]
    after = nk.Network(3, [L.Concat([one, two]), TANH, L.Dense(1)])
    inside = nk.Network(3, [L.Concat([[*one, TANH], [*two, TANH]]), L.Dense(1)])
    shares = [nk.kernels.nngp_and_ntk(nk.Network(3, [*branch, TANH, L.Dense(1)]), x) for branch in (one, two)]
    for found, same, *parts in zip(
        nk.kernels.nngp_and_ntk(after, x), nk.kernels.nngp_and_ntk(inside, x), *shares, strict=True
    ):
        np.testing.assert_allclose(found, same, rtol=1e-15)
        np.testing.assert_allclose(found, parts[0] / 3 + 2 * parts[1] / 3, rtol=1e-12)
    for block in (
        L.Repeat([L.Dense(3), L.Concat([[L.Dense(1)], [L.Dense(2)]])], 1),
        L.Sum([[L.Concat([one, one])]] * 2),
    ):
        with pytest.raises(ValueError, match=r"`layers\[1\]`, .*not Gaussian"):
            nk.kernels.NTK(nk.Network(3, [block, TANH, L.Dense(1)]))(x)


@pytest.mark.parametrize("block", few(([L.Attention(3)], [L.AvgPool((1, 1))]), 1), ids=("attention", "pool"))
def test_blocks_that_compare_positions_are_repeated_before_flatten(block):
    ends = [L.Flatten(), L.Dense(1)]
    repeated, written = (
        nk.Network(IMAGES.shape[1:], [L.Conv(3, (2, 2)), *body, *ends])
        for body in ([L.Repeat(block, 2)], [*block, L.Identity(), *block])
    )
    for one, other in zip(
        nk.kernels.nngp_and_ntk(repeated, IMAGES), nk.kernels.nngp_and_ntk(written, IMAGES), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("head", ("flatten", "pool"))
def test_nearly_equal_images(head):
    """Without pooling K(x, x) - K(x, x') keeps its digits; with it, those of rounding."""
    end = [L.Flatten()] if head == "flatten" else [L.GlobalAvgPool()]
    net = nk.Network((5, 4, 2), [conv(), L.Activation("erf"), conv(), L.Activation("erf"), *end, L.Dense(1)])
    x = IMAGES[:1]
    direction = IMAGES[1:]
    kernel = nk.kernels.NNGP(net)
    drops = []
    for step in (1e-3, 1e-6):
        both = np.concatenate([x, x + step * direction])
        k = kernel(both)
        drops.append((0.5 * (k[0, 0] + k[1, 1]) - k[0, 1]) / step**2)
    assert drops[1] == pytest.approx(drops[0], rel=1e-2 if head == "flatten" else 0.2)
    exact = kernel(np.concatenate([x, x]))
    np.testing.assert_allclose(exact, exact[0, 0], rtol=1e-15 if head == "flatten" else 1e-13)


@pytest.mark.parametrize(
    "end", few(([L.Flatten()], [L.AvgPool((5, 2)), L.Flatten()]), 1), ids=("flatten", "pool")
)
def test_kernels_under_jit_and_grad(end):
    x = IMAGES

    def network(weight_var):
        return nk.Network((5, 4, 2), [L.Conv(1, (3, 3), weight_var=weight_var), RELU, *end, L.Dense(1)])

    plain = nk.kernels.NTK(network(1.4))(x)
    with jax.enable_x64(True):
        jitted = jax.jit(lambda x: nk.kernels.NTK(network(1.4))(x))(jnp.asarray(x))
        np.testing.assert_allclose(np.asarray(jitted), plain, rtol=1e-12)
        slope = jax.grad(lambda c: nk.kernels.NTK(network(c))(jnp.asarray(x))[0, 1])(1.4)
    step = (nk.kernels.NTK(network(1.4 + 1e-4))(x) - nk.kernels.NTK(network(1.4 - 1e-4))(x))[0, 1] / 2e-4
    assert float(slope) == pytest.approx(step, rel=1e-6)


def test_tiles_blocks_and_parts_are_one_matrix():
    x = np.random.default_rng(0).normal(size=(11, 8, 8, 1))
    net = nk.Network((8, 8, 1), [conv(), L.Activation("gelu"), conv(), RELU, L.Flatten(), L.Dense(1)])
    kernel = nk.kernels.NTK(net)
    whole = kernel(x)
    np.testing.assert_allclose(whole, whole.T, rtol=0)
    # Equal inputs given apart: gelu leaves a gap of 1e-16, of which the slope of relu has half of the digits.
    np.testing.assert_allclose(kernel(x[:3], x), whole[:3], rtol=1e-8)
    np.testing.assert_allclose(kernel.diag(x), np.diagonal(whole), rtol=1e-14)
    rows = np.concatenate([block for _, block in kernel.blocks(x, memory="2kB")])
    np.testing.assert_allclose(rows, whole, rtol=1e-8)
    np.testing.assert_allclose((kernel + kernel)(x), 2 * whole, rtol=1e-14)
    with nk.precision("float32"):
        np.testing.assert_allclose(kernel(x), whole, rtol=2e-5)


def test_kinked_activations_of_your_own_go_through_residual_networks():
    """By quadrature near the diagonal: |z| given as a function is the closed form of "abs"."""
    x = points(4, 6)
    x[1] = x[0] * (1 + 1e-7)
    kernels = [
        nk.kernels.NTK(
            nk.Network(
                6, [L.Dense(1), L.Residual([L.Activation(f), L.Dense(1)]), L.Activation(f), L.Dense(1)]
            )
        )(x)
        for f in ("abs", lambda z: jnp.maximum(z, -z))
    ]
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-6)


def test_zero_patches_are_no_trouble():
    x = IMAGES.copy()
    x[:, :3] = 0.0
    for end in (L.Flatten(), L.GlobalAvgPool()):
        net = nk.Network((5, 4, 2), [conv(bias_var=0.0), RELU, conv(bias_var=0.0), RELU, end, L.Dense(1)])
        assert np.isfinite(nk.kernels.NTK(net)(x)).all()
        assert not nk.kernels.NTK(net)(0 * x).any()


@pytest.mark.parametrize(
    ("net", "shape"),
    few(
        (
            (nk.ResMLP(4, 16, 3, 2, "gelu", 0.7, 0.1), (4,)),
            (nk.CNN((8, 8, 2), (6, 5, 4), 3, pool=2), (8, 8, 2)),
            (nk.CNN((9, 2), (6, 4), filter=2, padding="VALID", head="flatten"), (9, 2)),
            (nk.Transformer((5, 3), 12, 2, 2), (5, 3)),
        ),
        1,
    ),
    ids=("ResMLP", "CNN", "CNN of sequences", "Transformer"),
)
def test_networks_in_one_line(net, shape):
    x = np.random.default_rng(3).normal(size=(3, *shape))
    outputs = net(net.init(0), x)
    assert outputs.shape[0] == 3 and net.in_shape == shape
    ntk = nk.kernels.NTK(net)(x)
    assert np.linalg.eigvalsh(ntk)[0] > 0
    np.testing.assert_allclose(nk.kernels.NTK(net)(x[::-1]), ntk[::-1, ::-1], rtol=1e-9)


def test_kinked_activations_of_your_own_are_refused_where_positions_are_compared():
    net = nk.Network((5, 4, 2), [conv(), L.Activation(lambda z: jnp.abs(z)), L.GlobalAvgPool(), HEAD])
    with pytest.raises(ValueError, match=r'kinked activation without a known name, .*use "relu"'):
        nk.kernels.NTK(net)(IMAGES)
