"""Kernels inside the caller's jit, vmap and grad, in a program that runs JAX in float32."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers
from support.cases import few

D = 4
X = helpers.points(5, D)
KERNELS = {name: kernel for name, kernel in helpers.kernels(D).items() if name != "hard tanh ntk"}


def in_float32(a):
    return jnp.asarray(a, dtype=jnp.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_in_a_float32_program_equals_called(name):
    found = eqx.filter_jit(lambda kernel, x: kernel(x))(KERNELS[name], in_float32(X))
    assert isinstance(found, jax.Array)
    assert helpers.relative_error(found, KERNELS[name](X)) < 1e-5
    if name not in ("random features", "empirical"):  # which bring float64 weights of their own
        assert found.dtype == np.float32


@pytest.mark.parametrize("name", ["rbf", "deep abs ntk", "tanh ntk", "empirical", "product"])
def test_compiled_in_float64_equals_called(name):
    y = X[:2] + 0.3
    found = helpers.compiled(KERNELS[name])(X, y)
    assert found.dtype == np.float64
    assert helpers.relative_error(found, KERNELS[name](X, y)) < 1e-11


def test_mapped_over_problems():
    kernel = KERNELS["relu ntk"]
    problems = in_float32(np.stack([X, 2 * X, X[::-1]]))
    mapped = jax.vmap(lambda x: kernel(x))(problems)
    for found, x in zip(mapped, problems, strict=True):
        assert helpers.relative_error(found, kernel(np.asarray(x))) < 1e-5


def quadratic(matrix):
    """A number that sees every entry with another weight."""
    weights = np.cos(np.arange(matrix.size)).reshape(matrix.shape)
    return (weights.astype(matrix.dtype) * matrix).sum()


def network_kernel(kind, activation, depth=1):
    def make(weight_var, bias_var):
        return kind(nk.MLP(D, (2,) * depth, 1, activation, weight_var, bias_var))

    return make


PARAMETRIC = {
    "relu ntk": (network_kernel(nk.kernels.NTK, "relu"), (1.6, 0.3)),
    "erf ntk": (network_kernel(nk.kernels.NTK, "erf"), (1.6, 0.3)),
    "gelu nngp": (network_kernel(nk.kernels.NNGP, "gelu"), (1.6, 0.3)),
    "tanh ntk": (network_kernel(nk.kernels.NTK, "tanh"), (1.2, 0.3)),
    "deep relu ntk": (network_kernel(nk.kernels.NTK, "relu", 9), (1.8, 0.1)),
    "rbf": (lambda length, factor: factor * nk.kernels.RBF(length), (1.3, 0.7)),
    "laplace": (lambda length, factor: nk.kernels.Linear() + factor * nk.kernels.Laplace(length), (0.8, 1.1)),
    "polynomial": (lambda bias, factor: factor * nk.kernels.Polynomial(3, bias), (0.5, 2.0)),
}


@functools.cache
def gradient(name):
    """By the parameters and by the inputs, compiled once for both tests."""
    make, _ = PARAMETRIC[name]
    return helpers.compiled(jax.grad(lambda p, x: quadratic(make(*p)(x)), argnums=(0, 1)))


@pytest.mark.parametrize("name", few(PARAMETRIC, 3))
def test_gradients_equal_finite_differences(name):
    make, at = PARAMETRIC[name]
    by_parameters, by_inputs = gradient(name)(at, X)
    step = 1e-5
    for i in range(2):
        ends = [np.array(at) + sign * step * np.eye(2)[i] for sign in (1, -1)]
        up, down = (quadratic(make(*map(float, end))(X)) for end in ends)
        np.testing.assert_allclose(by_parameters[i], (up - down) / (2 * step), rtol=1e-6)
    for i, j in [(0, 1), (4, 3)]:
        ends = [X + sign * step * np.outer(np.eye(5)[i], np.eye(D)[j]) for sign in (1, -1)]
        up, down = (quadratic(make(*at)(x)) for x in ends)
        np.testing.assert_allclose(by_inputs[i, j], (up - down) / (2 * step), rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("name", PARAMETRIC)
def test_gradients_are_finite_at_equal_antipodal_and_zero_rows(name):
    x = np.concatenate([X[:2], X[:1], -X[:1], np.zeros((1, D))])
    for found in jax.tree.leaves(gradient(name)(PARAMETRIC[name][1], x)):
        assert np.isfinite(found).all()


def test_vmap_of_jit_of_grad_in_a_float32_program_stays_float32():
    make, (_, bias_var) = PARAMETRIC["relu ntk"]
    slope = jax.jit(jax.grad(lambda w: quadratic(make(w, bias_var)(in_float32(X)))))
    ws = in_float32([1.0, 1.6, 2.0])
    mapped = jax.vmap(slope)(ws)
    assert mapped.dtype == np.float32
    for found, w in zip(mapped, ws, strict=True):
        exact = gradient("relu ntk")((float(w), bias_var), X)[0][0]
        np.testing.assert_allclose(found, exact, rtol=1e-4)


def test_a_kinked_callable_met_first_under_jit():
    """Its kinks are found while the caller is being traced."""
    kernel = nk.kernels.NTK(nk.MLP(D, (2,), activation=lambda z: jnp.clip(z, -0.9, 1.1), bias_var=0.0))
    x, y = np.eye(D)[:2] + 0.1, np.eye(D)[2:] - 0.2  # at wide angles, where 128 terms suffice
    found = jax.jit(lambda a, b: kernel(a, b))(in_float32(x), in_float32(y))
    assert helpers.relative_error(found, kernel(x, y)) < 1e-5
