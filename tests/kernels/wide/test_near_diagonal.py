"""Deep relu kernels of equal and nearly equal inputs, against 60 digits."""

import mpmath as mp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

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


def relu_averages(a, b, k):
    """E[s s] and E[s' s'] of relu, from two variances and a covariance."""
    cosine = k / mp.sqrt(a * b)
    angle = mp.acos(min(max(cosine, -1), 1))
    value = mp.sqrt(a * b) * (mp.sin(angle) + (mp.pi - angle) * cosine) / (2 * mp.pi)
    return value, (mp.pi - angle) / (2 * mp.pi)


def exact_pooled(x, y, hidden):
    """(NNGP, NTK) of a convolution, relu, the mean over positions, and a dense layer; on 60 digits.

    With `hidden`, a dense layer and relu between the mean and the last layer.
    """
    size, cw, cb = len(x), mp.mpf(1.8), mp.mpf(0.1)

    def after_conv(one, two):
        dot = [[mp.fdot(p, q) / len(p) for q in two] for p in one]
        at = lambda p, q: sum(dot[(p + d) % size][(q + d) % size] for d in (-1, 0, 1)) / 3
        return [[cb + cw * at(p, q) for q in range(size)] for p in range(size)]

    with mp.workdps(60):
        x, y = ([[mp.mpf(float(v)) for v in p] for p in points] for points in (x, y))
        own = {key: after_conv(each, each) for key, each in (("x", x), ("y", y))}
        sides = {"x": (own["x"],) * 3, "y": (own["y"],) * 3, "xy": (own["x"], own["y"], after_conv(x, y))}
        found = {}
        for key, (left, right, k) in sides.items():
            each = [
                [relu_averages(left[p][p], right[q][q], k[p][q]) for q in range(size)] for p in range(size)
            ]
            value = sum(v for row in each for v, _ in row) / size**2
            slope = sum(each[p][q][1] * k[p][q] for p in range(size) for q in range(size)) / size**2
            found[key] = (cb + cw * value, cb + cw * value + cw * slope)
        if not hidden:
            return tuple(map(float, found["xy"]))
        k, theta = found["xy"]
        value, slope = relu_averages(found["x"][0], found["y"][0], k)
        return float(cb + cw * value), float(cb + cw * value + cw * slope * theta)


@pytest.mark.parametrize("distance", [1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0])
def test_digits_that_pooling_keeps(distance):
    """All of them, unless an activation follows: the gap behind a pool has an absolute error of a few 1e-16.

    Behind relu, the NTK is then right to 1e-15 / distance, and never worse than 1e-7; the NNGP keeps its digits.
    """
    L, rng = nk.layers, np.random.default_rng(3)
    x, step = rng.normal(size=(2, 4, 2))
    y = x + distance * step
    conv = [L.Conv(1, (3,), padding="CIRCULAR", weight_var=1.8, bias_var=0.1), L.Activation("relu")]
    end = L.Dense(1, 1.8, 0.1)
    for hidden in (False, True):
        more = [end, L.Activation("relu")] if hidden else []
        net = nk.Network((4, 2), [*conv, L.GlobalAvgPool(), *more, end])
        nngp, ntk = (each.item() for each in nk.kernels.nngp_and_ntk(net, x[None], y[None]))
        exact_nngp, exact_ntk = exact_pooled(x, y, hidden)
        assert abs(nngp / exact_nngp - 1) < 5e-15
        assert abs(ntk / exact_ntk - 1) < (max(5e-15, min(1e-7, 1e-15 / distance)) if hidden else 5e-15)
    nngp, ntk = nk.kernels.nngp_and_ntk(net, x[None])
    np.testing.assert_allclose((nngp.item(), ntk.item()), exact_pooled(x, x, True), rtol=5e-15)
