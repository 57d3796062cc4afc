"""One answer to where a function has kinks: that of the activation, which all others ask."""

import jax
import jax.numpy as jnp
import pytest

import nearkernel as nk
from nearkernel._commands.completion import ACTIVATIONS, KINKED
from nearkernel.activations import get, names
from nearkernel.theory import has_kinks
from support import helpers
from support.cases import few

CALLABLES = {
    "hard tanh": (jax.nn.hard_tanh, (-1.0, 1.0), (-1.0, 1.0)),
    "relu6": (jax.nn.relu6, (0.0, 6.0), (0.0, 6.0)),
    "elu that bends": (lambda z: jax.nn.elu(z, 0.5), (0.0,), (0.0,)),
    "celu": (jax.nn.celu, (0.0,), ()),
    "soft sign": (jax.nn.soft_sign, (0.0,), ()),
    "square of relu": (lambda z: jax.nn.relu(z) ** 2, (0.0,), ()),
    "third power": (lambda z: jnp.abs(z) ** 3, (0.0,), ()),
    "steep": (lambda z: jnp.tanh(1000.0 * z), (), ()),
    "relu and tanh": (lambda z: jax.nn.relu(z - 0.25) + jnp.tanh(z), (0.25,), (0.25,)),
}


def test_named_activations_know_their_kinks():
    kinked = {name for name in names() if get(name).kinks}
    assert kinked == {"relu", "leaky_relu", "abs", "selu"} == set(KINKED)
    assert {name for name in names() if get(name).breaks} == kinked | {"elu"}
    assert set(KINKED) <= set(ACTIVATIONS)
    assert all(get(name).smooth == (name not in kinked) for name in names())
    assert get("leaky_relu(1)").smooth and get("relu").kinks == (0.0,)


@pytest.mark.parametrize("name", CALLABLES)
def test_callables_are_looked_at(name):
    function, breaks, kinks = CALLABLES[name]
    found = get(function)
    assert found.breaks == pytest.approx(breaks, abs=1e-6) and found.kinks == pytest.approx(kinks, abs=1e-6)
    assert found.smooth == (not kinks)


def test_an_activation_of_ones_own_is_looked_at_too():
    class Own(nk.results.PiecewiseLinear):
        breaks = nk.activations.AbstractActivation.breaks
        kinks = nk.activations.AbstractActivation.kinks

    assert Own(1.0, 0.0).kinks == Own(1.0, 0.0).breaks == (0.0,) and not Own(1.0, 0.0).smooth
    assert Own(2.0, 2.0).kinks == ()


@pytest.mark.parametrize(
    "activation, kinked",
    few(
        [
            (("relu", "tanh"), True),
            (("tanh", "selu"), True),
            (("elu", "tanh"), False),
            ("selu", True),
            (helpers.hard_tanh, True),
            ("gelu", False),
            ("linear", False),
        ],
        3,
    ),
)
def test_networks_have_the_kinks_of_any_of_their_activations(activation, kinked):
    net = nk.MLP(3, (4, 4), activation=activation)
    params, x = net.init(jax.random.key(0)), helpers.points(4, 3)
    assert has_kinks(net) is kinked
    assert nk.inspect(net, params, x, x[:, 0]).kinked is kinked
    assert has_kinks(nk.from_function(lambda p, x: net(p, x)), params, x) is kinked
