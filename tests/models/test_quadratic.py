"""Quadratic and cubic models are the polynomials they say, however their tensors are given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.helpers import compiled
from support.references.quadratic_problems import (
    DIRECTIONS,
    F,
    R,
    cubic,
    phi,
    problem,
    psi,
    psi_array,
    quadratic,
    third,
    third_array,
)

P = problem(5, 0)
W = np.random.default_rng(1).normal(size=(3, F))
SKEW = np.random.default_rng(2).normal(size=(F, F))


def jax_psi(x):
    return jnp.einsum("nr,rj,rk->njk", x[:, F:], DIRECTIONS, DIRECTIONS)


def jax_third(x):
    return jnp.einsum("nr,rj,rk,rl->njkl", x[:, F:] ** 2, DIRECTIONS, DIRECTIONS, DIRECTIONS)


def outputs(model, w):
    return compiled(model)(w, P.x)


def by_hand(x, w, eps, degree):
    found = x[:, :F] @ w.T + eps / 2 * np.einsum("njk,ij,ik->ni", psi_array(x), w, w)
    if degree == 3:
        found += eps**2 / 6 * np.einsum("njkl,ij,ik,il->ni", third_array(x), w, w, w)
    return found


def test_the_quadratic_model_is_its_formula():
    np.testing.assert_allclose(outputs(quadratic(0.3), W), by_hand(P.x, W, 0.3, 2), rtol=1e-12)
    np.testing.assert_allclose(outputs(quadratic(0.3), W[0]), by_hand(P.x, W[:1], 0.3, 2), rtol=1e-12)


def test_the_cubic_model_is_its_formula():
    np.testing.assert_allclose(outputs(cubic(0.3), W), by_hand(P.x, W, 0.3, 3), rtol=1e-12)


def test_tensors_may_be_arrays_or_products():
    arrays = nk.models.CubicModel(phi, jax_psi, jax_third, 0.3)
    np.testing.assert_allclose(outputs(arrays, W), outputs(cubic(0.3), W), rtol=1e-12)
    mixed = nk.models.CubicModel(phi, jax_psi, third, 0.3)
    np.testing.assert_allclose(outputs(mixed, W), outputs(cubic(0.3), W), rtol=1e-12)
    one, other = (
        nk.solve(model, P.x, P.y, nk.Ridge(0.1), order=1).predict(P.x_new).terms
        for model in (nk.QuadraticModel(phi, lambda x: jax_psi(x) + SKEW - SKEW.T, 0.01), quadratic(0.01))
    )
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-14)


@pytest.mark.slow
def test_of_an_array_the_symmetric_part_counts():
    crooked = nk.QuadraticModel(phi, lambda x: jax_psi(x) + SKEW - SKEW.T, 0.3)
    np.testing.assert_allclose(outputs(crooked, W), outputs(quadratic(0.3), W), rtol=1e-12)
    turned = nk.models.CubicModel(
        phi, psi, lambda x: jax_third(x) + SKEW[:, :, None] - SKEW.T[:, :, None], 0.3
    )
    np.testing.assert_allclose(outputs(turned, W), outputs(cubic(0.3), W), rtol=1e-9)


def test_effective_features_move_with_the_weights():
    features = nk.theory.effective_features(quadratic(0.3), W[:1], P.x)
    assert features.shape == (5, 1, F)
    np.testing.assert_allclose(features[:, 0], P.x[:, :F] + 0.3 * psi_array(P.x) @ W[0], atol=1e-12)
    moved = nk.theory.effective_features(cubic(0.3), W[:1], P.x)[:, 0]
    bent = np.einsum("njkl,k,l->nj", third_array(P.x), W[0], W[0])
    np.testing.assert_allclose(moved, features[:, 0] + 0.3**2 / 2 * bent, atol=1e-12)
    both = nk.theory.effective_features(quadratic(0.3, out_dim=2), W[:2], P.x).reshape(5, 2, 2, F)
    assert not both[:, 0, 1].any() and not both[:, 1, 0].any()  # outputs have weights of their own
    np.testing.assert_allclose(both[:, 0, 0], features[:, 0], atol=1e-12)


def test_an_expansion_of_the_second_degree_is_the_model_itself():
    tay = nk.expand(quadratic(0.3), W[:1], degree=2)
    np.testing.assert_allclose(outputs(tay, W[1:2]), outputs(quadratic(0.3), W[1:2]), rtol=1e-11)
    here, there = (nk.theory.effective_features(m, W[1:2], P.x) for m in (tay, quadratic(0.3)))
    np.testing.assert_allclose(here, there, atol=1e-11)


def test_weights_start_at_zero():
    assert quadratic(0.1, out_dim=2, in_dim=F + R).init().shape == (2, F)
    assert not np.any(cubic(0.1, in_dim=F + R).init(jax.random.key(0)))


def test_eps_may_be_traced():
    slope = compiled(jax.grad(lambda eps: quadratic(eps)(W[:1], P.x).sum()))(0.3)
    expected = 0.5 * np.einsum("njk,j,k->", psi_array(P.x), W[0], W[0])
    np.testing.assert_allclose(slope, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    (
        (
            lambda: nk.QuadraticModel(3, psi),
            TypeError,
            r"`phi` must be a function \(n, d\) -> \(n, f\); got int",
        ),
        (lambda: nk.QuadraticModel(phi, None), TypeError, "`psi` must be a function x -> .* got NoneType"),
        (
            lambda: nk.models.CubicModel(phi, psi, 1.0),
            TypeError,
            "`Psi` must be a function x -> .* got float",
        ),
        (lambda: quadratic("much"), TypeError, "`eps` must be one number; got 'much'"),
        (lambda: quadratic(np.ones(2)), TypeError, "`eps` must be one number; got an array"),
        (lambda: quadratic(float("nan")), ValueError, "`eps` must be a number; got nan"),
        (lambda: quadratic(float("inf")), ValueError, "`eps` must be finite; got inf"),
        (lambda: quadratic(0.1, out_dim=0), ValueError, "`out_dim` must be at least 1; got 0"),
        (lambda: quadratic(0.1).init(), ValueError, "`QuadraticModel.init` needs `in_dim`"),
        (lambda: cubic(0.1).init(), ValueError, "`CubicModel.init` needs `in_dim`"),
        (
            lambda: quadratic(0.1)(W[:, :4], P.x),
            ValueError,
            r"`params` must have shape \(out, 11\); got \(3, 4\)",
        ),
        (
            lambda: nk.QuadraticModel(lambda x: x[:, 0], psi)(W, P.x),
            ValueError,
            r"`phi` must map \(n, d\) to \(n, f\); it maps \(5, 16\) to \(5,\)",
        ),
        (
            lambda: nk.QuadraticModel(phi, lambda x: x[:, :F])(W, P.x),
            ValueError,
            r"`psi\(x\)` must return \(n, f, f\) = \(5, 11, 11\); it returns \(5, 11\)",
        ),
        (
            lambda: nk.QuadraticModel(phi, lambda x, u: u)(W, P.x),
            ValueError,
            r"`psi\(x, u\)` must return \(n, f\) = \(5, 11\); it returns \(11,\)",
        ),
        (
            lambda: nk.models.CubicModel(phi, psi, lambda x, u, v: u * v)(W, P.x),
            ValueError,
            r"`Psi\(x, u, v\)` must return \(n, f\) = \(5, 11\); it returns \(11,\)",
        ),
        (
            lambda: nk.models.CubicModel(phi, psi, jax_psi)(W, P.x),
            ValueError,
            r"`Psi\(x\)` must return \(n, f, f, f\) = \(5, 11, 11, 11\); it returns \(5, 11, 11\)",
        ),
    ),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bad_input_gets_one_line(make, error, text):
    with pytest.raises(error, match=text):
        make()
