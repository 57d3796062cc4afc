"""Activations without a closed form: accurate at every variance and correlation, never NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nearkernel.activations import get
from nearkernel.theory import dual, moments
from support import helpers
from support.references import gaussian_averages as reference

FUNCTIONS = {"hard_tanh": helpers.hard_tanh, "elu": jax.nn.elu, "wavy": helpers.wavy}
KNOWN = reference.SMOOTH | reference.CALLABLES
GAPS = [0.0, 1e-12, 1.0, 2.0]


def activation(name: str):
    return get(FUNCTIONS.get(name, name))


def tolerance(name: str) -> float:
    return 1e-6 if name in ("hard_tanh", "elu") else 1e-10


def largest_errors(name: str, pairs, gaps) -> tuple[float, float]:
    """Of values and of slopes, relative to sqrt(E11 E22)."""
    known = KNOWN[name]
    rows = [(*pair, gap) for pair in pairs for gap in gaps]
    q1, q2, gap = map(np.array, zip(*rows, strict=True))
    found = np.stack(dual(activation(name), q1, q2, gap=gap), axis=1)
    expected = np.array([known.pair(*row) for row in rows])
    single = {q: np.array(known.moments(q))[:2] for pair in pairs for q in pair}
    size = np.array([np.sqrt(single[a] * single[b]) for a, b, _ in rows])
    assert np.isfinite(found).all()
    return tuple(np.abs((found - expected) / size).max(axis=0))


@pytest.mark.parametrize("name", KNOWN)
def test_equal_to_dense_quadrature_at_moderate_variances(name):
    errors = largest_errors(name, [(0.25, 1.3), (4.0, 4.0)], [*GAPS, 1e-3, 0.4, 1.7])
    assert max(errors) < tolerance(name)


@pytest.mark.parametrize("name", ["tanh", "softplus", "hard_tanh", "elu"])
def test_equal_to_dense_quadrature_at_extreme_variances(name):
    errors = largest_errors(name, [(1e-6, 1e-6), (1e-6, 1e6), (1e6, 1e6)], GAPS)
    assert max(errors) < tolerance(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_equal_to_dense_quadrature_everywhere(name):
    qs = [1e-6, 1e-3, 1.0, 25.0, 1e3, 1e6] if name != "wavy" else [1e-6, 1e-3, 1.0, 25.0]
    pairs = [(a, b) for a in qs for b in qs if a <= b]
    assert max(largest_errors(name, pairs, [*GAPS, 1e-6, 0.3, 1.7])) < tolerance(name)


@pytest.mark.parametrize("name", KNOWN)
def test_moments_equal_dense_quadrature(name):
    q = np.array([1e-6, 0.2, 1.0, 25.0] + ([1e3, 1e6] if name != "wavy" else []))
    found = moments(activation(name), q)
    value, slope, curvature = np.array([KNOWN[name].moments(each) for each in q]).T
    assert np.abs(found.value / value - 1).max() < tolerance(name)
    assert np.abs(found.slope / slope - 1).max() < tolerance(name)
    # s'' is a sum of pieces of either sign: its error is measured against their size
    size = np.maximum(np.abs(curvature), 1e-3 * np.minimum(slope, value / q))
    assert np.abs((found.curvature - curvature) / size).max() < max(tolerance(name), 1e-8)


def test_tanh_becomes_a_step_at_large_variance():
    """E[s s] -> (2/pi) arcsin c, with an error of 1/sqrt(q)."""
    c = np.array([-0.9, -0.2, 0.0, 0.5, 0.99])
    value, _ = dual(get("tanh"), 1e8, 1e8, c)
    np.testing.assert_allclose(value, 2 / np.pi * np.arcsin(c), atol=2e-4)


def test_tanh_is_the_identity_at_small_variance():
    value, slope = dual(get("tanh"), 1e-8, 4e-8, np.array([-1.0, 0.3, 1.0]))
    np.testing.assert_allclose(value, 2e-8 * np.array([-1.0, 0.3, 1.0]), rtol=2e-7)
    np.testing.assert_allclose(slope, 1.0, rtol=1e-7)


@pytest.mark.parametrize("name", KNOWN)
def test_at_correlation_one_the_average_is_the_moment(name):
    q = np.array([0.01, 0.7, 3.0])
    value, slope = dual(activation(name), q, q, 1.0)
    single = moments(activation(name), q)
    np.testing.assert_allclose(value, single.value, rtol=1e-10)
    np.testing.assert_allclose(slope, single.slope, rtol=tolerance(name))


@pytest.mark.parametrize(
    "function, parity",
    [
        (jnp.tanh, "odd"),
        (lambda z: jnp.tanh(z) + 2.5, "odd"),  # a constant is one coefficient more
        (lambda z: jnp.cos(z) + 0.3 * z, "even"),  # and so is a linear part
        (lambda z: jnp.exp(-jnp.abs(z)), "even"),
        (jax.nn.softplus, "even"),  # softplus - z/2 is even
        (jax.nn.silu, "even"),
        (jax.nn.sigmoid, "odd"),
        (jax.nn.elu, "all"),
        (helpers.hard_tanh, "odd"),
        (helpers.wavy, "all"),
    ],
)
def test_parity_is_found(function, parity):
    assert get(function).parity == parity


def test_a_wave_too_fast_for_the_gaussian_is_refused():
    with pytest.raises(ValueError, match="changes too fast to be averaged over Gaussians"):
        dual(get(helpers.wavy), 1e6, 1e6, 0.5)
