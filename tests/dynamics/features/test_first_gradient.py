"""The first gradient of a relu neuron: the series in the target's average derivatives, against integrals and draws."""

import numpy as np
import pytest
from scipy.integrate import quad

import nearkernel as nk

D = nk.dynamics
U2 = np.eye(2)
COEFFICIENTS = {(0, 0): 0.4, (1, 0): 0.3, (2, 0): 0.5, (0, 2): -0.3, (1, 2): 0.2, (2, 2): 0.4, (4, 1): 0.07}


def integral(target, w, b):
    """E[f(x) x 1(w.x + b > 0)] in the plane: Gauss-Hermite across w, adaptive quadrature along it."""
    unit, shift = w / np.linalg.norm(w), b / np.linalg.norm(w)
    across = np.array([-unit[1], unit[0]])
    t, weight = np.polynomial.hermite_e.hermegauss(12)

    def along(s, i):
        x = s * unit + t[:, None] * across
        return weight @ (target(x) * x[:, i]) / (2 * np.pi) * np.exp(-(s**2) / 2)

    return np.array([quad(along, -shift, 12, args=(i,), epsabs=1e-12, epsrel=1e-12)[0] for i in range(2)])


@pytest.mark.parametrize("bias", [0.0, 0.6])
def test_the_whole_series_is_the_integral(bias):
    target = nk.theory.MultiIndexPolynomial(U2, COEFFICIENTS)
    weights = np.array([[0.8, -1.7], [0.3, 0.1]])
    found = nk.theory.first_gradient(target, weights, head=[2.0, -1.0], bias=bias)
    for row, w, a in zip(found, weights, (2.0, -1.0), strict=True):
        np.testing.assert_allclose(row, -2 * a * integral(target, w, bias), atol=1e-9)


def test_the_first_terms_are_those_of_the_average_hessian():
    """-2 a H w/(|w| sqrt(2 pi)) and + a w (w.H w)/sqrt(2 pi) for unit w; a third derivative adds nothing at b = 0."""
    u = np.linalg.qr(np.random.default_rng(3).normal(size=(9, 2)))[0].T
    target = nk.theory.MultiIndexPolynomial(u, {(2, 0): 0.5, (1, 1): 0.3, (2, 1): 0.8, (2, 2): 0.5})
    w = np.random.default_rng(4).normal(size=(6, 9))
    unit, H = w / np.linalg.norm(w, axis=1, keepdims=True), target.hessian
    root = np.sqrt(2 * np.pi)
    first = -2 * 1.5 * unit @ H / root
    np.testing.assert_allclose(nk.theory.first_gradient(target, w, 1.5, order=1), first, atol=1e-14)
    second = 1.5 * unit * np.einsum("ij,jk,ik->i", unit, H, unit)[:, None] / root
    np.testing.assert_allclose(nk.theory.first_gradient(target, w, 1.5, order=2), first + second, atol=1e-14)


def test_drawn_inputs_have_this_gradient():
    """The gradient of the one-step algorithm, averaged over neurons of one direction, in d = 7."""
    rng = np.random.default_rng(5)
    u = np.linalg.qr(rng.normal(size=(7, 2)))[0].T
    target = nk.theory.MultiIndexPolynomial(u, {(2, 0): 0.5, (0, 2): -0.4, (3, 0): 0.2, (2, 2): 0.2})
    w, x = rng.normal(size=(3, 7)), rng.normal(size=(400_000, 7))
    y = target(x)
    expected = nk.theory.first_gradient(target, w)
    for row, neuron in zip(expected, w, strict=True):
        terms = -2 * (y * (x @ neuron > 0))[:, None] * x
        assert (np.abs(terms.mean(axis=0) - row) < 4 * terms.std(axis=0) / np.sqrt(len(x))).all()


def test_orders_fall_by_the_root_of_the_dimension():
    sizes = []
    for d in (32, 128, 512):
        target = nk.theory.MultiIndexPolynomial(np.eye(2, d), {(2, 0): 0.5, (0, 2): -0.3, (2, 2): 0.5})
        w = np.random.default_rng(d).normal(size=(4000, d))
        exact, first, second = (nk.theory.first_gradient(target, w, order=order) for order in (None, 1, 2))
        sizes.append([np.sqrt(np.mean(np.sum(g**2, axis=1))) for g in (exact, exact - first, exact - second)])
    slopes = np.diff(np.log(sizes), axis=0)[-1] / np.log(4)
    np.testing.assert_allclose(slopes, [-0.5, -1.0, -1.5], atol=0.1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda f: nk.theory.first_gradient(f, np.zeros((1, 2))), "`weights` has a row of zeros"),
        (
            lambda f: nk.theory.first_gradient(f, np.ones((1, 3))),
            "`weights` has 3 features per row; 2 expected",
        ),
        (
            lambda f: nk.theory.first_gradient(f, np.ones((2, 2)), head=np.ones(3)),
            r"`head` must be one number or have shape \(2,\)",
        ),
        (lambda f: nk.theory.first_gradient(f, np.ones((2, 2)), order=-1), "`order` must be at least 0"),
        (
            lambda f: nk.theory.first_gradient(np.sin, np.ones((2, 2))),
            "`target` must be an nk.theory.MultiIndexPolynomial",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(nk.theory.MultiIndexPolynomial(U2, COEFFICIENTS))
