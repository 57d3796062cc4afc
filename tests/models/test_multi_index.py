"""Targets of few directions: their Hermite tools agree with quadrature, with derivatives and with draws."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

D, R = 5, 2
RNG = np.random.default_rng(0)
U = np.linalg.qr(RNG.normal(size=(D, R)))[0].T
COEFFICIENTS = {(0, 0): 0.3, (1, 0): -0.7, (2, 0): 0.5, (1, 1): 0.4, (2, 1): -0.2, (1, 3): 0.1, (0, 4): 0.05}
F = nk.theory.MultiIndexPolynomial(U, COEFFICIENTS)


def by_hand(x):
    """The same function in JAX, from the polynomials written out."""
    he = (
        lambda z: 1.0,
        lambda z: z,
        lambda z: z**2 - 1,
        lambda z: z**3 - 3 * z,
        lambda z: z**4 - 6 * z**2 + 3,
    )
    z = U @ x
    return sum(c * he[a](z[0]) * he[b](z[1]) for (a, b), c in COEFFICIENTS.items())


def gaussian_grid(dim, nodes=6):
    """Nodes and weights of a quadrature that is exact for polynomials of degree 11."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    points = np.array(list(itertools.product(t, repeat=dim)))
    weights = np.prod(np.array(list(itertools.product(w, repeat=dim))), axis=1)
    return points, weights / weights.sum()


def test_values_moments_and_average_derivatives_are_those_of_the_function():
    x, w = gaussian_grid(R)
    x = x @ U  # the function does not see the other directions
    with jax.enable_x64(True):
        values, hessians, thirds = (
            np.asarray(jax.jit(jax.vmap(g))(jnp.asarray(x)))
            for g in (by_hand, jax.hessian(by_hand), jax.jacfwd(jax.hessian(by_hand)))
        )
    np.testing.assert_allclose(F(x), values, atol=1e-12)
    assert F.mean == pytest.approx(w @ values)
    assert F.variance == pytest.approx(w @ values**2 - F.mean**2)
    np.testing.assert_allclose(F.hessian, np.einsum("i,ijk->jk", w, hessians), atol=1e-12)
    np.testing.assert_allclose(F.tensor(3), np.einsum("i,ijkl->jkl", w, thirds), atol=1e-12)
    assert F.degree == 4 and F.tensor(4).shape == (D,) * 4 and F.tensor(0) == pytest.approx(F.mean)


def test_steins_identity_gives_the_hessian_from_values():
    x = np.random.default_rng(1).normal(size=(200_000, D))
    terms = F(x)[:, None, None] * (x[:, :, None] * x[:, None, :] - np.eye(D))
    error = terms.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(terms.mean(axis=0) - F.hessian) < 4 * error).all()


def test_directions_that_are_not_orthonormal_are_rewritten():
    mixed = RNG.normal(size=(3, D))

    def g(z):
        return z[:, 0] ** 3 + z[:, 1] * z[:, 2] - 2 * z[:, 2] + 1

    found = nk.theory.MultiIndexPolynomial.of(g, mixed, 3)
    x = RNG.normal(size=(20, D))
    np.testing.assert_allclose(found(x), g(x @ mixed.T), rtol=1e-10)
    # nabla^2 f = 6 z_0 m_0 m_0^T + m_1 m_2^T + m_2 m_1^T, and z_0 has mean 0
    np.testing.assert_allclose(
        found.hessian, np.outer(mixed[1], mixed[2]) + np.outer(mixed[2], mixed[1]), atol=1e-12
    )


def test_kappa_is_infinite_where_the_hessian_misses_a_direction():
    assert nk.theory.MultiIndexPolynomial(U, {(2, 0): 0.5, (0, 2): -0.25}).kappa == pytest.approx(2 / 2**0.5)
    assert nk.theory.MultiIndexPolynomial(U, {(2, 0): 0.5, (0, 4): 1.0}).kappa == np.inf
    assert nk.theory.MultiIndexPolynomial(U, {(4, 0): 0.5}).kappa == np.inf


def test_the_nonlinear_part_has_no_constant_and_no_slope():
    rest = F.nonlinear()
    assert rest.mean == 0 and not rest.tensor(1).any()
    x = RNG.normal(size=(7, D))
    np.testing.assert_allclose(F(x) - rest(x), F.mean + x @ F.tensor(1), atol=1e-12)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.MultiIndexPolynomial(2 * U, {(2, 0): 1.0}),
            "`directions` must be orthonormal rows",
        ),
        (lambda: nk.theory.MultiIndexPolynomial(U, {(2,): 1.0}), "tuples of 2 powers"),
        (lambda: nk.theory.MultiIndexPolynomial(U, {(2, -1): 1.0}), "must be at least 0; got -1"),
        (lambda: nk.theory.MultiIndexPolynomial(U, {}), "`coefficients` must be a dictionary"),
        (lambda: nk.theory.MultiIndexPolynomial(U, {(2, 0): np.nan}), "`coefficients` holds 1 NaN"),
        (lambda: F(np.ones((2, 3))), "`x` has 3 features per row; 5 expected"),
        (
            lambda: nk.theory.MultiIndexPolynomial.of(lambda z: np.sin(z[:, 0]), U, 3),
            "`g` is not a polynomial of degree 3",
        ),
        (lambda: nk.theory.MultiIndexPolynomial.of(lambda z: z, U, 3), r"`g` must map \(n, r\) to \(n,\)"),
        (
            lambda: nk.theory.MultiIndexPolynomial.of(lambda z: z[:, 0], np.ones((2, 5)), 1),
            "`directions` must be linearly independent",
        ),
    ],
)
def test_bad_targets_get_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
