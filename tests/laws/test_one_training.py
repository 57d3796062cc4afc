"""The same network, data and algorithm mean the same training in every function, in every parametrization."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

import nearkernel as nk
from support.cases import few

L = nk.layers
RNG = np.random.default_rng(0)
X, NEW, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), np.array([0.6, -0.4, 0.2, 0.5])
SCALINGS = ("ntk", "standard", "mean_field", "mup")


def network(scaling="mean_field", width=24, activation="tanh"):
    return nk.MLP(3, (16, width), 1, activation, 1.5, 0.2, scaling, base_width=8)


def layered(scaling, bias_var=0.2):
    """The same network as `network`, written as layers."""
    kinds = [scaling, scaling, scaling]
    if scaling == "mean_field":
        kinds[:2] = "ntk", "ntk"
    if scaling == "mup":
        kinds = ["standard"] * 3
    dense = [L.Dense(n, 1.5, bias_var, kind) for n, kind in zip((16, 24, 1), kinds, strict=True)]
    return nk.Network((3,), [dense[0], L.Activation("tanh"), dense[1], L.Activation("tanh"), dense[2]])


MODELS = {
    **{scaling: network(scaling) for scaling in SCALINGS},
    **{f"Network, {scaling}": layered(scaling) for scaling in SCALINGS[:3]},
    "MaximalUpdate": nk.MaximalUpdate(nk.MLP(3, (16, 16), 1, "tanh", 1.5, 0.2, "standard"), 8),
    "Scaled": nk.Scaled(network(), 1.5),
    "Scaled, not centered": nk.Scaled(network("standard"), 1.5, False),
}


def by_hand(model):
    """Factors of gradient descent as one vector, from the methods that users call."""
    inner = model.model if isinstance(model, nk.Scaled) else model
    factors, params = inner.lr_factors(), inner.init(0)
    spread = jax.tree.map(lambda factor, leaf: np.full(leaf.shape, float(factor)), factors, params)
    both = {"params": spread, "start": jax.tree.map(np.zeros_like, spread)}
    whole = both if isinstance(model, nk.Scaled) and model.centered else spread
    return np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(whole)])


def outputs(model, params, x=NEW):
    return np.asarray(model(params, x))[:, 0]


class Step:
    """One step of gradient descent with the factors of a model, written out."""

    def __init__(self, model, lr):
        self.model, self.params, factors = model, model.init(1), by_hand(model)
        with jax.enable_x64(True):
            theta, back = ravel_pytree(self.params)
            loss = lambda p: 0.5 * jnp.sum((model(back(p), X)[:, 0] - Y) ** 2)
            features = np.asarray(jax.jacrev(lambda p: model(back(p), np.vstack([X, NEW]))[:, 0])(theta))
            self.end = back(theta - lr * factors * jax.grad(loss)(theta))
        self.ntk = features * factors @ features.T
        errors = outputs(model, self.params, X) - Y
        self.linear = outputs(model, self.params) - lr * self.ntk[4:, :4] @ errors


@pytest.mark.parametrize("name", few(MODELS, 3))
def test_training_and_its_kernel_have_the_factors_of_the_network(name):
    model, lr = MODELS[name], 1e-5
    step = Step(model, lr)
    run = nk.simulate(model, step.params, X, Y, nk.GradientDescent(lr, 1), nk.Record(["kernel", "features"]))
    for found, expected in zip(jax.tree.leaves(run.params), jax.tree.leaves(step.end), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    ntk, roots = run.history["kernel"][0][:, 0, :, 0], run.history["features"][0][:, 0]
    for found in (ntk, roots @ roots.T, nk.kernels.EmpiricalNTK(model, step.params)(X)):
        np.testing.assert_allclose(found, step.ntk[:4, :4], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_function_trains_with_the_factors_of_the_network(name):
    """To rounding, or to the square of the step."""
    model, lr = MODELS[name], 1e-5
    step, algorithm = Step(model, lr), nk.GradientDescent(lr, 1)
    params, ntk, end = step.params, step.ntk, outputs(model, step.end)
    top = np.linalg.eigvalsh(ntk[:4, :4])[-1]
    for method in ("jacobian", "products"):
        kernel = nk.kernels.EmpiricalNTK(model, params, method=method)
        np.testing.assert_allclose(kernel(NEW, X), ntk[4:, :4], rtol=1e-10, atol=1e-12)
    solution = nk.solve(nk.expand(model, params), X, Y, algorithm)
    inspection = nk.inspect(model, params, X, Y, NEW, algorithm)
    for found in (solution.predict(NEW).mean, inspection.predictions[-1][:, 0]):
        np.testing.assert_allclose(found, step.linear, rtol=1e-12)
    for found in (solution.params(), inspection.params):
        np.testing.assert_allclose(outputs(model, found), end, rtol=1e-8)
    assert inspection.eigenvalues[0] == pytest.approx(top)
    assert nk.theory.movement(model, params, step.end, X).ntk_start == pytest.approx(top)
    assert nk.theory.learning_rate_phase(model, params, X, Y, lr, 2).ratio == pytest.approx(lr * top)
    few = nk.theory.sample_space_descent(model, params, X, Y, lr, 1, NEW)
    np.testing.assert_allclose(few.outputs[1][4:], end, rtol=1e-9)
    np.testing.assert_allclose(few.kernel[0], ntk, rtol=1e-10, atol=1e-12)
    assert nk.theory.output_modes(model, params, X[:1]).ntk == pytest.approx(ntk[0, 0])
    for optimizer in (nk.SGD(lr, None, 1), nk.Optax(optax.sgd(lr), 1)):
        same = nk.simulate(model, params, X, Y, optimizer)
        np.testing.assert_allclose(outputs(model, same.params), end, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["standard", "mean_field", "mup", "Scaled"])
def test_orders_of_training_are_those_of_the_network(name):
    """Gradient flow of a short time: order 2 of `solve` misses `simulate` by less than order 1, order 1 by less than 0.

    The meta-kernel has the factors too: it is the rate at which the tangent kernel changes.
    """
    model, flow = MODELS[name], nk.GradientFlow(0.02)
    params = model.init(2)
    end = nk.simulate(model, params, X, Y, flow).params
    expanded = nk.expand(model, params, degree=3)
    solved = [nk.solve(expanded, X, Y, flow, order).predict(NEW).mean for order in range(3)]
    off = [np.abs(found - outputs(model, end)).max() for found in solved]
    assert off[2] < 0.3 * off[1] < 0.1 * off[0], off
    exact = nk.solve(expanded, X, Y, flow, 2)
    np.testing.assert_allclose(outputs(model, exact.params()), outputs(model, end), atol=3 * off[2])

    lr = 1e-6
    kernels = [
        nk.kernels.EmpiricalNTK(model, theta)(X)
        for theta in (params, nk.simulate(model, params, X, Y, nk.GradientDescent(lr, 1)).params)
    ]
    mu = nk.theory.EmpiricalDNTK(model, params)(X) @ (outputs(model, params, X) - Y)
    np.testing.assert_allclose((kernels[1] - kernels[0]) / lr, -(mu + mu.T), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mup", "Scaled, not centered"])
def test_exact_training_of_an_expansion_has_the_factors(name):
    """`feature_learning` compares orders with trained expansions: at scale 0 they are the linear theory."""
    model = MODELS[name]
    expanded = nk.expand(model, model.init(3), degree=2)
    for algorithm in (nk.GradientFlow(0.5), nk.Ridge(0.3), nk.DirectOptimization()):
        solution = nk.solve(expanded, X, Y, algorithm, 1)
        found = solution.feature_learning(NEW, np.zeros(3))
        assert found.curve([0.0])[0] == pytest.approx(found.loss, rel=1e-6)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("bias_var", [0.0, 0.2])
def test_factors_are_the_same_however_a_network_is_written(scaling, bias_var):
    net = nk.MLP(3, (16, 24 if scaling != "mup" else 16), 1, "tanh", 1.5, bias_var, scaling, base_width=8)
    same = layered(scaling, bias_var)
    if scaling == "mup":
        dense = [L.Dense(n, 1.5, bias_var, "standard") for n in (16, 16, 1)]
        layers = [dense[0], L.Activation("tanh"), dense[1], L.Activation("tanh"), dense[2]]
        same = nk.MaximalUpdate(nk.Network((3,), layers), 8)
    for one, other in zip(jax.tree.leaves(net.lr_factors()), jax.tree.leaves(same.lr_factors()), strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-12)


def test_layers_before_one_in_mean_field_scaling_have_its_fan_in():
    """Also repeated, and within a branch: what enters a residual block gets its gradients through the skip."""
    last = L.Dense(1, parametrization="mean_field")
    nested = nk.Network((3,), [L.Repeat([L.Dense(3), L.Activation()], 1), L.Dense(5), last])
    assert jax.tree.leaves(nested.lr_factors()) == [5.0, 5.0, 5.0, 5.0, 1.0, 5.0]
    branch = L.Residual([L.Dense(7), L.Activation(), L.Dense(8, parametrization="mean_field")])
    net = nk.Network((3,), [L.Dense(8), branch, L.Dense(1)])
    assert jax.tree.leaves(net.lr_factors()) == [1.0, 1.0, 7.0, 7.0, 1.0, 7.0, 1.0, 1.0]
    both = L.Sum([[L.Dense(4, parametrization="mean_field")], [L.Dense(4, parametrization="mean_field")]])
    assert jax.tree.leaves(nk.Network((3,), [L.Dense(8), both, L.Dense(1)]).lr_factors())[:2] == [8.0, 8.0]
    repeated = nk.Network(
        (3,), [L.Dense(8), L.Repeat([L.Dense(8, parametrization="mean_field")], 2), L.Dense(1)]
    )
    with pytest.raises(ValueError, match="`layers` of Repeat must not shrink their outputs"):
        repeated.lr_factors()


def test_plain_training_is_asked_for_by_the_number_one():
    """And any number is one factor for all parameters."""
    net = network()
    params, step = net.init(4), nk.GradientDescent(1e-3, 3)
    ones = jax.tree.map(lambda _: 1.0, params)
    plain, tree, half = (
        nk.simulate(net, params, X, Y, step, lr_factors=factors) for factors in (1.0, ones, 0.5)
    )
    slower = nk.simulate(net, params, X, Y, nk.GradientDescent(5e-4, 3), lr_factors=1.0)
    own = nk.simulate(net, params, X, Y, step)
    assert np.array_equal(plain.history["loss"], tree.history["loss"])
    np.testing.assert_allclose(half.history["loss"], slower.history["loss"], rtol=1e-13)
    assert abs(own.history["loss"][-1] - plain.history["loss"][-1]) > 0.01
    kernel = nk.kernels.EmpiricalNTK(net, params, 1.0)
    features = nk.theory.effective_features(net, params, X)[:, 0]
    np.testing.assert_allclose(kernel(X), features @ features.T, rtol=1e-11)
    solution = nk.solve(nk.expand(net, params, lr_factors=1.0), X, Y, step)
    inspection = nk.inspect(net, params, X, Y, NEW, step, lr_factors=1.0)
    for found in (solution.predict(NEW).mean, inspection.predictions[-1][:, 0]):
        np.testing.assert_allclose(found, outputs(net, plain.params), atol=1e-4)
    scaled = nk.Scaled(net)
    start = scaled.at(params)
    for factors in (ones, {"params": ones, "start": ones}, 1.0):
        run = nk.simulate(scaled, start, X, Y, step, lr_factors=factors)
        moved = jax.tree.map(np.subtract, run.params["start"], params)
        assert not any(np.any(leaf) for leaf in jax.tree.leaves(moved)) and run.ok


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["standard", "mean_field", "mup"])
def test_adaptive_optimizers_have_factors_of_their_own(scaling):
    """Of Adam they are 1, but in maximal update parametrization; optax is asked how its updates grow."""
    net = network(scaling)
    params = net.init(5)
    expected = net.lr_factors("adam") if scaling == "mup" else 1.0
    by_adam = nk.simulate(net, params, X, Y, nk.Adam(1e-3, 3), lr_factors=expected)
    warm = optax.linear_schedule(0.0, 1e-3, 2)
    for algorithm in (nk.Adam(1e-3, 3), nk.Optax(optax.adam(1e-3), 3)):
        run = nk.simulate(net, params, X, Y, algorithm)
        np.testing.assert_allclose(outputs(net, run.params), outputs(net, by_adam.params), rtol=1e-9)
    runs = [
        nk.simulate(net, params, X, Y, nk.Optax(transformation, 3), lr_factors=factors)
        for transformation, plain in ((optax.adamw(warm), expected), (optax.sgd(warm, 0.9), net.lr_factors()))
        for factors in (None, plain)
    ]
    for one, other in (runs[:2], runs[2:]):
        assert np.array_equal(one.history["loss"], other.history["loss"])
    roots = optax.stateless(
        lambda updates, _: jax.tree.map(lambda g: -jnp.sign(g) * jnp.abs(g) ** 0.5, updates)
    )
    odd, still = nk.Optax(roots, 3), nk.Optax(optax.set_to_zero(), 3)
    for algorithm in (odd, still):
        with pytest.raises(ValueError, match=r"`lr_factors` must be given for this nk\.Optax"):
            nk.simulate(net, params, X, Y, algorithm)
    with jax.enable_x64(True):  # within a program too
        found = jax.jit(lambda p: nk.simulate(net, p, X, Y, nk.Optax(optax.adam(1e-3), 3)).params)(params)
    np.testing.assert_allclose(outputs(net, found), outputs(net, by_adam.params), rtol=1e-9)


def test_decay_of_an_optimizer_leaves_the_start_of_a_centered_model_alone():
    model = nk.Scaled(nk.MLP(3, (8,), activation="tanh"))
    start = model.init(6)
    run = nk.simulate(model, start, X, Y, nk.Optax(optax.adamw(1e-3, weight_decay=10.0), 5))
    assert all(map(np.array_equal, *map(jax.tree.leaves, (run.params["start"], start["start"]))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["standard", "mup"])
def test_sgd_balances_its_fluctuations_with_the_factors(name):
    """The mean change of |theta|^2/2 in units of the factors is -lr times dissipation plus lr times fluctuation."""
    model, sgd = MODELS[name], nk.SGD(0.01, 2, 500)
    params = model.init(7)
    sides = nk.theory.fluctuation_observables(model, params, X, Y, sgd)
    away = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1, params)
    factors = model.lr_factors()

    def size(theta):
        parts = jax.tree.map(lambda t, p, f: jnp.sum((t - p) ** 2) / f, theta, params, factors)
        return 0.5 * sum(jax.tree.leaves(parts))

    change = nk.theory.step_change(size, model, params, X, Y, sgd)
    with jax.enable_x64(True):
        expected = 0.01 * (sides["fluctuation"](away) - sides["dissipation"](away))
        assert float(change(away)) == pytest.approx(float(expected), rel=1e-6)
    run = nk.theory.sgd_until_stationary(model, params, X, Y, nk.SGD(0.01, 2, 400), 0)
    with jax.enable_x64(True):
        first = [float(sides[side](params)) for side in ("dissipation", "fluctuation")]
    np.testing.assert_allclose(
        [run.history[side][0] for side in ("dissipation", "fluctuation")], first, rtol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["ntk", "standard", "mean_field"])
def test_forecasts_are_means_of_trained_networks(scaling):
    """Networks of width 512, within 4 standard errors, the sampling error of the limit and 4 deviations over width."""
    net = nk.MLP(3, (512,), 1, "tanh", 1.5, parametrization=scaling)
    descent = nk.GradientDescent(0.1, 40)
    law = nk.forecast(net, X, Y, descent, NEW)

    def trained(params):
        return net(nk.simulate(net, params, X, Y, descent, nk.Record(every=40)).params, NEW)[:, 0]

    found = nk.measure(trained, net, 64, 0)
    error = np.hypot(found.sem, getattr(law, "error", 0.0))
    assert (np.abs(found.mean - law.mean) < 4 * error + 4 / 512).all(), (found.mean - law.mean) / error
    plain = nk.simulate(net, net.init(0), X, Y, nk.GradientDescent(1e-4, 40), lr_factors=1.0)
    assert scaling == "ntk" or (np.abs(outputs(net, plain.params) - law.mean) > 4 * error).any()
