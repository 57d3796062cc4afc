"""Closed forms against dense quadrature that knows nothing of the library."""

import numpy as np
import pytest

from nearkernel.activations import get
from nearkernel.theory import dual, moments
from support.references import gaussian_averages as reference

PAIRS = [(0.04, 6.0), (1.9, 1.9)]
GAPS = [0.0, 1e-12, 0.4, 1.0, 1.6, 2.0]


@pytest.mark.parametrize("name", reference.CLOSED)
def test_pair_averages_equal_dense_quadrature(name):
    known = reference.CLOSED[name]
    q1, q2, gap = (
        np.array(column) for column in zip(*((*pair, gap) for pair in PAIRS for gap in GAPS), strict=True)
    )
    value, slope = dual(get(name), q1, q2, gap=gap)
    expected = np.array([known.pair(*row) for row in zip(q1, q2, gap, strict=True)])
    size1, size2 = (np.array([known.moments(q) for q in side]) for side in (q1, q2))
    for column, found in enumerate((value, slope)):
        scale = np.sqrt(size1[:, column] * size2[:, column])
        assert np.abs((found - expected[:, column]) / scale).max() < 1e-12


@pytest.mark.parametrize("name", reference.CLOSED)
def test_moments_equal_dense_quadrature(name):
    q = np.array([1e-6, 1e-3, 0.37, 1.0, 23.0, 1e3] + ([1e6] if name not in ("sin", "cos") else []))
    found = moments(get(name), q)
    value, slope, curvature = np.array([reference.CLOSED[name].moments(each) for each in q]).T
    assert np.abs(found.value / value - 1).max() < 1e-12
    assert np.abs(found.slope / slope - 1).max() < 1e-12
    assert np.abs((found.curvature - curvature) / np.maximum(np.abs(curvature), 1e-300)).max() < 1e-11


@pytest.mark.parametrize("name", reference.CLOSED)
def test_equal_inputs_give_the_moments(name):
    q = np.geomspace(1e-6, 1e6, 13)
    value, slope = dual(get(name), q, q, gap=0.0)
    single = moments(get(name), q)
    np.testing.assert_allclose(value, single.value, rtol=1e-13)
    np.testing.assert_allclose(slope, single.slope, rtol=1e-13)


@pytest.mark.parametrize("name", [*reference.CLOSED, *reference.SMOOTH])
def test_slope_average_is_the_derivative_by_the_covariance(name):
    """Price: d E[s(u) s(v)] / d k = E[s'(u) s'(v)]."""
    q1, q2, c, step = 0.8, 1.9, np.array([-0.6, 0.05, 0.7]), 1e-4
    (up, down, _), (_, _, slope) = dual(get(name), q1, q2, np.array([c + step, c - step, c]))
    np.testing.assert_allclose((up - down) / (2 * step * np.sqrt(q1 * q2)), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*reference.CLOSED, *reference.SMOOTH])
def test_curvature_is_the_derivative_of_the_variance(name):
    """d E[s^2] / d q = E[s'^2] + E[s s'']."""
    q, step = np.array([0.2, 1.4, 9.0]), 1e-4
    found = moments(get(name), q * np.array([[1 + step], [1 - step], [1.0]]))
    change = (found.value[0] - found.value[1]) / (2 * step * q)
    np.testing.assert_allclose(change, found.slope[2] + found.curvature[2], rtol=1e-6, atol=1e-10)


def test_gelu_is_critical_where_the_quadratic_says():
    """E[s s''] = 0 at q = (3 + sqrt 17)/2; C_W = 1/E[s'^2], C_b = q - C_W E[s^2]."""
    q = (3 + np.sqrt(17)) / 2
    single = moments(get("gelu"), q)
    assert abs(single.curvature) < 1e-15
    assert abs(1 / single.slope - 1.98305825744) < 1e-10
    assert abs(q - single.value / single.slope - 0.17292239076) < 1e-10


def test_silu_is_critical_at_the_known_variance():
    single = moments(get("silu"), 14.3201736180)
    assert abs(single.curvature) < 1e-11
    assert abs(1 / single.slope - 1.98800467827) < 1e-10
    assert abs(14.3201736180 - single.value / single.slope - 0.55514317072) < 1e-9


@pytest.mark.parametrize("name, weight_var", [("tanh", 1.0), ("sin", 1.0), ("erf", np.pi / 4), ("relu", 2.0)])
def test_small_signals_keep_their_size_at_criticality(name, weight_var):
    q = 1e-9
    assert abs(weight_var * moments(get(name), q).value / q - 1) < 1e-8


@pytest.mark.parametrize("slopes", [(1.0, 0.0), (1.0, 0.3), (1.0, -1.0), (0.7, 0.2)])
def test_piecewise_linear_kernels_follow_the_angle(slopes):
    """c' = [sin t + (pi - t) cos t]/pi for relu, and its mixtures with the identity."""
    from nearkernel.results import PiecewiseLinear

    t = np.linspace(0.0, np.pi, 17)
    right, left = slopes
    relu, mirrored = ((np.sin(a) + (np.pi - a) * np.cos(a)) / (2 * np.pi) for a in (t, np.pi - t))
    expected = (right**2 + left**2) * relu - 2 * right * left * mirrored
    value, _ = dual(PiecewiseLinear(*slopes), 4.0, 9.0, gap=2 * np.sin(t / 2) ** 2)
    np.testing.assert_allclose(value, 6.0 * expected, atol=1e-14)
