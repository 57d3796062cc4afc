"""Kernels that learn a matrix: gradients, their outer product, and rounds of it."""

import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

D = nk.dynamics
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
U = np.eye(1, 5, 2)
Y = (X[:, 2] ** 2 - 1) / 2**0.5


def test_outer_product_of_gradients_is_that_by_hand():
    matrix = RNG.normal(size=(5, 5))
    quadratic = matrix + matrix.T
    found = nk.theory.average_gradient_outer_product(
        lambda x: 0.5 * jnp.einsum("ij,jk,ik->i", x, quadratic, x), X
    )
    np.testing.assert_allclose(found, quadratic @ (X.T @ X / len(X)) @ quadratic, rtol=1e-12)
    both = nk.theory.average_gradient_outer_product(lambda x: jnp.sin(x[:, :2]), X)
    np.testing.assert_allclose(both, np.diag([*np.mean(np.cos(X[:, :2]) ** 2, axis=0), 0, 0, 0]), atol=1e-14)


@pytest.mark.parametrize("kernel", [nk.kernels.Laplace(2.0), nk.kernels.RBF(1.5)], ids=["laplace", "rbf"])
def test_a_round_is_the_outer_product_of_finite_differences(kernel):
    found = nk.theory.recursive_features(kernel, X, Y, nk.Ridge(0.1), rounds=1)
    h, machine = 1e-5, found.solutions[0]
    # A Laplace kernel has a kink at every point of the data, where the mean of both sides is meant.
    moved = [(machine.predict(X + h * e).mean - machine.predict(X - h * e).mean) / (2 * h) for e in np.eye(5)]
    expected = np.array(moved) @ np.array(moved).T
    np.testing.assert_allclose(found.matrix, 5 * expected / np.trace(expected), atol=1e-4)
    looked = nk.kernels.Mahalanobis(kernel, found.matrix)
    expected = looked(X[:3] + 1, X) @ np.linalg.solve(looked(X) + 0.1 * np.eye(120), Y)
    np.testing.assert_allclose(found.solution.predict(X[:3] + 1).mean, expected, rtol=1e-9)


def test_rounds_find_the_direction_of_the_target():
    found = nk.theory.recursive_features(None, X, Y, rounds=3, subspace=U)
    assert found.overlaps[-1] > 0.99 and len(found.matrices) == len(found.solutions) == 4
    assert nk.theory.subspace_overlap(found.directions(1), U) == pytest.approx(found.overlaps[-1])
    assert all(np.trace(m) == pytest.approx(5) for m in found.matrices)
    new = RNG.normal(size=(200, 5))
    error = [np.mean((s.predict(new).mean - (new[:, 2] ** 2 - 1) / 2**0.5) ** 2) for s in found.solutions]
    assert error[-1] < 0.3 * error[0]


def test_a_constant_target_teaches_nothing():
    found = nk.theory.recursive_features(None, X, 0 * Y, rounds=3)
    assert len(found.matrices) == 1 and not found.solution.predict(X).mean.any()


def test_no_rounds_leave_the_plain_kernel():
    kernel = nk.kernels.RBF(1.5)
    found, plain = (
        nk.theory.recursive_features(kernel, X, Y, rounds=0),
        nk.solve(kernel, X, Y, nk.Ridge(1e-3)),
    )
    assert len(found.matrices) == 1 and len(found.solutions) == 1
    np.testing.assert_allclose(found.solution.predict(X).mean, plain.predict(X).mean, rtol=1e-10)


def test_overlaps_are_shares():
    assert nk.theory.subspace_overlap(np.eye(2, 5), np.eye(1, 5)) == pytest.approx(1.0)
    assert nk.theory.subspace_overlap(np.eye(1, 5), np.eye(2, 5)) == pytest.approx(0.5)
    assert nk.theory.subspace_overlap([[1.0, 1.0]], [[1.0, 0.0]]) == pytest.approx(0.5)
    repeated = np.vstack([np.eye(1, 5), 2 * np.eye(1, 5), np.eye(2, 5)[1:]])
    assert nk.theory.subspace_overlap(np.eye(1, 5), repeated) == pytest.approx(
        0.5
    )  # repeated directions count once
    random = [nk.theory.subspace_overlap(RNG.normal(size=(2, 20)), np.eye(3, 20)) for _ in range(400)]
    assert abs(np.mean(random) - 0.1) < 4 * np.std(random) / 20


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.kernels.Mahalanobis("rbf", np.eye(2)), "`kernel` must be a kernel"),
        (
            lambda: nk.kernels.Mahalanobis(nk.kernels.RBF(), np.ones((2, 3))),
            r"`matrix` must have shape \(d, d\)",
        ),
        (
            lambda: nk.kernels.Mahalanobis(nk.kernels.RBF(), np.triu(np.ones((2, 2)))),
            "`matrix` must be symmetric",
        ),
        (
            lambda: nk.kernels.Mahalanobis(nk.kernels.RBF(), -np.eye(2)),
            "no negative eigenvalues; the smallest is -1",
        ),
        (
            lambda: nk.kernels.Mahalanobis(nk.kernels.RBF(), np.eye(2))(X),
            "`x` has 5 features per row; 2 expected",
        ),
        (lambda: nk.theory.recursive_features(None, X, Y, rounds=-1), "`rounds` must be at least 0"),
        (
            lambda: nk.theory.recursive_features(None, X, Y, subspace=np.eye(2)),
            "`subspace` has 2 features per row; 5",
        ),
        (lambda: nk.theory.average_gradient_outer_product("f", X), "`function` must be a JAX function"),
        (
            lambda: nk.theory.average_gradient_outer_product(lambda x: x.sum(), X),
            r"`function` must map \(n, d\) to",
        ),
        (
            lambda: nk.theory.subspace_overlap(np.eye(2), np.eye(3)),
            "`found` has 2 features per row; 3 expected",
        ),
        (
            lambda: nk.theory.subspace_overlap(np.ones((3, 1)), np.ones((4, 1))),
            r"`true` has 4 directions of 1 features, more than the space has dimensions.*pass `true\.T` if yours",
        ),
        (
            lambda: nk.theory.subspace_overlap(np.ones((3, 1)), np.ones((1, 1))),
            "`found` has 3 directions of 1 features",
        ),
        (lambda: nk.theory.subspace_overlap(np.eye(2), np.zeros((1, 2))), "`true` is 0: it has no direction"),
        (
            lambda: nk.theory.recursive_features(None, X, Y, subspace=np.ones((2, 5))),
            "`subspace` must contain linearly independent directions",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
