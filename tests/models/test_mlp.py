"""The multilayer perceptron: its formula, its three scalings, its learning-rate factors."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

KEY = jax.random.key(3)
SCALINGS = ["ntk", "standard", "mean_field"]


def by_hand(net, params, x):
    """The table of the docstring in NumPy."""
    z, sizes = x, [net.in_dim, *net.widths, net.out_dim]
    for layer, entry in enumerate(params):
        weight, bias = np.asarray(entry["weight"]), np.asarray(entry["bias"])
        fan_in, last = sizes[layer], 0 < layer == len(net.widths)
        s = np.tanh(z) if layer else z
        if net.parametrization == "standard":
            w, b = 1.0, 1.0
        else:
            w, b = np.sqrt(net.weight_var / fan_in), np.sqrt(net.bias_var)
        if net.parametrization == "mean_field" and last:
            w = np.sqrt(net.weight_var) / fan_in
        z = w * s @ weight + b * bias
    return z


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("widths, out_dim", [((), 2), ((7,), 1), ((5, 9, 2), 3)])
def test_outputs_follow_the_formula(scaling, widths, out_dim):
    net = nk.MLP(4, widths, out_dim, "tanh", weight_var=1.9, bias_var=0.4, parametrization=scaling)
    params, x = net.init(KEY), helpers.points(6, 4)
    assert [entry["weight"].shape for entry in params] == list(
        zip((4, *widths), (*widths, out_dim), strict=True)
    )
    assert [entry["bias"].shape for entry in params] == [(width,) for width in (*widths, out_dim)]
    z = helpers.compiled(net)(params, x)
    assert z.shape == (6, out_dim)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, by_hand(net, params, x), rtol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_parameters_have_the_stated_variance(scaling):
    net = nk.MLP(40, (300, 200), 2, weight_var=1.9, bias_var=0.4, parametrization=scaling)
    params = net.init(KEY)
    scales = [1.9 / 40, 1.9 / 300] if scaling == "standard" else [1.0, 1.0]
    for entry, scale, bias_scale in zip(
        params, scales, 2 * [0.4 if scaling == "standard" else 1.0], strict=False
    ):
        for leaf, expected in ((entry["weight"], scale), (entry["bias"], bias_scale)):
            squares = np.asarray(leaf).ravel() ** 2 / expected
            assert abs(squares.mean() - 1) < 4 * np.sqrt(2 / squares.size)


def test_the_same_key_draws_the_same_network():
    net = nk.MLP(3, (4,))
    same, other = net.init(jax.random.key(3)), net.init(jax.random.key(4))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, net.init(KEY), same)))
    assert not any(jax.tree.leaves(jax.tree.map(np.array_equal, net.init(KEY), other)))


def test_scalings_are_one_network_in_different_units():
    """Standard parameters are the ntk ones times their scale."""
    ntk, standard = (
        nk.MLP(3, (6, 5), 2, "erf", 1.7, 0.3, parametrization=scaling) for scaling in ("ntk", "standard")
    )
    x = helpers.points(5, 3)
    outputs = [helpers.compiled(net)(net.init(KEY), x) for net in (ntk, standard)]
    np.testing.assert_allclose(*outputs, rtol=1e-12)


def test_training_in_standard_scaling_is_training_in_ntk_scaling():
    """The same function at every step, and the parameters differ by their scale throughout."""
    x, y, new = helpers.points(7, 3), helpers.points(7, 2, 1), helpers.points(4, 3, 2)
    algorithm = nk.GradientDescent(lr=0.05, steps=40)
    runs = {}
    for scaling in ("ntk", "standard"):
        net = nk.MLP(3, (6, 5), 2, "tanh", 1.7, 0.3, parametrization=scaling)
        seen = nk.Record({"outputs": lambda p, net=net: net(p, new)}, every=1)
        runs[scaling] = nk.simulate(net, net.init(KEY), x, y, algorithm, seen)
    for name in ("loss", "outputs"):
        np.testing.assert_allclose(runs["standard"].history[name], runs["ntk"].history[name], rtol=1e-10)
    assert runs["ntk"].history["loss"][-1] < 0.5 * runs["ntk"].history["loss"][0]
    ratio = runs["standard"].params[1]["weight"] / runs["ntk"].params[1]["weight"]
    np.testing.assert_allclose(ratio, np.sqrt(1.7 / 6), rtol=1e-8)


def test_factors_give_standard_scaling_the_tangent_kernel_of_ntk_scaling():
    x, kernels = helpers.points(4, 3), []
    for scaling in ("ntk", "standard"):
        net = nk.MLP(3, (6, 5), 2, "tanh", 1.7, 0.3, parametrization=scaling)
        kernels.append(nk.kernels.EmpiricalNTK(net, net.init(KEY))(x))
    np.testing.assert_allclose(*kernels, rtol=1e-12)


def test_factors_give_mean_field_scaling_the_infinite_tangent_kernel():
    """For one hidden layer its mean over initializations is the NTK at any width."""
    net = nk.MLP(3, (50,), 1, "erf", 1.6, 0.3, parametrization="mean_field")
    x = helpers.points(4, 3)

    def kernel(params):
        return nk.kernels.EmpiricalNTK(net, params)(x)

    assert nk.measure(kernel, net, 600, KEY).agrees(nk.kernels.NTK(net)(x))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_factors_have_the_shape_of_the_parameters(scaling):
    net = nk.MLP(3, (6, 5), 2, parametrization=scaling)
    assert jax.tree.structure(net.lr_factors()) == jax.tree.structure(net.init(KEY))


def test_widths_of_numpy_are_widths():
    assert nk.MLP(np.int64(3), np.array([4, 5])).sizes == (3, 4, 5, 1)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"in_dim": 0}, ValueError, "`in_dim` must be at least 1; got 0"),
        ({"in_dim": 2.5}, TypeError, "`in_dim` must be an integer; got 2.5"),
        ({"in_dim": True}, TypeError, "`in_dim` must be an integer; got True"),
        ({"widths": 256}, TypeError, r"`widths` must be a tuple such as \(256, 256\); got 256"),
        ({"widths": None}, TypeError, r"`widths` must be a tuple such as \(256, 256\); got None"),
        ({"widths": "256"}, TypeError, r"`widths` must be a tuple such as \(256, 256\); got '256'"),
        ({"widths": (8, 0)}, ValueError, "`widths` must be at least 1; got 0"),
        ({"widths": (8.0,)}, TypeError, "`widths` must be an integer; got 8.0"),
        ({"out_dim": -1}, ValueError, "`out_dim` must be at least 1; got -1"),
        ({"weight_var": 0.0}, ValueError, "`weight_var` must be greater than 0; got 0.0"),
        ({"weight_var": -1.0}, ValueError, "`weight_var` must be greater than 0; got -1.0"),
        ({"weight_var": np.nan}, ValueError, "`weight_var` must be a number; got nan"),
        ({"weight_var": np.inf}, ValueError, "`weight_var` must be finite; got inf"),
        ({"weight_var": "1.0"}, TypeError, "`weight_var` must be one number; got '1.0'"),
        (
            {"weight_var": [1.0, 2.0, 3.0]},
            ValueError,
            "`weight_var` must be one value, or one per layer, 2 of them; got 3",
        ),
        ({"bias_var": -0.1}, ValueError, "`bias_var` must be at least 0; got -0.1"),
        ({"bias_var": None}, TypeError, "`bias_var` must be one number; got None"),
        (
            {"parametrization": "NTK"},
            ValueError,
            "`parametrization` must be one of 'ntk', 'standard', 'mean_field'",
        ),
        ({"parametrization": "meanfield"}, ValueError, r"got 'meanfield'. Did you mean 'mean_field'\?"),
        ({"activation": "rellu"}, ValueError, r"`activation` 'rellu' is unknown.*Did you mean 'relu'\?"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        nk.MLP(**({"in_dim": 3} | arguments))


def test_bad_inputs_are_named():
    net = nk.MLP(3, (4,))
    params = net.init(KEY)
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, d\); got \(3,\)"):
        net(params, np.ones(3))
    with pytest.raises(ValueError, match="`x` has 4 features per row; 3 expected"):
        net(params, np.ones((2, 4)))
