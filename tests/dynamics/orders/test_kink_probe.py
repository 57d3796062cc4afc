"""Kinks of networks whose code is not ours: the derivative jumps along a path of parameters, or it does not."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.theory import has_kinks
from support import helpers

X = helpers.points(9, 4)
RNG = np.random.default_rng(5)
W = {"u": RNG.normal(size=(4, 12)), "v": RNG.normal(size=(12, 2)), "b": np.zeros(12)}

SMOOTH = {
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "erf": jax.scipy.special.erf,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "logsumexp": lambda h: h * jax.nn.logsumexp(h, axis=-1, keepdims=True),
    "a variance above zero": lambda h: h / jnp.sqrt(jnp.maximum(0.0, h.var(-1, keepdims=True)) + 1e-6),
    "a stopped gradient": lambda h: jnp.tanh(h) * jax.lax.stop_gradient(jnp.cos(h)),
    "steep": lambda h: jnp.tanh(50.0 * h),
}
KINKED = {
    "relu": jax.nn.relu,
    "maximum": lambda h: jnp.maximum(h, 0.1),
    "leaky_relu": jax.nn.leaky_relu,
    "relu6": jax.nn.relu6,
    "abs": jnp.abs,
    "clip": lambda h: jnp.clip(h, -1.0, 1.0),
    "where": lambda h: jnp.where(h > 0.0, jnp.sin(h), 2.0 * h),
    "elu that bends": lambda h: jax.nn.elu(h, 0.5),
    "max over pairs": lambda h: jnp.repeat(h.reshape(len(h), 6, 2).max(-1), 2, axis=1),
    "sort": lambda h: jnp.sort(h, axis=-1),
    "hard tanh": jax.nn.hard_tanh,
    "round, which jumps itself": lambda h: h + jnp.round(h),
}


def plain(activation):
    return nk.from_function(lambda p, x: activation(x @ p["u"] + p["b"]) @ p["v"])


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_have_none(name):
    assert has_kinks(plain(SMOOTH[name]), W, X) is False


@pytest.mark.parametrize("name", KINKED)
def test_functions_with_jumps_in_their_derivative_have_some(name):
    assert has_kinks(plain(KINKED[name]), W, X) is True


def test_only_what_trains_counts():
    frozen = jnp.asarray(W["u"])
    model = nk.from_function(lambda p, x: jax.nn.relu(x @ frozen) @ p["v"])
    assert has_kinks(model, {"v": W["v"]}, X) is False


def test_a_fresh_head_of_zeros_hides_nothing():
    assert has_kinks(plain(jax.nn.relu), W | {"v": np.zeros((12, 2))}, X) is True


def test_without_parameters_or_inputs_nothing_is_known():
    assert has_kinks(plain(jax.nn.relu)) is None and has_kinks(plain(jnp.tanh), W) is None
    assert has_kinks(plain(lambda h: jnp.log(h)), W, X) is None  # of negative numbers


def test_a_scaled_model_has_the_kinks_of_its_model():
    for activation, expected in ((jax.nn.relu, True), (jnp.tanh, False)):
        scaled = nk.Scaled(plain(activation), 3.0)
        assert has_kinks(scaled, scaled.at(W), X) is expected


def of_equinox(activation):
    return nk.from_network(eqx.nn.MLP(4, 2, 8, 2, activation=activation, key=jax.random.key(1)))


def of_linen(activation):
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(2)(activation(linen.LayerNorm()(linen.Dense(8)(x))))

    module = Net()
    return nk.from_network(module, module.init(jax.random.key(0), jnp.ones((1, 4))))


def of_nnx(activation):
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)

        def __call__(self, x):
            return self.last(activation(self.norm(self.first(x))))

    net = Net(nnx.Rngs(0))
    net.eval()
    return nk.from_network(net)


def of_keras(activation):
    import os

    os.environ.setdefault("KERAS_BACKEND", "jax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras = pytest.importorskip("keras", reason="Keras is not installed: pip install keras")
        if keras.backend.backend() != "jax":
            pytest.skip("Keras runs on another backend here")
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(16, activation=activation), keras.layers.LayerNormalization()]
        return nk.from_network(keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(2)]))


LIBRARIES = [
    of_equinox,
    *(pytest.param(each, marks=pytest.mark.slow) for each in (of_linen, of_nnx, of_keras)),
]


@pytest.mark.parametrize("library", LIBRARIES)
def test_networks_of_other_libraries_are_inspected_with_their_kinks(library):
    y = np.sin(X[:, :2])
    for activation, expected in ((jax.nn.relu, True), (jnp.tanh, False), (jax.nn.gelu, False)):
        model, params = library(activation)
        assert nk.inspect(model, params, X, y, steps=3).kinked is expected


@pytest.mark.parametrize("library", LIBRARIES[:3])
def test_solving_beyond_order_zero_warns_of_kinks(library):
    y, flow = np.sin(X[:, :2]), nk.GradientFlow(time=0.01)
    model, params = library(jax.nn.relu)
    with pytest.warns(UserWarning, match="^the model has kinks, where its slope jumps"):
        nk.solve(nk.expand(model, params, degree=2), X, y, flow, order=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nk.solve(nk.expand(model, params), X, y, flow)
        model, params = library(jnp.tanh)
        nk.solve(nk.expand(model, params, degree=2), X, y, flow, order=1)
