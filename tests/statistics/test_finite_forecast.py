"""`forecast(order=1)`: its parts against recursions and exact laws, the whole against networks that were trained."""

import itertools

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics._responses import responses, responses_at_end
from nearkernel.statistics._trained import Start, trained_law

X = np.array([[1.3, 0.8, -0.3], [0.4, 1.2, 0.5]])
NEW = np.array([[1.0, -0.5, 0.9]])
Y = np.array([1.2, 0.3])


def network(activation="tanh", widths=(64,), out=1):
    return nk.MLP(3, widths, out, activation, weight_var=1.5, bias_var=0.15)


def by_loop(lam, lr, steps):
    """The sums in the docstring of `_responses.py`, one step after the other: (n, n, n) over modes x, y, z."""
    x, y, z = np.ix_(lam, lam, lam)
    e = [np.ones_like(v) for v in (x, y, z)]
    a = [0.0 * v for v in (x, y, z)]
    w_xz = w_yz = bend = turn = np.zeros((len(lam),) * 3)
    for _ in range(steps):
        bend, turn = bend + lr * e[0] * a[1] * a[2], turn + lr * e[0] * w_yz
        w_xz, w_yz = w_xz + lr * e[0] * a[2], w_yz + lr * e[1] * a[2]
        a = [sum_ + lr * now for sum_, now in zip(a, e, strict=True)]
        e = [(1 - lr * v) * now for v, now in zip((x, y, z), e, strict=True)]
    return a[0] * a[1] * a[2], bend, a[1] * w_xz, turn


def test_sums_over_time_are_those_of_the_steps():
    lam, lr = np.array([0.3, 0.8, 1.9]), 0.6
    for steps in (0, 1, 7, 400):
        found = responses(lam, lr, steps)
        for mine, theirs in zip(found[4:], by_loop(lam, lr, steps), strict=True):
            np.testing.assert_allclose(mine.new, theirs, atol=1e-13 * (1 + np.abs(theirs).max()))
    for rate in (lr, 0.0):
        late, end = responses(lam, rate, 400), responses_at_end(lam, rate)
        for mine, theirs in zip(late, end, strict=True):
            np.testing.assert_allclose(mine.new, theirs.new, rtol=1e-10)
            np.testing.assert_allclose(mine.old, theirs.old, rtol=1e-10)


def test_small_steps_are_the_flow_and_an_eigenvalue_may_be_zero():
    lam = np.array([0.0, 0.7])
    flow, coarse, fine = (responses(lam, lr, time) for lr, time in ((0.0, 2.0), (0.002, 1000), (0.001, 2000)))
    for exact, one, two in zip(flow, coarse, fine, strict=True):
        np.testing.assert_allclose(2 * two.new - one.new, exact.new, atol=1e-5)
        np.testing.assert_allclose(2 * two.old - one.old, exact.old, atol=1e-5)


def descended(theta, h, mu, nu, kap, z, y, lr, steps):
    """Outputs after steps of the closed recursion for (z, k, mu), in plain NumPy; complex numbers welcome."""
    n, k = len(y), theta + h
    for _ in range(steps):
        e = z[:n] - y
        dz = lr * k[:, :n] @ e - lr**2 / 2 * mu[:, :n, :n] @ e @ e + lr**3 / 6 * nu[:, :n, :n, :n] @ e @ e @ e
        drift, bent = mu[:, :, :n] @ e, nu[:, :, :n, :n] @ e @ e
        dk = lr * (drift + drift.T) - lr**2 * (0.5 * (bent + bent.T) + kap[:, :, :n, :n] @ e @ e)
        turned = kap[:, :, :, :n] @ e
        mu = mu - lr * (nu[:, :, :, :n] @ e + turned + turned.swapaxes(1, 2))
        z, k = z - dz, k - dk
    return z[n:]


@pytest.mark.parametrize("steps", [5, 40])
def test_averages_are_those_of_the_recursion(steps):
    """Moments of random tensors, by Gauss-Hermite nodes: f of the recursion averaged, against the formulas."""
    rng = np.random.default_rng(3)
    n, m, lr = 2, 1, 0.5
    total = n + m
    root = rng.normal(size=(total, total))
    theta = root @ root.T / 3 + 0.5 * np.eye(total)
    theta[:n, :n] = np.diag([0.5, 1.4])
    y = np.array([0.7, -0.4])
    size = 1e-3  # sqrt(1/n)
    h1, g = rng.normal(size=(total, total)), rng.normal(size=(3, total, total))
    h1, g = h1 + h1.T, g + g.swapaxes(1, 2)
    z_by, mu_by = rng.normal(size=(3, total)), rng.normal(size=(3, total, total, total))
    mu_by = mu_by + mu_by.transpose(0, 1, 3, 2)
    nu, kap = rng.normal(size=(2, *(total,) * 4))
    nu = sum(nu.transpose(0, *order) for order in itertools.permutations((1, 2, 3)))
    kap = kap + kap.transpose(1, 0, 3, 2)
    # z = z_by.u, h = size g.v + size^2 h1, mu = size^2 mu_by.u; u, v standard normal and independent
    start = Start(
        z_by.T @ z_by, theta, np.zeros_like(theta), h1, np.einsum("kab,kcd->abcd", g, g),
        np.zeros((total,) * 4), np.einsum("kabc,kd->abcd", mu_by, z_by), nu, kap,
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    outputs, chances = [], []
    for at in itertools.product(range(4), repeat=3):
        u, chance = nodes[list(at)], np.prod(weights[list(at)]) / (2 * np.pi) ** 1.5
        for axis, sign in itertools.product(range(3), (-1.0, 1.0)):  # exact to the second power of v
            v = sign * np.sqrt(3.0) * np.eye(3)[axis]
            tensors = (np.tensordot(v, g, 1) * size + h1 * size**2, np.tensordot(u, mu_by, 1) * size**2)
            f = descended(theta, *tensors, nu * size**2, kap * size**2, u @ z_by, y, lr, steps)
            outputs.append(f[0])
            chances.append(chance / 6)
    mean = np.dot(chances, outputs)
    var = np.dot(chances, np.square(outputs)) - mean**2
    law = trained_law(start, responses(np.diagonal(theta)[:n], lr, steps), y)
    parts = law.corrections.values()
    assert (mean - law.mean[0]) / size**2 == pytest.approx(sum(p[0] for p in parts)[0], rel=2e-3)
    assert (var - law.cov[0, 0]) / size**2 == pytest.approx(sum(p[1] for p in parts)[0, 0], rel=2e-3)
