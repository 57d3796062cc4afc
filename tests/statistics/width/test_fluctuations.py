"""Corrections of order 1/n: exact cases, laws that hold for any activation, and the networks themselves."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.width.fluctuations import FIELDS
from support import helpers

L = nk.layers
ALL = list(FIELDS.values())
SMALL = [FIELDS[letter] for letter in "VGHDFAB"]
X = helpers.points(2, 3, 5)


def scalars(net, x, layer):
    found = nk.propagate(net, x, order=1)[layer]
    tensors = {letter: getattr(found, name) for letter, name in FIELDS.items()}
    return {letter: None if tensor is None else tensor.item() for letter, tensor in tensors.items()}


def test_deep_linear_networks_are_known_exactly():
    x = np.array([[0.5, -1.0, 0.7]])
    k = float(x[0] @ x[0] / 3)
    for l in (1, 3, 5):
        found = scalars(nk.MLP(3, (9,) * 4, 1, "linear"), x, l)
        expected = {
            "V": 2 * (l - 1) * k * k,
            "F": k * k * l * (l - 1) / 2,
            "B": k * k * l * (l - 1) * (2 * l - 1) / 6,
            "D": k * k * l * (l - 1),
            "A": k * k * l * (l - 1) * (2 * l - 1) / 3,
            "Q": k * k * (l - 1) * l * (l + 1) / 6,
        }
        for name in FIELDS:
            if name not in "RSTU":
                np.testing.assert_allclose(found[name], expected.get(name, 0.0), rtol=1e-6, atol=1e-7)


def test_relu_networks_of_one_input_are_known_exactly():
    x = np.array([[1.0, 0.3]])
    k = float(x[0] @ x[0])  # C_W |x|^2 / 2
    for l in (2, 4):
        found = scalars(nk.MLP(2, (7,) * 3, 1, "relu", weight_var=2.0), x, l)
        omega, lam = k, 2.0
        five = 5 * lam * k / 2 + omega
        expected = {
            "V": 5 * (l - 1) * k * k,
            "F": k * omega * l * (l - 1),
            "B": omega**2 * l * (l - 1) * (2 * l - 1) / 3,
            "D": k * five * l * (l - 1) / 2,
            "A": (5 / 4 * lam**2 * k * k + lam * k * omega) * l * (l - 1) / 2
            + omega**2 * l * (l - 1) * (2 * l - 1) / 6
            + lam * k * five * l * (l - 1) * (l - 2) / 6,
            "Q": lam * k * omega * (l - 1) * l * (l + 1) / 6,
        }
        for name, value in found.items():
            if name in "RSTU":
                assert np.isinf(value)
            else:
                np.testing.assert_allclose(value, expected.get(name, 0.0), rtol=1e-9, atol=1e-12)
    assert "squares of delta functions" in nk.propagate(nk.MLP(2, (7,), 1, "relu"), x, order=1)[1].note


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_some_of_the_inputs_have_the_tensors_they_have_alone(activation):
    """Also with a copy, and with an input that depends on the others, among them."""
    x = np.vstack([helpers.points(3, 2, 1), helpers.points(1, 2, 1)])
    net = nk.MLP(2, (4, 6, 3), 1, activation, 1.4, 0.2)
    together, alone = nk.propagate(net, x, order=1), nk.propagate(net, x[[2, 0]], order=1)
    for layer in (2, 4):
        for name in SMALL if activation == "relu" else ALL:
            full, own = getattr(together[layer], name), getattr(alone[layer], name)
            np.testing.assert_allclose(
                full[np.ix_(*[[2, 3]] * own.ndim)], own, rtol=1e-6, atol=1e-7 * np.abs(own).max()
            )


def measured(net, params, names):
    with jax.enable_x64(True):
        return jax.jit(nk.theory.observables(net, X, names))(params)


@pytest.mark.merge
def test_networks_of_layers_are_mlps():
    """Own variances and activations; a layer without activation before it; equal layers in a Repeat; any scaling."""
    last = L.Dense(2, 1.5, 0.2)
    chain = [
        L.Dense(5, 1.1, 0.3),
        L.Activation("tanh"),
        L.Dense(4, 1.2),
        L.Dense(6, 0.9),
        L.Activation("gelu"),
        last,
    ]
    mlp = nk.MLP(3, (5, 4, 6), 2, ("tanh", "linear", "gelu"), (1.1, 1.2, 0.9, 1.5), (0.3, 0.0, 0.0, 0.2))
    block = [L.Activation("sin"), L.Dense(4, 1.3, 0.1)]
    repeated = [L.Dense(4, 1.3, 0.1), L.Repeat(block, 2), L.Identity(), L.Activation("sin"), last]
    pairs = [
        (chain, mlp, {1: 1, 2: 2, 3: 3, 4: 4}),
        (
            repeated,
            nk.MLP(3, (4, 4, 4), 2, "sin", (1.3, 1.3, 1.3, 1.5), (0.1, 0.1, 0.1, 0.2)),
            {1: 1, 2: 3, 3: 4},
        ),
    ]
    for layers, plain, places in pairs:
        net = nk.Network(3, layers)
        found, expected = nk.propagate(net, X, order=1), nk.propagate(plain, X, order=1)
        assert len(found) == len(places) == len(nk.propagate(net, X))
        for mine, theirs in places.items():
            assert found[mine].width == expected[theirs].width
            for name in ALL:
                np.testing.assert_allclose(
                    getattr(found[mine], name), getattr(expected[theirs], name), rtol=1e-6, atol=1e-9
                )
        params = net.init(jax.random.key(0))
        names = ["four_point", "ntk_variance_a"]
        flat = (
            [jax.tree.map(lambda a, k=k: a[k], params[1]) for k in range(2)]
            if plain.widths == (4, 4, 4)
            else []
        )
        same = [params[0], *(each[0] for each in flat), params[-1]] if flat else params
        mine, theirs = measured(net, params, names), measured(plain, same, names)
        for name in names:
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-5, atol=1e-8)
    standard = nk.MLP(3, (5,), 2, "tanh", (1.1, 1.5), (0.3, 0.0), "standard")
    unit = nk.MLP(3, (5,), 2, "tanh", (1.1, 1.5), (0.3, 0.0))
    draws = [net.init(jax.random.key(1)) for net in (standard, unit)]
    one, other = (measured(net, p, names) for net, p in zip((standard, unit), draws, strict=True))
    for name in names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-8)


def test_tensors_have_their_symmetries():
    found = nk.propagate(nk.MLP(3, (5, 9), 1, "gelu", 1.5, 0.1), helpers.points(3, 3), order=1)[3]
    for name in ("four_point", "ntk_variance_a"):
        tensor = getattr(found, name)
        np.testing.assert_allclose(tensor, tensor.transpose(2, 3, 0, 1), rtol=1e-9)
        np.testing.assert_allclose(tensor, tensor.swapaxes(0, 1), rtol=1e-9)
    np.testing.assert_allclose(found.ntk_output_f, found.ntk_output_f.transpose(1, 0, 3, 2), rtol=1e-9)
    np.testing.assert_allclose(found.dntk_p, found.dntk_p.swapaxes(1, 2), rtol=1e-9)
    assert found.width == 9 and found.note == ""


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_inputs_that_are_zero_parallel_or_opposite(activation):
    x = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 1.0], [-1.0, -0.5]])
    found = nk.propagate(nk.MLP(2, (4, 4, 4), 1, activation, 1.5), x, order=1)[4]
    for name in SMALL:
        tensor = getattr(found, name)
        assert np.isfinite(tensor).all() and not tensor[0].round(12).any(), name
        if activation == "relu":  # without biases, doubling an input doubles its outputs
            np.testing.assert_allclose(tensor[2], 2 * tensor[1], rtol=1e-4, atol=1e-4 * np.abs(tensor).max())


def test_scaling_of_the_parameters_does_not_matter():
    net, standard = (nk.MLP(3, (5, 4), 1, "sin", 1.5, 0.1, p) for p in ("ntk", "standard"))
    one, other = nk.propagate(net, X, order=1)[3], nk.propagate(standard, X, order=1)[3]
    np.testing.assert_array_equal(one.ddntk_t, other.ddntk_t)


def test_first_layer_is_gaussian_and_the_rest_follow_the_widths():
    """With r = n_l / n_{l-1}, the tensors of layer l over n_{l-1} depend on the widths as sums of 1/n_k."""
    wide = nk.propagate(nk.MLP(3, (5, 10**9), 1, "tanh", 1.5), X, order=1)
    narrow = nk.propagate(nk.MLP(3, (10**9, 5), 1, "tanh", 1.5), X, order=1)
    both = nk.propagate(nk.MLP(3, (5, 5), 1, "tanh", 1.5), X, order=1)
    for name in ALL:
        assert not getattr(both[1], name).any()
        parts = sum(getattr(c[3], name) / c[3].width for c in (wide, narrow))
        np.testing.assert_allclose(getattr(both[3], name) / 5, parts, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_every_tensor_agrees_with_drawn_networks():
    """Quick: one width, so terms of the next order are allowed for; the slow tests extrapolate them away."""
    net = nk.MLP(3, (14, 14), 2, "tanh", weight_var=1.3, bias_var=0.1)
    theory = nk.propagate(net, X, order=1)[3]
    found = nk.measure(nk.theory.observables(net, X, ALL), net, 1500, jax.random.key(0))
    for name in ALL:
        expected = getattr(theory, name)
        size = np.abs(expected).max()
        allowed = 4 * found.sem[name] + 0.35 * size  # the second is 5/14
        assert np.all(np.abs(found.mean[name] - expected) <= allowed), name
        if name not in ("kernel_correction", "ntk_correction"):  # small beside their own fluctuations
            assert size > 4 * np.median(found.sem[name]), name


def test_limit_of_infinite_width_by_extrapolation():
    def estimate(n):
        return nk.results.Estimate({"a": np.array([2.0 + 3 / n - 5 / n**2])}, {"a": np.array([0.1])}, 10)

    found = nk.theory.extrapolated([estimate(n) for n in (4, 8, 16)], (4, 8, 16))
    np.testing.assert_allclose(found.mean["a"], 2.0, rtol=1e-12)
    np.testing.assert_allclose(found.sem["a"], 0.1 * np.linalg.norm([1 / 3, -2, 8 / 3]), rtol=1e-12)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.propagate(nk.MLP(3, (4,), 1, "tanh"), helpers.points(999, 3), order=1),
            "use at most [0-9]+ inputs",
        ),
        (
            lambda: nk.propagate(nk.MLP(3, (4,), parametrization="mean_field"), X, order=1),
            '`order=1` needs parametrization "ntk" or "standard"; got "mean_field"',
        ),
        (
            lambda: nk.propagate(nk.MLP(3, (4,), 1, helpers.hard_tanh), helpers.points(3, 3), order=1),
            "other than the ReLU family, supports 1 or 2 inputs; got 3",
        ),
        (
            lambda: nk.propagate(
                nk.MLP(3, (4, 4), 1, helpers.hard_tanh, 1.0), X[0] + [[0.0], [1e-5]], order=1
            ),
            "`x` contains two inputs whose correlation is within 1e-06 of 1 in some layer",
        ),
        (lambda: nk.theory.observables(nk.MLP(3, ()), X), "`net` must have a hidden layer"),
        (lambda: nk.theory.observables(nk.MLP(3, (4,)), X, "four_points"), "Did you mean 'four_point'?"),
        (
            lambda: nk.theory.observables(nk.MLP(3, (4,)), X, "dntk_p"),
            "`net` must have out_dim >= 2 to measure dntk_p",
        ),
        (
            lambda: nk.theory.observables(nk.kernels.Linear(), X),
            "`net` must be an nk.MLP or nk.Network; got Linear",
        ),
        (
            lambda: nk.propagate(nk.CNN((3, 1), (4,)), X[..., None], order=1),
            r"`order=1` supports inputs that are vectors; got inputs of shape \(3, 1\): use order=0",
        ),
        (
            lambda: nk.propagate(nk.ResMLP(3, 4), X, order=1),
            r"`order=1` does not support `layers\[1\].body\[0\].branch\[0\]`, LayerNorm.*alternating Dense",
        ),
        (
            lambda: nk.propagate(nk.Network(3, [L.Dense(4), L.Activation("tanh")]), X, order=1),
            r"`order=1` does not support `layers\[1\]`, Activation",
        ),
        (
            lambda: nk.theory.extrapolated([], [4]),
            "`widths` must contain at least 2 widths to extrapolate from; got 1",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError, MemoryError), match=message):
        call()
