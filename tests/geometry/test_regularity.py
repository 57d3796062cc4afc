"""Lipschitz constants, widths of schemes that see points, packings, functions of several variables."""

import itertools

import jax
import numpy as np
import pytest

import nearkernel as nk

G = nk.geometry


def test_a_linear_network_reaches_its_upper_bound():
    net = nk.MLP(3, (), 2)
    params = net.init(jax.random.key(0))
    found = nk.theory.lipschitz_bounds(net, params, np.zeros((1, 3)))
    assert found.lower == pytest.approx(found.upper, rel=1e-6)
    assert found.upper == pytest.approx(np.linalg.norm(np.asarray(params[0]["weight"]), 2) / 3**0.5, rel=1e-6)


def test_no_pair_of_points_exceeds_the_upper_bound():
    net = nk.MLP(2, (16, 16), 1, "gelu")
    params = net.init(jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(200, 2))
    found = nk.theory.lipschitz_bounds(net, params, x)
    z = np.asarray(net(params, x))
    steep = np.linalg.norm(z[:100] - z[100:], axis=1) / np.linalg.norm(x[:100] - x[100:], axis=1)
    assert steep.max() <= found.upper and found.lower <= found.upper


def test_seeing_points_is_no_better_than_any_numbers_and_right_for_a_finite_space():
    x = np.linspace(0, 1, 80)[:, None]
    kernel = nk.kernels.Laplace(0.5)
    axes = nk.theory.kernel_axes(kernel, x)
    widths = [nk.theory.sampling_width(kernel, x[:: 80 // m], x) for m in (4, 8, 16)]
    assert all(w >= nk.theory.ellipsoid_width(axes, m) for w, m in zip(widths, (20, 10, 20), strict=True))
    assert widths[0] > widths[1] > widths[2]
    line = nk.kernels.Polynomial(degree=1)
    assert nk.theory.sampling_width(line, [[0.0], [1.0]], x) < 1e-7  # two values determine a straight line


def test_a_packing_is_apart_and_covers():
    points = np.random.default_rng(2).normal(size=(60, 2))
    for radius in (0.1, 0.4, 1.0):
        count = nk.theory.set_packing(points, radius)
        assert 1 <= count <= 60
        bits = int(np.ceil(np.log2(count)))
        assert nk.theory.set_entropy(points, [bits]).upper[0] <= 2 * radius
    assert nk.theory.set_packing(points, 100.0) == 1


def test_lipschitz_functions_of_two_variables_obey_their_bounds():
    one = nk.theory.lipschitz_entropy([3, 8])
    np.testing.assert_allclose(one.upper, [1 / 4, 1 / 9])
    two = nk.theory.lipschitz_entropy([0, 3, 8, 63], dim=2)
    np.testing.assert_allclose(two.upper, [1.0, 0.75, 0.5, 1.5 / 8])
    np.testing.assert_allclose(two.lower, [0.5, 1 / 4, 1 / 6, 1 / 16])
    # The tents of the lower bound, on 2 x 2 cells: Lipschitz, and pairwise one side apart.
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), axis=-1).reshape(-1, 2)
    centers = np.array(list(itertools.product((0.25, 0.75), repeat=2)))
    away = np.abs(grid[:, None] - centers).max(axis=2)
    tents = np.maximum(0.25 - away, 0.0)
    signs = np.array(list(itertools.product((-1, 1), repeat=4)))
    functions = signs @ tents.T
    apart = np.abs(functions[:, None] - functions).max(axis=2)
    assert apart[~np.eye(16, dtype=bool)].min() == pytest.approx(0.5)
    slope = np.abs(functions[:, :, None] - functions[:, None]) / np.maximum(
        np.abs(grid[:, None] - grid).max(axis=2), 1e-9
    )
    assert slope.max() <= 1 + 1e-9


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match=r"`net` must be an nk\.MLP or nk\.Network; got int"):
        nk.theory.lipschitz_bounds(3, None, np.ones((1, 2)))
