"""Gaussian averages of four functions at four inputs, by two ways that share nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.averages.base import ORDERS
from nearkernel.statistics.averages.kinked import Kinked
from nearkernel.statistics.averages.quadrature import Smooth, pivoted_root
from nearkernel.statistics.averages.relu_family import Folded
from support import helpers


def covariance(n: int, rank: int, seed: int = 0, size: float = 1.0) -> np.ndarray:
    factor = helpers.points(n, rank, seed)
    return size * factor @ factor.T / rank


def smooth(name: str, kernel: np.ndarray):
    with jax.enable_x64(True):
        return Smooth(nk.activations.get(name), float(np.diagonal(kernel).max())).averages(kernel)


def tanh_derivatives(z):
    t = np.tanh(z)
    slope = 1 - t * t
    return [t, slope, -2 * t * slope, slope * (6 * t * t - 2)]


def test_fours_equal_a_plain_grid():
    kernel = covariance(4, 6)
    node = 0.35 * np.arange(-18, 19)
    weight = np.exp(-0.5 * node**2) / np.exp(-0.5 * node**2).sum()
    found = smooth("tanh", kernel)
    root = np.linalg.cholesky(kernel)
    e = np.stack(np.meshgrid(*[node] * 4, indexing="ij", copy=False)).reshape(4, -1)
    weights = np.prod(np.meshgrid(*[weight] * 4, indexing="ij"), axis=0).ravel()
    kept = weights > 1e-11
    s = tanh_derivatives(root @ e[:, kept])
    for orders in (*ORDERS, (2, 1, 0, 1), (1, 3, 1, 1)):
        expected = np.sum(weights[kept] * np.prod([s[order][k] for k, order in enumerate(orders)], axis=0))
        np.testing.assert_allclose(found.four(*orders)[0, 1, 2, 3], expected, atol=2e-6)


def test_fours_of_polynomials_are_exact():
    """Wick's theorem: E[z_a z_b z_c z_d] and E[z_a^3 z_b^3 3 z_c^2 3 z_d^2] by sums over pairings."""
    kernel = covariance(3, 2)  # singular, too
    k = kernel
    linear = smooth("linear", kernel)
    wick = k[:, :, None, None] * k + k[:, None, :, None] * k[None, :, None, :]
    wick = wick + k[:, None, None, :] * k[None, :, :, None]
    np.testing.assert_allclose(linear.four(0, 0, 0, 0), wick, rtol=1e-7, atol=1e-8)
    cubic = smooth("monomial(3)", kernel)
    variance = kernel[0, 0]
    np.testing.assert_allclose(cubic.four(0, 0, 1, 1)[0, 0, 0, 0], 9 * 945 * variance**5, rtol=1e-7)
    np.testing.assert_allclose(cubic.pair(1, 2)[0, 1], 0.0, atol=1e-8)
    np.testing.assert_allclose(cubic.pair(2, 2)[0, 1], 36 * k[0, 1], rtol=1e-9)


def test_pairs_are_derivatives_of_one_another():
    """d/dK_ab <f_a g_b> = <f'_a g'_b>, and 2 d/dK_aa takes two derivatives of f."""
    kernel, step = np.array([[1.1, 0.5], [0.5, 0.7]]), 1e-4
    found = smooth("tanh", kernel)
    for (a, b), (i, j), factor in (((0, 1), (1, 1), 1.0), ((0, 0), (2, 0), 2.0)):
        move = np.zeros((2, 2))
        move[a, b] = move[b, a] = step
        up, down = smooth("tanh", kernel + move), smooth("tanh", kernel - move)
        for order in ((0, 0), (1, 1), (2, 2)):
            slope = factor * (up.pair(*order) - down.pair(*order))[0, 1] / (2 * step)
            np.testing.assert_allclose(slope, found.pair(order[0] + i, order[1] + j)[0, 1], rtol=2e-6)


def test_relu_in_closed_form_equals_quadrature():
    kernel = np.array([[1.3, 0.4], [0.4, 0.8]])
    closed = Folded(nk.activations.get("leaky_relu(0.2)")).averages(kernel, True)
    with jax.enable_x64(True):
        function = nk.activations.get(lambda z: jnp.where(z > 0, z, 0.2 * z))
        found = Kinked(function).averages(kernel, True)
    for orders in found.fours:
        np.testing.assert_allclose(closed.fours[orders], found.fours[orders], atol=1e-11)
    np.testing.assert_allclose(closed.pairs, found.pairs, atol=1e-10)


@pytest.mark.parametrize("rank", [6, 2])
def test_relu_at_four_inputs_equals_sampling(rank):
    kernel = covariance(4, rank, seed=3)
    found = Folded(nk.activations.get("relu")).averages(kernel, False)
    factor = helpers.points(4, rank, 3) / rank**0.5
    z = factor @ np.random.default_rng(0).normal(size=(rank, 400_000))
    s = np.maximum(z, 0), (z > 0).astype(float)
    for orders in ((0, 0, 0, 0), (0, 1, 1, 0), (1, 1, 1, 1)):
        for chosen in ((0, 1, 2, 3), (1, 1, 2, 3), (0, 3, 3, 3)):
            values = np.prod([s[order][k] for order, k in zip(orders, chosen, strict=True)], axis=0)
            error = values.std() / len(values) ** 0.5
            assert abs(values.mean() - found.four(*orders)[chosen]) <= 4 * error + 1e-5


def test_root_of_a_singular_matrix():
    kernel = covariance(4, 2)
    order, root = pivoted_root(kernel)
    np.testing.assert_allclose(root @ root.T, kernel[np.ix_(order, order)], atol=1e-14)
    assert np.all(root[:, 2:] == 0)
