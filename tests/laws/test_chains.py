"""A network of `Dense` and `Activation` layers passes everywhere as the MLP that it is, with the same numbers."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.layers import Activation, Conv, Dense, Flatten, Identity, Repeat
from nearkernel.models.networks.chain import chain_of

RNG = np.random.default_rng(8)
X, NEW, Y = RNG.normal(size=(3, 3)), RNG.normal(size=(2, 3)), np.array([0.9, -0.4, 0.3])
LABELS = np.array([1, -1, 1])
DESCENT = nk.GradientDescent(0.1, 1)
T = nk.theory

OF_LAYERS = {
    "richness": lambda net, _: nk.richness(net),
    "regime": lambda net, _: nk.regime(net, Y).strength,
    "propagate": lambda net, _: nk.propagate(net, X[:2], order=1),
    "observables": lambda net, theta: _observed(net, theta),
    "average_variance": lambda net, _: T.average_variance(net, X[:1], np.sin, 2),
    "gradient_spread": lambda net, _: T.gradient_spread(net, X),
    "gaussianity": lambda net, _: T.gaussianity(net, X, 50, 0),
    "smallest_eigenvalue": lambda net, _: T.smallest_eigenvalue(net, X),
    "lipschitz_bounds": lambda net, theta: T.lipschitz_bounds(net, theta, X),
    "first_move": lambda net, _: nk.statistics.first_move(net, X, Y, 0.1),
    "first_move without factors": lambda net, _: nk.statistics.first_move(net, X, Y, 0.1, factors=False),
    "coordinate_check": lambda net, _: _of_theory(
        nk.statistics.coordinate_check(net, X, Y, DESCENT, (4, 8), draws=2)
    ),
    "MaximalUpdate": lambda net, _: _entries(net, nk.MaximalUpdate(net, 4).lr_factors()),
    "lr_factors": lambda net, _: _entries(net, net.lr_factors()),
    "symmetric_init": lambda net, _: [
        each["weight"] for each in _entries(net, nk.models.symmetric_init(net, 1, 1.8))
    ],
    "measure_posterior": lambda net, _: T.measure_posterior(
        net, X, Y, NEW, 0.1, 0, chains=2, samples=3, burn=3
    ),
}
OF_RELU = {
    "relu_ntk": lambda net, _: T.relu_ntk(net, X[:1]),
    "relu_moments": lambda net, _: T.relu_moments(net, X, 1.8),
    "largest_eigenvalue": lambda net, _: T.largest_eigenvalue(net, X[:1]),
    "input_gradient": lambda net, _: T.input_gradient(net),
    "path_sum": lambda net, theta: T.path_sum(net, theta, X),
    "normalized_margin": lambda net, theta: T.normalized_margin(net, theta, X, LABELS),
    "region_bounds": lambda net, _: T.region_bounds(net),
    "mean_crossings": lambda net, _: T.mean_crossings(net, X[0], X[1]),
    "measure_crossings": lambda net, _: T.measure_crossings(net, X[0], X[1], 3, 0),
    "mean_boundary": lambda net, _: T.mean_boundary(net, 2.0),
    "measure_boundary": lambda net, _: T.measure_boundary(net, 2.0, 2, 0),
    "posterior": lambda net, _: nk.posterior(net, X, Y, NEW, 0.1, theory=nk.FiniteWidth()).mean,
    "width_evidence": lambda net, _: T.width_evidence(net, X, Y, 0.1, (6,)).log_evidence,
}
OF_ONE_LAYER = {
    "convergence_guarantee": lambda net, theta: T.convergence_guarantee(net, theta, X, Y),
    "concentration": lambda net, _: T.concentration(net, X),
    "adapted_mean": lambda net, _: T.adapted_mean(net, X, Y, NEW, 0.1, 0, neurons=20, sweeps=200).mean,
}


def _entries(net, tree):
    return chain_of(net, "entries", mean_field=True).entries(tree)


def _of_theory(result):
    """Draws of a network made of layers are others than those of the MLP."""
    return result.predicted, result.expected


def _observed(net, theta):
    with jax.enable_x64(True):
        return T.observables(net, X[:2], ["four_point", "ntk_variance_a"])(theta)


def layered(mlp):
    return nk.Network(mlp.in_shape, [Identity(), *mlp.layers.layers])


def repeated(mlp):
    """With all layers between the first and the last weights in one Repeat."""
    first, function, dense, *_ = mlp.layers.layers
    inner = Repeat([function, dense], len(mlp.widths) - 1)
    return nk.Network(mlp.in_shape, [first, inner, *mlp.layers.layers[-2:]])


def agree(law, mlp, net):
    theta = mlp.init(jax.random.key(2))
    one = law(mlp, theta)
    two = law(net, chain_of(net, "params", mean_field=True).params(_entries(mlp, theta)))
    leaves = [jax.tree.leaves(each) for each in (one, two)]
    assert leaves[0] and len(leaves[0]) == len(leaves[1])
    for expected, found in zip(*leaves, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["ntk", "standard"])
@pytest.mark.parametrize("name", OF_LAYERS)
def test_a_network_of_layers_is_the_mlp_that_it_is(name, kind):
    mlp = nk.MLP(3, (5, 5), 1, "tanh", 1.5, 0.1, kind)
    for made in (layered, repeated):
        # maximal updates widen the layers of a Repeat with the first one
        agree(OF_LAYERS[name], mlp, made(mlp))


@pytest.mark.parametrize(
    "name", ["richness", "first_move", "coordinate_check", "lr_factors", "symmetric_init"]
)
def test_also_in_mean_field_scaling(name):
    mlp = nk.MLP(3, (5, 5), 1, "tanh", 1.5, 0.1, "mean_field")
    agree(OF_LAYERS[name], mlp, layered(mlp))


@pytest.mark.parametrize("name", OF_RELU)
def test_a_relu_network_of_layers_is_the_mlp_that_it_is(name):
    mlp = nk.MLP(3, (4, 4), 1, "relu", 2.0)
    for made in (layered, repeated):
        agree(OF_RELU[name], mlp, made(mlp))


def test_the_change_of_the_tangent_kernel():
    mlp = nk.MLP(3, (4, 5), 1, "relu", (2.0, 1.0, 1.5))
    agree(lambda net, _: T.relu_ntk_change(net, X), mlp, layered(mlp))


@pytest.mark.parametrize("name", OF_ONE_LAYER)
def test_a_network_with_one_hidden_layer_is_the_mlp_that_it_is(name):
    mlp = nk.MLP(3, (30,), 1, "tanh", 1.5, 0.0)
    agree(OF_ONE_LAYER[name], mlp, layered(mlp))


def test_losses_at_every_depth():
    mlp = nk.MLP(3, (50, 50), 1, "tanh", 1.5, 0.1)
    losses = lambda net, _: T.depth_losses(net, X, Y).variance
    agree(losses, mlp, layered(mlp))


def test_regions_of_the_same_parameters():
    """Also where the slopes of layers are given one by one."""
    mlp = nk.MLP(3, (4, 4), 1, ("relu", "relu"), 2.0, 0.1)
    count = lambda net, theta: T.crossings(net, theta, X[0], X[1])
    agree(count, mlp, layered(mlp))


def test_parameters_go_from_tree_to_tree():
    mlp = nk.MLP(3, (4, 4, 4), 2, "tanh", 1.5, 0.1, "standard")
    theta = mlp.init(jax.random.key(0))
    net = repeated(mlp)
    chain, own = chain_of(net, "params"), _entries(mlp, theta)
    np.testing.assert_allclose(net(chain.params(own), X), mlp(theta, X), rtol=1e-12)
    jax.tree.map(np.testing.assert_array_equal, chain.entries(chain.params(own)), own)
    assert chain.mlp().sizes == mlp.sizes and chain.mlp().parametrization == "standard"


@pytest.mark.parametrize("name", ["first_move", "lipschitz_bounds", "measure_posterior"])
def test_what_is_no_chain_is_refused_with_its_place(name):
    net = nk.Network((4, 3), [Conv(4, (3,)), Activation(), Flatten(), Dense(1)])
    with pytest.raises(TypeError, match=rf"`{name}` supports inputs that are vectors"):
        OF_LAYERS[name](net, None)
    net = nk.Network((3,), [Dense(4), nk.layers.LayerNorm(), Activation(), Dense(1)])
    with pytest.raises(
        TypeError, match=rf"`{name}` does not support `layers\[1\]`, LayerNorm.*alternating Dense"
    ):
        OF_LAYERS[name](net, None)
    with pytest.raises(TypeError, match=r"`net` must be an nk\.MLP or nk\.Network; got RBF"):
        OF_LAYERS[name](nk.kernels.RBF(1.0), None)
