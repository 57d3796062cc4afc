"""Networks of other libraries as models: the theory does not care who wrote them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

X, Y, NEW = helpers.points(5, 3), helpers.points(5, 2, 1), helpers.points(4, 3, 2)


def of_flax_linen():
    from flax import linen

    module = linen.Sequential([linen.Dense(7), linen.tanh, linen.Dense(2)])
    model = nk.from_function(module.apply, init=lambda key: module.init(key, jnp.ones((1, 3))))
    return model, model.init(jax.random.key(0))


def of_flax_nnx():
    from flax import nnx

    net = nnx.Sequential(nnx.Linear(3, 7, rngs=nnx.Rngs(0)), jnp.tanh, nnx.Linear(7, 2, rngs=nnx.Rngs(1)))
    graph, params = nnx.split(net)
    return nk.from_function(lambda p, x: nnx.merge(graph, p)(x)), params


def of_equinox():
    mlp = eqx.nn.MLP(3, 2, 7, 1, activation=jnp.tanh, key=jax.random.key(1))
    params, static = eqx.partition(mlp, eqx.is_inexact_array)
    return nk.from_function(lambda p, x: jax.vmap(eqx.combine(p, static))(x)), params


LIBRARIES = {"flax.linen": of_flax_linen, "flax.nnx": of_flax_nnx, "equinox": of_equinox}


@pytest.mark.parametrize(
    "library",
    ["equinox", *(pytest.param(name, marks=pytest.mark.slow) for name in ("flax.linen", "flax.nnx"))],
)
def test_simulating_the_linearization_equals_solving_it(library):
    """Their parameters are float32; the law holds in float64."""
    model, params = LIBRARIES[library]()
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(params))
    linear = nk.expand(model, params)
    kernel = nk.kernels.EmpiricalNTK(model, params).full(X)
    largest = np.linalg.eigvalsh(kernel.reshape(10, 10))[-1]
    algorithm = nk.GradientDescent(lr=1.3 / largest, steps=37)
    run = nk.simulate(linear, params, X, Y, algorithm)
    solved = nk.solve(linear, X, Y, algorithm)
    np.testing.assert_allclose(linear(run.params, NEW), solved.predict(NEW).mean, atol=1e-9)
    assert np.abs(solved.predict(NEW).mean - np.asarray(model(params, NEW))).max() > 1e-2


@pytest.mark.parametrize(
    "library",
    ["equinox", *(pytest.param(name, marks=pytest.mark.slow) for name in ("flax.linen", "flax.nnx"))],
)
def test_simulating_the_network_itself_lowers_its_loss(library):
    model, params = LIBRARIES[library]()
    run = nk.simulate(model, params, X, Y, nk.GradientDescent(lr=0.02, steps=30))
    assert run.ok
    assert run.history["loss"][-1] < 0.8 * run.history["loss"][0]


def test_a_network_written_twice_is_the_same_model():
    net = nk.MLP(3, (6,), 1, "tanh")
    twin = nk.from_function(lambda p, x: net(p, x), init=net.init)
    params = twin.init(jax.random.key(2))
    np.testing.assert_allclose(twin(params, X), net(params, X), rtol=1e-14)
    by_layers, by_jacobian = (nk.kernels.EmpiricalNTK(model, params)(X) for model in (net, twin))
    np.testing.assert_allclose(by_layers, by_jacobian, rtol=1e-12)


def test_one_output_may_come_as_a_vector():
    model = nk.from_function(lambda p, x: x @ p)
    assert model(np.ones(3), X).shape == (5, 1)


def test_bad_functions_are_named():
    with pytest.raises(TypeError, match=r"`f` must be a function f\(params, x\); got int"):
        nk.from_function(3)
    with pytest.raises(
        ValueError, match=r"this model has no `init`: give it to nk\.from_function\(f, init=\.\.\.\)"
    ):
        nk.from_function(lambda p, x: x).init(jax.random.key(0))
    with pytest.raises(
        ValueError, match=r"must return \(n,\) or \(n, out\); for x \(5, 3\) it returns \(3, 5\)"
    ):
        nk.from_function(lambda p, x: x.T)(None, X)
    with pytest.raises(ValueError, match=r"must return \(n,\) or \(n, out\); for x \(5, 3\) it returns \(\)"):
        nk.from_function(lambda p, x: jnp.sum(x))(None, X)
