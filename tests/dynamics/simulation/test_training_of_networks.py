"""Real networks, expanded: order by order against networks that are really trained."""

import warnings

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.helpers import points

N, D, M = 9, 3, 5
X, X_NEW = points(N, D), points(M, D, seed=1)
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]


def flax_net():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.tanh(nn.Dense(24)(x)))

    module = Net()
    model = nk.from_function(module.apply, init=lambda key: module.init(key, jnp.ones((1, D))))
    return model, model.init(jax.random.key(1))


def equinox_net():
    net = eqx.nn.MLP(D, 1, 16, 1, activation=jnp.sin, key=jax.random.key(2))
    params, static = eqx.partition(net, eqx.is_inexact_array)
    return nk.from_function(lambda p, x: jax.vmap(eqx.combine(p, static))(x)), params


def own_net():
    net = nk.MLP(D, (20, 12), activation="tanh", weight_var=1.5, bias_var=0.2)
    return net, net.init(jax.random.key(0))


NETS = {"MLP": own_net, "Flax": flax_net, "Equinox": equinox_net}


def slopes_over_alpha(net, theta, steps, orders=(0, 1, 2), y=Y):
    kernel = nk.kernels.EmpiricalNTK(net, theta).full(X)
    most = np.linalg.eigvalsh(kernel.reshape(y.size, y.size))[-1]
    errors = []
    for alpha in (32.0, 64.0):
        model = nk.Scaled(net, alpha)
        params = model.at(theta)
        algorithm = nk.GradientDescent(lr=0.8 / most / alpha**2, steps=steps)
        trained = np.asarray(model(nk.simulate(model, params, X, y, algorithm).params, X_NEW))
        expanded = nk.expand(model, params, degree=3)
        found = [nk.solve(expanded, X, y, algorithm, order).predict(X_NEW) for order in orders]
        errors.append([np.linalg.norm(f.mean.reshape(trained.shape) - trained) for f in found])
    return np.log2(np.array(errors[1]) / np.array(errors[0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MLP", "Flax", "Equinox"])
def test_each_order_is_another_power_of_the_lazy_scale(name):
    net, theta = NETS[name]()
    np.testing.assert_allclose(slopes_over_alpha(net, theta, steps=60), [-1, -2, -3], atol=0.1)


@pytest.mark.slow
def test_so_it_is_with_several_outputs():
    net = nk.MLP(D, (24,), out_dim=2, activation="tanh")
    y = np.stack([Y, np.cos(X[:, 0])], axis=1)
    slopes = slopes_over_alpha(net, net.init(jax.random.key(3)), 60, y=y)
    np.testing.assert_allclose(slopes, [-1, -2, -3], atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", (0, 1, 2))
def test_slopes_at_the_size_of_the_ladder(seed):
    from nearkernel.forecasts.theory_ladder import Settings, climb, slopes

    settings = Settings(points=100, alphas=(16.0, 32.0, 64.0), widths=(), tol=1e-3)
    rungs = [climb(settings, ("alpha", a, 256, seed), lambda _: None) for a in settings.alphas]
    np.testing.assert_allclose(slopes(rungs, "alpha"), [-1, -2, -3], atol=0.1)


@pytest.mark.merge
def test_the_end_of_training_is_predicted_without_it():
    net, theta = own_net()
    model = nk.Scaled(net, 64.0)
    params = model.at(theta)
    lam = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(model, params)(X))
    algorithm = nk.GradientDescent(lr=1 / lam[-1])
    run = nk.simulate(model, params, X, Y, algorithm, tol=1e-9)
    trained = np.asarray(model(run.params, X_NEW))[:, 0]
    solutions = [nk.solve(nk.expand(model, params, 3), X, Y, algorithm, order) for order in (0, 1, 2)]
    errors = [np.linalg.norm(s.predict(X_NEW).mean - trained) for s in solutions]
    assert errors[2] < errors[1] / 5 < errors[0] / 25
    moved = jax.tree.map(np.subtract, run.params["params"], theta)
    ours = jax.tree.map(np.subtract, solutions[2].params()["params"], theta)
    size = max(np.abs(leaf).max() for leaf in jax.tree.leaves(moved))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(moved), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * size)
    assert solutions[1].passes["bend_pull_sum"] == solutions[1].sum_rank


def test_the_lazy_scale_multiplies_kernels_and_divides_orders():
    net, theta = own_net()
    terms = []
    for alpha in (2.0, 6.0):
        model = nk.Scaled(net, alpha)
        params = model.at(theta)
        kernel = nk.kernels.EmpiricalNTK(model, params)
        np.testing.assert_allclose(kernel(X), alpha**2 * nk.kernels.EmpiricalNTK(net, theta)(X), rtol=1e-12)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = nk.solve(nk.expand(model, params, 3), X, Y, nk.GradientFlow(), 2)
            terms.append(solution.predict(X_NEW).terms)
    for k in range(3):
        np.testing.assert_allclose(terms[1][k], terms[0][k] / 3.0**k, rtol=1e-6, atol=1e-9)


def test_a_scaled_model_starts_at_zero_only_if_centered():
    net, theta = own_net()
    centered, plain = nk.Scaled(net, 3.0), nk.Scaled(net, 3.0, centered=False)
    assert np.abs(np.asarray(centered(centered.at(theta), X))).max() == 0
    np.testing.assert_allclose(plain(plain.at(theta), X), 3 * np.asarray(net(theta, X)))
    run = nk.simulate(centered, centered.init(jax.random.key(5)), X, Y, nk.GradientDescent(1e-4, steps=3))
    before = centered.init(jax.random.key(5))
    for one, other in zip(
        jax.tree.leaves(run.params["start"]), jax.tree.leaves(before["start"]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(
        TypeError, match=r"`params` of a centered nk.Scaled must come from its `init\(key\)` or `at"
    ):
        centered(theta, X)
    with pytest.raises(ValueError, match=r"`alpha` must be greater than 0; got -1"):
        nk.Scaled(net, -1)


def test_the_drift_of_a_kernel_layer_by_layer_is_that_of_its_jacobians():
    net = nk.MLP(D, (8, 7), out_dim=2, activation="tanh", bias_var=0.3)
    theta, step = net.init(jax.random.key(0)), net.init(jax.random.key(1))
    layers, rows = (nk.kernels.EmpiricalNTK(net, theta, method=m) for m in ("layers", "jacobian"))
    found = layers.half_drift(step, X, X_NEW)
    np.testing.assert_allclose(found, rows.half_drift(step, X, X_NEW), atol=1e-12)
    h = 1e-6
    moved = [
        nk.kernels.EmpiricalNTK(
            net, jax.tree.map(lambda p, s, h=h: np.asarray(p) + h * np.asarray(s), theta, step)
        ).full(X, X_NEW)
        for h in (h, -h)
    ]
    both = found + layers.half_drift(step, X_NEW, X).transpose(2, 3, 0, 1)
    np.testing.assert_allclose((moved[0] - moved[1]) / (2 * h), both, atol=1e-7)


def test_pushed_gradients_are_contracted_jacobians():
    net = nk.MLP(D, (6,), out_dim=4, activation="tanh")
    theta, factors = net.init(jax.random.key(0)), jax.tree.map(lambda _: 1.7, net.init(jax.random.key(0)))
    function = nk.from_function(lambda p, x: net(p, x))
    for lr_factors in (None, factors):
        found = {
            method: nk.kernels.EmpiricalNTK(function, theta, lr_factors, method)
            for method in ("jacobian", "products", "auto")
        }
        for method in ("products", "auto"):
            np.testing.assert_allclose(
                found[method].full(X, X_NEW), found["jacobian"].full(X, X_NEW), atol=1e-12
            )
            np.testing.assert_allclose(found[method](X), found["jacobian"](X), atol=1e-12)


def test_what_cannot_be_expanded_is_refused_in_one_line():
    net, theta = own_net()
    broken = jax.tree.map(lambda leaf: np.asarray(leaf) * np.nan, theta)
    with pytest.raises(
        ValueError, match=r"`params\[0\]\['bias'\]` holds \d+ NaN or infinite .*: did training diverge"
    ):
        nk.expand(net, broken, degree=2)
    with pytest.raises(TypeError, match=r"`params` must be a tree of floating-point arrays"):
        nk.expand(net, jax.tree.map(lambda leaf: np.ones(leaf.shape, int), theta), degree=2)
    rng = np.random.default_rng(0)
    noisy = nk.from_function(lambda p, x: x @ p["w"] * rng.normal())
    with pytest.raises(
        ValueError, match=r"different outputs when it is called again: switch off its randomness"
    ):
        nk.solve(nk.expand(noisy, {"w": np.ones((D, 1))}), X, Y)
    log = nk.from_function(lambda p, x: jnp.log(x @ p["w"]))
    with pytest.raises(ValueError, match=r"outputs at `x` are not finite: check `params` and `x`"):
        nk.solve(nk.expand(log, {"w": np.zeros((D, 1))}), X, Y)
    constant = nk.from_function(lambda p, x: x[:, :1] + 0 * p["w"].sum())
    with pytest.raises(ValueError, match=r"do not depend on its parameters: there is nothing to train"):
        nk.solve(nk.expand(constant, {"w": np.ones(2)}), X, Y)
    cube = nk.from_function(lambda p, x: jnp.ones((len(x), 1, 1)) * p["w"])
    with pytest.raises(ValueError, match=r"must return \(n,\) or \(n, out\)"):
        nk.solve(nk.expand(cube, {"w": np.ones(())}), X, Y)


def test_symmetric_inputs_of_an_odd_network_are_no_reason_to_refuse():
    net = nk.MLP(1, (6,), activation="tanh")
    x = np.concatenate([np.zeros((8, 1)), [[-1.0], [1.0], [-2.0], [2.0]]])
    y = np.sin(x[:, 0])
    found = nk.solve(nk.expand(net, net.init(jax.random.key(0))), x, y).predict(x).mean
    assert np.corrcoef(found, y)[0, 1] > 0.9


def test_kinks_are_said_to_be_missing():
    net = nk.MLP(D, (30,), activation="relu")
    expanded = nk.expand(nk.Scaled(net, 8.0), nk.Scaled(net, 8.0).init(jax.random.key(0)), degree=2)
    with pytest.warns(UserWarning, match=r"no order of the expansion includes a neuron that crosses a kink"):
        nk.solve(expanded, X, Y, nk.GradientFlow(), order=1)
