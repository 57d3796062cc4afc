"""Order 1/n of residual networks: the recursion of MLPs, exact cases, and networks that are drawn and trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._run.precision import in_float64
from nearkernel.models.networks.chain import chain_of
from nearkernel.statistics.width.fluctuations import FIELDS
from nearkernel.statistics.width.observables import _hidden
from nearkernel.statistics.width.residual_blocks import Paths
from support import helpers
from support.cases import few

L = nk.layers
X = helpers.points(2, 3, 5)
SMALL = [FIELDS[letter] for letter in "VGHDFAB"]
FAR = [FIELDS[letter] for letter in "PQRSTU"]


def block(width, activation="tanh", inner=None, weight_var=1.2, bias_var=0.15):
    """A residual block of one hidden layer, or of two with `inner` neurons between them."""
    deep = [] if inner is None else [L.Activation(activation), L.Dense(inner, 1.1, 0.1)]
    return L.Residual([*deep, L.Activation(activation), L.Dense(width, weight_var, bias_var)])


def network(width, blocks=2, activation="tanh", inner=None, out=1):
    many = L.Repeat([block(width, activation, inner)], blocks)
    return nk.Network(3, [L.Dense(width, 1.0, 0.1), many, L.Activation(activation), L.Dense(out, 1.5, 0.2)])


@in_float64
def by_paths(net, x):
    return Paths(chain_of(net, "order=1", residual=True).stages, x).tensors()


def test_paths_of_one_layer_are_the_recursion():
    net = nk.MLP(3, (20, 30), 1, ("tanh", "gelu"), weight_var=1.4, bias_var=0.1)
    layers = nk.propagate(net, X, order=1)
    for tensors, layer in zip(by_paths(net, X), layers, strict=True):
        for letter, name in FIELDS.items():
            expected = getattr(layer, name)
            np.testing.assert_allclose(tensors[letter], expected, atol=1e-8 * np.abs(expected).max())


def test_linear_blocks_are_known_exactly():
    """|z + W z|^2 is |z|^2 times 1 + 2 sqrt(C/n) g_1 + (C/n) |g|^2; forward and backward factors are independent."""
    x, c, blocks = np.array([[0.5, -1.0, 0.7]]), 0.8, 3
    many = [L.Residual([L.Dense(6, c)]) for _ in range(blocks)]
    last = nk.propagate(nk.Network(3, [L.Dense(6), *many, L.Dense(1, 1.5)]), x, order=1)[blocks + 2]
    kernel = 1.5 * (1 + c) ** blocks * float(x[0] @ x[0] / 3)
    np.testing.assert_allclose(last.kernel.item(), kernel, rtol=1e-10)
    expected = kernel**2 * (2 + blocks * (4 * c + 2 * c * c) / (1 + c) ** 2)
    np.testing.assert_allclose(last.four_point.item(), expected, rtol=1e-7)
    for name in ("kernel_correction", "ntk_correction", "dntk_p"):
        assert abs(getattr(last, name).item()) < 1e-7 * kernel


def test_kernels_widths_and_copies():
    net = network(16, inner=24)
    twice = np.vstack([X, X[:1]])
    found = nk.propagate(net, twice, order=1)
    for layer, plain in zip(found, nk.propagate(net, twice), strict=True):
        np.testing.assert_allclose(layer.kernel, plain.kernel, rtol=1e-9)
        np.testing.assert_allclose(layer.ntk, plain.ntk, rtol=1e-8)
        np.testing.assert_allclose(layer.correlation, plain.correlation, atol=1e-9)
    last = found[3]
    assert last.width == 16
    np.testing.assert_array_equal(last.four_point[0, 1, 0, 1], last.four_point[2, 1, 0, 1])
    np.testing.assert_allclose(last.ntk_output_f, last.ntk_output_f.transpose(1, 0, 3, 2), rtol=1e-7)
    wide = nk.propagate(network(16, inner=10**9), X, order=1)[3]
    narrow = nk.propagate(network(10**9, inner=24), X, order=1)[3]
    for name in (*SMALL, *FAR):  # sums of 1 / width of neurons of either kind
        parts = getattr(wide, name) + 16 * getattr(narrow, name) / 10**9
        expected = getattr(last, name)[(slice(2),) * parts.ndim]
        np.testing.assert_allclose(parts, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("inner", few([None, 7], 1))
@in_float64
def test_tangent_kernels_of_drawn_networks(inner):
    net = network(6, inner=inner)
    cut = nk.Network(3, net.layers.layers[:2])
    params = net.init(jax.random.key(1))
    chain = chain_of(net, "order=1", residual=True)
    found = chain.stages
    z, h = _hidden(found, chain.unit_entries(params), jnp.asarray(X), True)
    np.testing.assert_allclose(z, cut(params[:-1], X), rtol=1e-10)
    derivatives = jax.tree.leaves(jax.jacobian(lambda p: cut(p, X))(params[:-1]))
    flat = jnp.concatenate([d.reshape(*z.shape, -1) for d in derivatives], axis=-1)
    np.testing.assert_allclose(h, jnp.einsum("ajm,bkm->abjk", flat, flat), rtol=1e-10, atol=1e-10)


def agree(theory, nets, sizes, names, key):
    widths = [net.layers.layers[0].width for net in nets]
    runs = [
        nk.measure(nk.theory.observables(net, X, names), net, size, jax.random.key(key + k))
        for k, (net, size) in enumerate(zip(nets, sizes, strict=True))
    ]
    limit = nk.theory.extrapolated(runs, widths)
    expected = {name: getattr(theory, name) for name in names}
    assert limit.agrees(expected), {
        name: np.abs((limit.mean[name] - expected[name]) / limit.sem[name]).max() for name in names
    }


@pytest.mark.slow
@pytest.mark.parametrize("activation, inner", [("tanh", None), ("gelu", 1)])
def test_drawn_networks_agree(activation, inner):
    """Kernels and tangent kernels at three widths, extrapolated; every component within 4 standard errors."""
    nets = [network(n, activation=activation, inner=inner and n) for n in (8, 16, 32)]
    agree(nk.propagate(nets[0], X, order=1)[3], nets, (24000, 12000, 6000), SMALL, 3)


@pytest.mark.slow
def test_derivatives_of_drawn_tangent_kernels_agree():
    nets = [network(n, 1, out=2) for n in (8, 16, 32)]
    agree(nk.propagate(nets[0], X, order=1)[3], nets, (6000, 3000, 1500), FAR, 11)


@pytest.mark.slow
def test_trained_networks_agree():
    y, new, widths = np.array([1.2, -0.3]), np.array([[0.7, 0.5, 0.9]]), (32, 96)
    estimates, descent = [], nk.GradientDescent(0.25, 6)
    for width in widths:
        observable = nk.theory.trained_observables(network(width, 1), X, y, descent, new)
        estimates.append(nk.measure(observable, network(width, 1), 3000, jax.random.key(width)))
    found = nk.theory.extrapolated(estimates, widths)
    theory = nk.forecast(network(96, 1), X, y, descent, new, theory=nk.FiniteWidth())
    expected = {"mean": 96 * theory.terms[1], "cov": 96 * theory.cov_terms[1]}
    assert found.agrees(expected), (found.mean, found.sem, expected)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.propagate(nk.ResMLP(3, 4), X, order=1),
            r"`order=1` does not support `layers\[1\].body\[0\].branch\[0\]`, LayerNorm.*branch of Residual",
        ),
        (
            lambda: nk.propagate(nk.ResMLP(3, 4, norm=False), X, order=1),
            "only with activations whose derivatives are all continuous: use one such as gelu, or order=0",
        ),
        (
            lambda: nk.propagate(
                nk.Network(3, [L.Dense(4), block(4), block(4, "gelu"), L.Activation("gelu"), L.Dense(1)]),
                X,
                order=1,
            ),
            "`order=1` needs the same activation in all layers that residual blocks connect; got 2 different ones",
        ),
        (
            lambda: nk.forecast(
                nk.Network(3, [L.Dense(1), block(1)]), X, X[:, 0], None, X, theory=nk.FiniteWidth()
            ),
            "needs a residual network that ends in an Activation and a Dense layer",
        ),
        (
            lambda: nk.theory.observables(nk.Network(3, [L.Dense(1), block(1)]), X),
            "`net` must end in Dense after an Activation, not in a residual block",
        ),
        (
            lambda: nk.propagate(
                nk.Network(3, [L.Dense(4), L.Residual([L.Dense(4), block(4)]), L.Dense(1)]), X, order=1
            ),
            r"`order=1` does not support `layers\[1\]`, Residual of 2 layers: it supports alternating",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
