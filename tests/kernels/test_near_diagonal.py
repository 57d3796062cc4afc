"""Deep relu kernels of equal and nearly equal inputs, against 60 digits."""

import mpmath as mp
import numpy as np
import pytest

import helpers
import nearkernel as nk

D = 6


def exact_kernels(x, y, depth, weight_var, bias_var):
    """(NNGP, NTK) of a relu network: the textbook recursion on 60 digits."""
    with mp.workdps(60):
        x, y = ([mp.mpf(float(value)) for value in row] for row in (x, y))
        cw, cb = mp.mpf(weight_var), mp.mpf(bias_var)
        a, b, k = (cb + cw * mp.fdot(p, q) / len(x) for p, q in ((x, x), (y, y), (x, y)))
        theta = k
        for _ in range(depth):
            cosine = k / mp.sqrt(a * b)
            angle = mp.acos(min(max(cosine, -1), 1))
            value = mp.sqrt(a * b) * (mp.sin(angle) + (mp.pi - angle) * cosine) / (2 * mp.pi)
            k = cb + cw * value
            theta = k + cw * (mp.pi - angle) / (2 * mp.pi) * theta
            a, b = cb + cw * a / 2, cb + cw * b / 2
        return float(k), float(theta)


def neighbours(distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows at this relative distance."""
    x, step = helpers.points(3, D), helpers.points(3, D, 1)
    size = np.linalg.norm(x, axis=1, keepdims=True) / np.linalg.norm(step, axis=1, keepdims=True)
    return x, x + distance * size * step


@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("weight_var, bias_var", [(2.0, 0.0), (1.5, 0.25)])
def test_fifty_relu_layers_keep_thirteen_digits(distance, weight_var, bias_var):
    net = nk.MLP(D, (1,) * 50, 1, "relu", weight_var, bias_var)
    x, y = neighbours(distance)
    nngp, ntk = nk.kernels.nngp_and_ntk(net, x, y)
    for i, pair in enumerate(zip(x, y, strict=True)):
        expected = exact_kernels(*pair, 50, weight_var, bias_var)
        assert abs(nngp[i, i] / expected[0] - 1) < 1e-13
        assert abs(ntk[i, i] / expected[1] - 1) < 1e-13


@pytest.mark.parametrize("depth", [1, 5, 6, 7, 12])
def test_looped_and_unrolled_depths_agree_with_sixty_digits(depth):
    """Deep networks compile as a loop, shallow ones do not: the same recursion."""
    net = nk.MLP(D, (1,) * depth, 1, "relu", 1.8, 0.1)
    x = helpers.points(4, D, 4)
    nngp, ntk = nk.kernels.nngp_and_ntk(net, x)
    for i, j in [(0, 0), (0, 1), (2, 3)]:
        expected = exact_kernels(x[i], x[j], depth, 1.8, 0.1)
        np.testing.assert_allclose((nngp[i, j], ntk[i, j]), expected, rtol=2e-14)


def test_antipodal_and_scaled_inputs_keep_their_digits():
    """Among 300 rows, some of whose unit vectors round badly."""
    net = nk.MLP(D, (1, 1), 1, "abs")
    x = helpers.points(300, D, 8)
    same, mirrored = (np.diagonal(nk.kernels.NTK(net)(x, sign * x)) for sign in (1, -1))
    np.testing.assert_allclose(mirrored, same, rtol=1e-13)
    scaled = np.diagonal(nk.kernels.NTK(nk.MLP(D, (1, 1), 1, "relu"))(x, 7 * x))
    np.testing.assert_allclose(scaled, 7 * nk.kernels.NTK(nk.MLP(D, (1, 1), 1, "relu")).diag(x), rtol=1e-13)


def test_big_and_small_norms_are_only_scales():
    """Without biases a relu kernel is homogeneous."""
    kernel = nk.kernels.NTK(nk.MLP(D, (1, 1, 1), 1, "relu", 2.0))
    x = helpers.points(5, D)
    for scale in (1e-100, 1e-6, 1e6, 1e100):
        np.testing.assert_allclose(kernel(scale * x) / scale**2, kernel(x), rtol=1e-13)
