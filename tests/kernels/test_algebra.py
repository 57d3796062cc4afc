"""Sums, products and multiples of kernels are kernels."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

X, Y = helpers.points(6, 4), helpers.points(3, 4, 1)
A = nk.kernels.RBF(1.2)
B = nk.kernels.NTK(nk.MLP(4, (2,), activation="relu", weight_var=2.0, bias_var=0.1))
C = nk.kernels.RandomFeatures(4, 9, jax.random.key(0))

LAWS = {
    "sum": (A + B, lambda a, b, c: a + b),
    "sum of three": (A + B + C, lambda a, b, c: a + b + c),
    "product": (A * B, lambda a, b, c: a * b),
    "factor on the left": (2.5 * A, lambda a, b, c: 2.5 * a),
    "factor on the right": (A * 2.5, lambda a, b, c: 2.5 * a),
    "whole factor": (3 * A, lambda a, b, c: 3 * a),
    "factor of numpy": (np.float64(0.5) * A, lambda a, b, c: 0.5 * a),
    "zero": (0 * A, lambda a, b, c: 0 * a),
    "distributive": (C * (A + 2.0 * B), lambda a, b, c: c * (a + 2 * b)),
    "power": (A * A * A, lambda a, b, c: a**3),
    "with itself": (A + A, lambda a, b, c: 2 * a),
}


@pytest.mark.parametrize("name", LAWS)
def test_algebra_of_kernels_is_algebra_of_matrices(name):
    kernel, law = LAWS[name]
    for ask in (lambda k: k(X), lambda k: k(X, Y), lambda k: k.diag(X)):
        np.testing.assert_allclose(ask(kernel), law(ask(A), ask(B), ask(C)), rtol=1e-14)
    np.testing.assert_allclose(
        np.concatenate([block for _, block in kernel.blocks(X, memory=100)]), kernel(X), rtol=1e-13
    )


def test_operands_are_left_as_they_were():
    before = A(X)
    (A + B)(X), (A * B)(X), (2.0 * A)(X)
    np.testing.assert_array_equal(A(X), before)


def test_dimensions_are_inherited():
    for kernel in (A + B, B * A, 2.0 * B, C + A):
        with pytest.raises(ValueError, match="`x` has 3 features per row; 4 expected"):
            kernel(X[:, :3])


@pytest.mark.parametrize(
    "combine, error, message",
    [
        (lambda: A * -1.0, ValueError, "`the factor of a kernel` must be at least 0; got -1.0"),
        (lambda: A * np.inf, ValueError, "`the factor of a kernel` must be finite; got inf"),
        (lambda: A * "2", TypeError, "`the factor of a kernel` must be one number; got '2'"),
        (lambda: None * A, TypeError, "`the factor of a kernel` must be one number; got None"),
        (lambda: A + 1.0, TypeError, "unsupported operand"),
    ],
)
def test_bad_operands_are_named(combine, error, message):
    with pytest.raises(error, match=message):
        combine()
