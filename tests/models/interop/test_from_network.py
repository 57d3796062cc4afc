"""Networks of Flax, Equinox and Keras in one line: the same outputs, what trains apart from what does not."""

import os
import subprocess
import sys
import types
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.interop.jax_libraries import _keras
from support import helpers

X, Y, NEW = helpers.points(5, 3), helpers.points(5, 2, 1), helpers.points(4, 3, 2)


def of_equinox():
    net = eqx.nn.MLP(3, 2, 7, 1, activation=jnp.tanh, key=jax.random.key(1))
    return nk.from_network(net), lambda x: jax.vmap(net)(x), 4


def of_flax_linen():
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=True)(linen.Dense(7)(x))
            return linen.Dense(2)(linen.Dropout(0.3, deterministic=True)(jnp.tanh(x)))

    module = Net()
    variables = module.init(jax.random.key(0), jnp.ones((1, 3)))
    variables["batch_stats"]["BatchNorm_0"]["mean"] += 0.3
    return nk.from_network(module, variables), lambda x: module.apply(variables, x), 6


def nnx_net():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(3, 7, rngs=rngs), nnx.Linear(7, 2, rngs=rngs)
            self.norm, self.drop = nnx.BatchNorm(7, rngs=rngs), nnx.Dropout(0.3, rngs=rngs)

        def __call__(self, x):
            return self.last(self.drop(jnp.tanh(self.norm(self.first(x)))))

    net = Net(nnx.Rngs(0))
    net.norm.mean[...] = net.norm.mean[...] + 0.3
    return net


def of_flax_nnx():
    net = nnx_net()
    net.eval()
    return nk.from_network(net), net, 6


def of_keras():
    keras = keras_on_jax()
    keras.utils.set_random_seed(0)
    inner = keras.Sequential([keras.layers.Dense(6, activation="gelu"), keras.layers.BatchNormalization()])
    image = keras.Input((3,))
    hidden = keras.layers.Dropout(0.3)(inner(keras.layers.Dense(7, activation="tanh")(image)))
    net = keras.Model(image, keras.layers.Dense(2)(hidden))
    inner.layers[1].moving_mean.assign(inner.layers[1].moving_mean + 0.3)
    with pytest.warns(UserWarning, match=r"Keras computes in float32 on JAX"):
        found = nk.from_network(net)
    return found, lambda x: net(x, training=False), 8


def keras_on_jax():
    os.environ.setdefault("KERAS_BACKEND", "jax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras = pytest.importorskip("keras", reason="Keras is not installed: pip install keras")
    if keras.backend.backend() != "jax":
        pytest.skip("Keras runs on another backend here")
    return keras


LIBRARIES = {
    "equinox": of_equinox,
    "flax.linen": of_flax_linen,
    "flax.nnx": of_flax_nnx,
    "keras": of_keras,
}
EACH = ["equinox", *(pytest.param(name, marks=pytest.mark.slow) for name in list(LIBRARIES)[1:])]


@pytest.mark.parametrize("library", EACH)
def test_a_network_has_its_own_outputs_in_float64(library):
    (model, params), network, arrays = LIBRARIES[library]()
    leaves = jax.tree.leaves(params)
    assert len(leaves) == arrays and all(leaf.dtype == np.float64 for leaf in leaves)
    found = np.asarray(model(params, NEW))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, network(jnp.asarray(NEW, jnp.float32)), atol=2e-6)
    moved = jax.tree.map(lambda leaf: np.asarray(leaf) * (1 + 1e-9), params)
    if library != "keras":  # a change that float32 does not see
        assert 0 < np.abs(np.asarray(model(moved, NEW)) - found).max() < 1e-7


@pytest.mark.parametrize("library", EACH)
def test_solving_and_simulating_its_linearization_agree(library):
    (model, params), _, _ = LIBRARIES[library]()
    linear = nk.expand(model, params)
    kernel = nk.kernels.EmpiricalNTK(model, params).full(X).reshape(10, 10)
    algorithm = nk.GradientDescent(lr=1.3 / np.linalg.eigvalsh(kernel)[-1], steps=20)
    run = nk.simulate(linear, params, X, Y, algorithm)
    solved = nk.solve(linear, X, Y, algorithm).predict(NEW).mean
    np.testing.assert_allclose(linear(run.params, NEW), solved, atol=1e-5 if library == "keras" else 1e-9)


def test_inputs_and_outputs_of_more_dimensions():
    convolution = eqx.nn.Conv2d(2, 3, 3, key=jax.random.key(0))
    model, params = nk.from_network(convolution)
    x = np.random.default_rng(0).normal(size=(4, 2, 5, 5))
    found = model(params, x)
    assert found.shape == (4, 27)
    np.testing.assert_allclose(
        found, jax.vmap(convolution)(jnp.asarray(x, jnp.float32)).reshape(4, -1), atol=1e-5
    )


def test_integers_stay_integers():
    embedding = eqx.nn.Embedding(5, 2, key=jax.random.key(0))
    model, params = nk.from_network(embedding)
    assert model(params, np.array([1, 4, 1])).shape == (3, 2)


@pytest.mark.slow
def test_training_mode_is_refused():
    net = nnx_net()
    with pytest.raises(
        ValueError, match=r"`network` is in training mode \('(norm|drop)'\): call network\.eval"
    ):
        nk.from_network(net)


@pytest.mark.slow
def test_keras_needs_weights():
    keras = keras_on_jax()
    with pytest.raises(
        ValueError, match=r"`network` has no weights yet: call it on an input, or network\.build"
    ):
        nk.from_network(keras.Sequential([keras.layers.Dense(2)]))


def test_what_is_no_network_costs_one_line():
    with pytest.raises(TypeError, match=r"`network` must be a network of Flax, Equinox or Keras; got MLP\.$"):
        nk.from_network(nk.MLP(3))
    with pytest.raises(
        TypeError, match=r"`network` must be a network of Flax, Equinox or Keras; got function\.$"
    ):
        nk.from_network(lambda x: x)
    with pytest.raises(TypeError, match=r"`variables` are only for networks of flax\.linen"):
        nk.from_network(eqx.nn.Linear(3, 2, key=jax.random.key(0)), {})
    with pytest.raises(ValueError, match=r"`network` has no trainable parameters"):
        nk.from_network(eqx.nn.Lambda(jnp.tanh))
    model, _ = nk.from_network(eqx.nn.Linear(3, 2, key=jax.random.key(0)))
    with pytest.raises(ValueError, match=r"a model of nk\.from_network has no `init`"):
        model.init(jax.random.key(0))


@pytest.mark.slow
def test_linen_needs_its_variables():
    from flax import linen

    with pytest.raises(
        TypeError, match=r"needs its variables: nk\.from_network\(module, module\.init.*got NoneType"
    ):
        nk.from_network(linen.Dense(3))


def test_keras_on_another_backend_is_one_line(monkeypatch):
    backend = types.SimpleNamespace(backend=lambda: "tensorflow")
    monkeypatch.setitem(sys.modules, "keras", types.SimpleNamespace(backend=backend))
    with pytest.raises(
        ValueError, match="Keras must run on JAX; its backend is 'tensorflow': set KERAS_BACKEND=jax"
    ):
        _keras(None, None)


def test_other_libraries_are_imported_only_when_they_are_used():
    code = (
        "import sys, nearkernel as nk; nk.from_torch, nk.from_network, nk.models.torch_operations();"
        "print([name for name in ('torch', 'flax', 'keras') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_missing_pytorch_costs_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r"^nk\.from_torch needs torch: pip install 'nearkernel\[torch\]'\.$"
    ):
        nk.from_torch(None, X)
