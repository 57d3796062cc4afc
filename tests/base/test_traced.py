"""Inside the caller's jit, grad and vmap: models, kernels, training and curvature are JAX expressions.

All other verbs need the values, and say so.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from public_calls._good import cubic, phi, psi
from support.cases import few
from support.helpers import compiled, relative_error

K, S, D, G, L = nk.kernels, nk.statistics, nk.dynamics, nk.geometry, nk.layers
RNG = np.random.default_rng(5)
X, NEW, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=5)
SEQUENCES = RNG.normal(size=(3, 4, 2))
KEY = jax.random.key(0)
NET = nk.MLP(3, (6,), activation="erf", weight_var=1.5, bias_var=0.1)
SEQUENCE_NET = nk.Network(
    (4, 2),
    [L.Conv(4, 3), L.Activation("tanh"), L.Residual([L.Attention(4)]), L.LayerNorm(), L.AvgPool(2), L.Flatten(),
     L.Dense(2)],
)  # fmt: skip
MODELS = {
    "MLP": NET,
    "mean field": nk.MLP(3, (6,), 2, "relu", parametrization="mean_field"),
    "Network": SEQUENCE_NET,
    "FeatureModel": nk.FeatureModel(phi, 1, 3),
    "QuadraticModel": nk.QuadraticModel(phi, psi, 0.1, in_dim=3),
    "CubicModel": nk.models.CubicModel(phi, psi, cubic, 0.1, in_dim=3),
    "Scaled": nk.Scaled(NET, 2.0),
    "MaximalUpdate": nk.MaximalUpdate(NET, 3),
    "Taylor": nk.expand(NET, NET.init(KEY), 2),
    "DiagonalNetwork": nk.theory.DiagonalNetwork(3),
    "from_function": nk.from_function(
        lambda p, x: jnp.tanh(x @ p), lambda key: jax.random.normal(key, (3, 2))
    ),
}


def started(model, seed=1):
    """Parameters that are not at a special place."""
    params = jax.tree.map(np.asarray, model.init(KEY))
    rng = np.random.default_rng(seed)
    moved = lambda tree: jax.tree.map(lambda a: a + 0.3 * rng.normal(size=a.shape), tree)
    return {**params, "params": moved(params["params"])} if isinstance(model, nk.Scaled) else moved(params)


def inputs_of(model):
    return SEQUENCES if isinstance(model, nk.Network) else X


def weighted(outputs):
    """A number that sees every entry with another weight."""
    return (np.cos(np.arange(outputs.size)).reshape(outputs.shape).astype(outputs.dtype) * outputs).sum()


def in_float32(tree):
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), tree)


def stacked(*trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model = MODELS[name]
    x, some, other = inputs_of(model), started(model), started(model, 2)
    expected = np.asarray(model(some, x))
    run = compiled(lambda p, x: (model(p, x), jax.grad(lambda p: weighted(model(p, x)))(p)))
    outputs, gradient = run(some, x)
    assert outputs.dtype == np.float64 and relative_error(outputs, expected) < 1e-12
    step = jax.tree.map(lambda a, b: 1e-5 * (b - a), some, other)
    up, down = (
        weighted(np.asarray(model(jax.tree.map(lambda a, b, s=sign: a + s * b, some, step), x)))
        for sign in (1, -1)
    )
    along = sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(step), strict=True))
    np.testing.assert_allclose(along, (up - down) / 2, rtol=1e-6, atol=1e-12)
    both = compiled(jax.vmap(model, in_axes=(0, None)))(stacked(some, other), x)
    assert relative_error(both, np.stack([expected, np.asarray(model(other, x))])) < 1e-12
    narrow = jax.jit(lambda p, x: model(p, x))(
        in_float32(some), in_float32(x)
    )  # in a program that runs JAX in float32
    assert narrow.dtype == np.float32 or name == "Taylor"  # which brings float64 parameters of its own
    assert relative_error(narrow, expected) < 1e-4


@pytest.mark.parametrize("name", few(MODELS, 3))
def test_initial_parameters_of_traced_keys(name):
    model = MODELS[name]
    if name in ("Taylor", "DiagonalNetwork"):
        pytest.skip("draws nothing")
    narrow = jax.jit(model.init)(KEY)
    assert {leaf.dtype for leaf in jax.tree.leaves(narrow)} == {np.dtype(np.float32)}
    keys = jax.random.split(KEY, 3)
    many = compiled(jax.vmap(model.init))(keys)
    for i in range(3):
        alone = model.init(keys[i])
        for a, b in zip(jax.tree.leaves(many), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-12, atol=1e-15)


KERNELS = {
    "Mahalanobis": K.Mahalanobis(K.RBF(1.1), np.diag([0.5, 1.0, 2.0])),
    "EmpiricalNTK": K.EmpiricalNTK(NET, NET.init(KEY)),
    "RandomFeatures": K.RandomFeatures(3, 12, KEY, "gelu"),
    "FeatureKernel": K.FeatureKernel(phi),
    "Mercer": nk.theory.mercer(K.RBF(1.0), X, rank=4),
    "algebra": 0.5 * K.RBF(1.0) * K.NNGP(NET) + K.Linear(),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_one_program(name):
    kernel = KERNELS[name]
    expected = kernel(X, NEW)
    run = compiled(lambda x: (kernel(x, NEW), jax.grad(lambda x: weighted(kernel(x, NEW)))(x)))
    found, slope = run(X)
    assert relative_error(found, expected) < 1e-10
    step = 1e-5 * np.outer(np.eye(5)[1], np.eye(3)[2])
    difference = weighted(kernel(X + step, NEW)) - weighted(kernel(X - step, NEW))
    np.testing.assert_allclose(slope[1, 2], difference / 2e-5, rtol=1e-5, atol=1e-8)
    many = compiled(jax.vmap(lambda x: kernel(x)))(np.stack([X, 1.5 * X]))
    assert (
        relative_error(many, np.stack([kernel(X), kernel(1.5 * X)])) < 1e-7
    )  # close points are not repaired


def test_the_kernels_of_a_network_together_and_the_empirical_one_by_its_parameters():
    found = compiled(lambda x: K.nngp_and_ntk(NET, x))(X)
    for one, other in zip(found, K.nngp_and_ntk(NET, X), strict=True):
        assert relative_error(one, other) < 1e-12
    params = started(NET)
    slope = compiled(jax.grad(lambda p: weighted(K.EmpiricalNTK(NET, p)(X))))(params)
    step = jax.tree.map(lambda a: 1e-5 * np.ones_like(a), params)
    ends = [jax.tree.map(lambda a, b, s=sign: a + s * b, params, step) for sign in (1, -1)]
    up, down = (weighted(K.EmpiricalNTK(NET, p)(X)) for p in ends)
    along = sum(1e-5 * leaf.sum() for leaf in jax.tree.leaves(slope))
    np.testing.assert_allclose(along, (up - down) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    "algorithm",
    few(
        (
            nk.GradientDescent(0.05, 12),
            nk.GradientDescent(0.02, 12, 0.5),
            pytest.param(nk.GradientFlow(1.5), marks=pytest.mark.slow),
            nk.SGD(0.05, 2, 12),
        ),
        1,
    ),
    ids=("descent", "momentum", "flow", "sgd"),
)
def test_training(algorithm):
    options = {"key": KEY} if isinstance(algorithm, nk.SGD) else {}

    def outputs(params, x, y):
        return NET(nk.simulate(NET, params, x, y, algorithm, **options).params, NEW)

    one, two = started(NET), started(NET, 2)
    expected = [np.asarray(outputs(params, X, Y)) for params in (one, two)]
    found = compiled(jax.vmap(outputs, in_axes=(0, None, None)))(stacked(one, two), X, Y)
    assert relative_error(found, np.stack(expected)) < 1e-7
    narrow = jax.jit(outputs)(in_float32(one), X, Y)  # in a program that runs JAX in float32
    mixed = jax.jit(outputs)(NET.init(KEY), X, Y)
    assert relative_error(narrow, expected[0]) < 1e-3
    assert relative_error(mixed, np.asarray(outputs(NET.init(KEY), X, Y))) < 1e-3
    status = eqx.filter_jit(lambda p: nk.simulate(NET, p, X, Y, algorithm, **options))(one).status
    assert status == nk.StatusKind.unchecked and not status.ok
    if isinstance(algorithm, nk.GradientDescent):
        slope = compiled(jax.grad(lambda y: weighted(outputs(one, X, y))))(Y)
        step = 1e-5 * np.eye(5)[2]
        ends = [weighted(np.asarray(outputs(one, X, Y + sign * step))) for sign in (1, -1)]
        np.testing.assert_allclose(slope[2], (ends[0] - ends[1]) / 2e-5, rtol=1e-5)


def test_a_flow_in_a_program_of_32_bits():
    run = jax.jit(lambda params: nk.simulate(NET, params, X, Y, nk.GradientFlow(1.5)).params)
    found, expected = run(NET.init(KEY)), nk.simulate(NET, NET.init(KEY), X, Y, nk.GradientFlow(1.5)).params
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == np.float32 and relative_error(one, other) < 1e-4


@pytest.mark.parametrize("kind", (G.Hessian, G.GaussNewton, G.EmpiricalFisher))
def test_curvature(kind):
    params = started(NET)
    operator = kind(NET, params, X, Y)
    vector = np.cos(np.arange(operator.size))
    found = compiled(lambda p, v: kind(NET, p, X, Y).product(v))(params, vector)
    assert relative_error(found, operator(vector)) < 1e-12


NEED_VALUES = {
    "solve": lambda x: nk.solve(K.RBF(1.0), x, Y),
    "predict": nk.solve(K.RBF(1.0), X, Y).predict,
    "forecast": lambda x: nk.forecast(NET, x, Y, nk.GradientFlow(), NEW),
    "posterior": lambda x: nk.posterior(K.RBF(1.0), x, Y, NEW, 0.1),
    "propagate": lambda x: nk.propagate(NET, x),
    "diag": lambda x: K.RBF(1.0).diag(x),
    "blocks": lambda x: list(K.RBF(1.0).blocks(x)),
    "layer_kernels": lambda x: K.layer_kernels(NET, x),
    "mercer": lambda x: nk.theory.mercer(K.RBF(1.0), x),
    "positivity": lambda x: nk.theory.positivity(K.RBF(1.0), x),
    "max_margin": lambda x: nk.theory.max_margin(x, np.sign(Y)),
    "one_step_features": lambda x: nk.theory.one_step_features(x, Y, 4, KEY),
    "movement": lambda x: nk.theory.movement(NET, NET.init(KEY), NET.init(KEY), x),
    "learning_rates": lambda x: S.learning_rates(NET, x),
    "feature_classes": lambda x: nk.theory.feature_classes(x, np.array([0, 1, 0, 1, 0])),
}


@pytest.mark.parametrize("name", NEED_VALUES)
def test_what_needs_values_says_so(name):
    message = r"`\w+` is traced by jit, grad or vmap, but its values are needed here: call this outside them"
    with pytest.raises(TypeError, match=message):
        jax.jit(lambda x: (NEED_VALUES[name](x), 0.0)[1])(jnp.asarray(X))


def test_verbs_of_known_values_inside_a_program_that_is_being_traced():
    """Kernels and their solutions do not mind what happens around them."""
    expected = nk.solve(K.NTK(NET), X, Y).predict(NEW).mean

    @jax.jit
    def program(a):
        return a * jnp.asarray(nk.solve(K.NTK(NET), X, Y).predict(NEW).mean) + K.RBF(1.0).diag(NEW)

    np.testing.assert_allclose(program(2.0), 2.0 * expected + 1.0, rtol=1e-6)
