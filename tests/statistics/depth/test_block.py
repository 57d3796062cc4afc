"""Blocks of layers that are repeated: where variances end, how gradients and angles change."""

import jax
import numpy as np
import pytest

import nearkernel as nk

L = nk.layers


def dense(weight_var=1.0, bias_var=0.0, width=8):
    return L.Dense(width, weight_var, bias_var)


@pytest.mark.parametrize(
    "name, bias_var",
    [("relu", 0.0), pytest.param("tanh", 0.2, marks=pytest.mark.slow), ("gelu", 0.1), ("erf", 0.0)],
)
def test_a_plain_block_is_its_activation(name, bias_var):
    """The diagram of an activation is that of the block it stands in, whichever layer comes first."""
    weight_vars, bias_vars = [0.7, 2.3], [bias_var, 0.6]
    plain = nk.statistics.phase_diagram(name, weight_vars, bias_vars)
    for block in ([L.Activation(name), dense()], [L.Conv(8, (3, 3)), L.Activation(name)]):
        found = nk.statistics.phase_diagram(block, weight_vars, bias_vars)
        assert np.array_equal(found.phase, plain.phase)
        grows = np.isinf(plain.kernel)  # by a factor that it reaches only in the end
        np.testing.assert_allclose(found.chi_perp[grows], plain.chi_perp[grows], rtol=1e-3)
        for field in ("kernel", "chi_par", "chi_perp", "correlation", "depth_scale"):
            close = {"rtol": 1e-7 if field == "depth_scale" else 1e-8, "atol": 1e-11}
            one, other = (np.where(grows, 0.0, getattr(diagram, field)) for diagram in (found, plain))
            np.testing.assert_allclose(one, other, **close, err_msg=field)
        for weight_var, at in found.critical_line:
            there = nk.statistics.phase_diagram(name, [weight_var], [at])
            assert there.chi_perp[0, 0] == pytest.approx(1.0, abs=1e-9)


def test_the_critical_factor_finds_the_critical_initialization():
    for name in ("relu", "tanh"):
        flow = nk.critical([L.Activation(name), dense(0.3)])
        assert 0.3 * flow.critical_factor() == pytest.approx(nk.critical(name).weight_var, rel=1e-5)
    gelu = nk.critical("gelu")
    flow = nk.critical([L.Activation("gelu"), dense(gelu.weight_var, gelu.bias_var)])
    kernel, gradient, _ = flow.run(5, gelu.fixed_point)  # it rests there, though not from both sides
    np.testing.assert_allclose(kernel, gelu.fixed_point, rtol=1e-8)
    np.testing.assert_allclose(gradient, 1.0, rtol=1e-8)


def test_residual_blocks_grow_by_a_factor_and_normalized_ones_by_a_power():
    grows = nk.critical(L.Residual([L.Activation("relu"), dense(0.8)]))
    assert (grows.kernel, grows.phase) == (np.inf, "chaotic") and np.isnan(grows.critical_factor())
    assert grows.growth == pytest.approx(1.4) and grows.chi_perp == pytest.approx(1.4)
    assert (
        "the variance grows by a factor of 1.4 per block: divide `weight_var` by the number of blocks"
        in grows.message
    )
    kernel, gradient, correlation = grows.run(400)
    np.testing.assert_allclose(kernel[:20], 1.4 ** np.arange(20), rtol=1e-12)
    np.testing.assert_allclose(gradient[:20], 1.4 ** np.arange(20), rtol=1e-12)
    depth = np.arange(401)  # 1 - cos falls as 1/depth^2, from a depth that the start is worth
    roots = np.sqrt(4.5 * np.pi**2 / (1 - correlation)) * 2.8 / 0.8
    assert np.diff(roots)[-1] == pytest.approx(1.0, rel=0.02) and depth[-1] == 400
    normalized = nk.critical(L.Residual([L.LayerNorm(), L.Activation("relu"), dense(0.8)]))
    assert (normalized.kernel, normalized.phase, normalized.critical_factor()) == (np.inf, "critical", 1.0)
    kernel, gradient, _ = normalized.run(50)
    np.testing.assert_allclose(kernel, 1 + 0.4 * np.arange(51), rtol=1e-9)
    np.testing.assert_allclose(gradient[1:] / gradient[:-1], 1 + 0.4 / kernel[:-1], rtol=1e-9)


def test_branches_are_scaled_for_a_number_of_blocks():
    """(1 + f C_W/2)^n = growth without normalization; 1 + n f C_W/2 with it; tanh by running the blocks."""
    plain = nk.critical(L.Residual([L.Activation("relu"), dense(0.8)]))
    assert plain.factor_for(40) == pytest.approx(2 * (np.exp(1 / 40) - 1) / 0.8, rel=1e-6)
    assert plain.factor_for(40, growth=3.0, kernel=5.0) == pytest.approx(
        2 * (3 ** (1 / 40) - 1) / 0.8, rel=1e-6
    )
    normalized = nk.critical(L.Residual([L.LayerNorm(), L.Activation("relu"), dense(0.8)]))
    assert normalized.factor_for(40) == pytest.approx(2 * (np.e - 1) / 40 / 0.8, rel=1e-6)
    factor = nk.critical(L.Residual([L.Activation("tanh"), dense(1.0)])).factor_for(12)
    scaled = nk.critical(L.Residual([L.Activation("tanh"), dense(factor)]))
    assert scaled.run(12)[1][-1] == pytest.approx(np.e, rel=1e-5)
    with pytest.raises(ValueError, match="`depth` must be at least 1; got 0"):
        plain.factor_for(0)
    assert np.isnan(plain.factor_for(10, growth=0.5))  # no branch makes gradients shrink


def test_depth_scales_of_blocks_are_those_of_activations():
    ordered = nk.critical([L.Activation("tanh"), dense(0.8, 0.1)])
    assert ordered.depth_scale == pytest.approx(-1 / np.log(ordered.chi_perp))
    chaotic = nk.critical([L.Activation("tanh"), dense(2.0, 0.1)])
    expected = nk.statistics.phase_diagram("tanh", [2.0], [0.1]).depth_scale
    assert chaotic.depth_scale == pytest.approx(expected.item(), rel=1e-5)
    assert nk.critical([L.LayerNorm(), L.Activation("relu"), dense(0.8)]).depth_scale == np.inf


def test_blocks_describe_drawn_networks():
    """Signals and gradients through drawn blocks, within 4 standard errors and the 2 % of a finite width."""
    width, depth, start = 200, 6, 0.7
    block = [
        L.Residual([L.Activation("tanh"), dense(1.3, 0.2, width)]),
        L.LayerNorm(),
        dense(1.6, 0.1, width),
    ]
    net = nk.Network(width, block * depth)
    kernel, gradient, correlation = nk.critical(block).run(depth, start, 0.3)
    angle = np.arccos(0.3)

    def observe(drawn):
        key, params = drawn
        x = np.sqrt(start) * jax.random.normal(key, (2, width))
        x = x.at[1].set(np.cos(angle) * x[0] + np.sin(angle) * x[1])
        z, back = jax.vjp(lambda x: net(params, x), x)
        seed = jax.random.normal(jax.random.fold_in(key, 1), z.shape)
        return {"second": z @ z.T / width, "gradient": (back(seed)[0] ** 2).sum() / (seed**2).sum()}

    keys = jax.random.split(jax.random.key(3), 40)
    compiled = jax.jit(observe)
    with jax.enable_x64(True):
        values = [jax.tree.map(np.asarray, compiled((key, net.init(key)))) for key in keys]
    second = np.stack([value["second"] for value in values])
    for found, theory in (
        (second[:, 0, 0], kernel[-1]),
        (second[:, 0, 1] / np.sqrt(second[:, 0, 0] * second[:, 1, 1]), correlation[-1]),
        (np.stack([value["gradient"] for value in values]), gradient[-1]),
    ):
        assert abs(found.mean() - theory) < 4 * found.std() / np.sqrt(len(keys)) + 0.02 * abs(theory)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.critical([L.Dense(3), "relu"]), r"`block\[1\]` must be a layer of nk.layers; got 'relu'"),
        (lambda: nk.critical([L.Activation("relu")]), "`block` must contain weights: add a Dense or Conv"),
        (lambda: nk.critical([L.Conv(2), L.AvgPool((2, 2))]), "`block` has AvgPool.*, which mixes positions"),
        (
            lambda: nk.critical([L.Dense(3), L.Activation("relu"), L.Activation("relu")]),
            "`block` cannot be repeated",
        ),
        (lambda: nk.critical([L.Residual([L.Dense(3)]), L.Dense(4)]), "its branch maps shape"),
        (lambda: nk.critical([L.Activation("relu"), L.Dense(3)]).run(0), "`depth` must be at least 1; got 0"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
