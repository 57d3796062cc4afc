"""Panels: polynomials of degree 15 between edges, edges at every kink."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nearkernel.activations.averages.breaks import on_numpy
from nearkernel.activations.averages.panels import find_panels
from support import helpers

KINKED = {
    "relu": (jax.nn.relu, [0.0]),
    "hard_tanh": (helpers.hard_tanh, [-1.0, 1.0]),
    "away from round numbers": (lambda z: jnp.abs(z - 0.7310585), [0.7310585]),
    "two close ones": (lambda z: jnp.abs(z) + jnp.abs(z - 0.01), [0.0, 0.01]),
    "a step": (lambda z: jnp.where(z > 0.3, 1.0, -1.0) * (1 + z), [0.3]),
}
FAINT = {  # no sharper than the tolerance on a panel that is not yet narrow enough to be called a kink
    "far out": (lambda z: jnp.maximum(z, 5.5), [5.5]),
    "small on a smooth hill": (lambda z: jnp.exp(-z * z) + 1e-3 * jnp.abs(z + 0.4), [-0.4]),
}


def panels(function, reach=16.0):
    return find_panels(on_numpy(function), reach, "activation")


@pytest.mark.parametrize("name", KINKED)
def test_every_kink_is_found(name):
    function, places = KINKED[name]
    found = panels(function)
    assert len(found.kinks) == len(places)
    np.testing.assert_allclose(found.kinks, places, atol=1e-9)
    assert found.narrowest == 0.0


@pytest.mark.parametrize("name", KINKED | FAINT)
def test_a_panel_ends_at_every_kink(name):
    function, places = (KINKED | FAINT)[name]
    edges = panels(function).edges
    assert all(np.abs(edges - place).min() < 1e-8 for place in places)


def test_a_jump_of_the_second_derivative_is_enclosed():
    """elu has a continuous slope: panels narrow towards 0 until a polynomial passes through."""
    edges = panels(jax.nn.elu).edges
    around = np.searchsorted(edges, 0.0)
    assert edges[around] - edges[around - 1] < 1e-5


@pytest.mark.parametrize(
    "function", [jnp.tanh, jax.nn.gelu, jax.nn.silu, helpers.wavy, lambda z: z**5, jnp.exp]
)
def test_smooth_functions_have_no_kink(function):
    found = panels(function)
    assert len(found.kinks) == 0
    assert found.narrowest > 0.0


@pytest.mark.parametrize("function", [jnp.tanh, jax.nn.elu, helpers.hard_tanh, helpers.wavy])
def test_panels_cover_the_reach_in_order(function):
    edges = panels(function, 64.0).edges
    assert (edges[0], edges[-1]) == (-64.0, 64.0)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("function", [jnp.tanh, jax.nn.elu, helpers.hard_tanh, helpers.wavy])
def test_a_polynomial_of_degree_15_reproduces_each_panel(function):
    edges = panels(function).edges
    run = on_numpy(function)
    for a, b in itertools.pairwise(edges):
        inside = np.linspace(a, b, 102)[1:-1]
        fit = np.polynomial.Chebyshev.interpolate(run, 15, domain=[a, b])
        scale = max(np.abs(run(inside)).max(), 1e-2)
        assert np.abs(fit(inside) - run(inside)).max() < 1e-10 * scale


def test_a_narrow_bump_is_seen():
    """A feature a thousand times narrower than the Gaussian gets panels of its own."""
    found = panels(lambda z: jnp.exp(-((z / 1e-3) ** 2)))
    assert 0 < found.narrowest < 1e-2


def test_what_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="`activation` must be finite between -1 and 1; it is not"):
        panels(jnp.log)


def test_what_changes_too_fast_is_refused():
    with pytest.raises(ValueError, match=r"more than 3000 pieces between -16 and 16\. Rescale it"):
        panels(lambda z: jnp.sin(1e5 * z))
