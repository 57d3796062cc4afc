"""Does learning features help? The slope, the curvature and the best eps against the exact test loss."""

import numpy as np
import pytest

import nearkernel as nk
from support.references.quadratic_problems import (
    F,
    exact_outputs,
    problem,
    psi_array,
    quadratic,
    slope,
    trained,
)

ALGORITHMS = {
    "descent": nk.GradientDescent(0.3),
    "direct": nk.DirectOptimization(),
    "least norm": nk.Ridge(0.0),
    "ridge": nk.Ridge(0.3),
    "40 steps": nk.GradientDescent(0.3, steps=40),
}


def exact_loss(p, algorithm, y_new, eps):
    z = exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0]
    return 0.5 * float(((z - y_new) ** 2).sum())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_predicted_loss_is_right_to_second_order(name):
    p, algorithm = problem(6, 1), ALGORITHMS[name]
    y_new = np.random.default_rng(0).normal(size=4)
    found = nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=1).feature_learning(p.x_new, y_new)
    eps = np.array([4e-3, 1e-3])
    exact = np.array([exact_loss(p, algorithm, y_new, e) for e in eps])
    np.testing.assert_allclose(found.curve(eps), exact, rtol=1e-9)
    assert slope(eps, np.abs(found.predicted(eps) - exact)) == pytest.approx(3, abs=0.05)
    without = found.loss + eps * found.slope
    assert slope(eps, np.abs(without - exact)) == pytest.approx(2, abs=0.05)
    assert found.helps == (found.slope < 0) and found.is_minimum == (found.curvature > 0)


def test_terms_do_not_depend_on_the_models_own_eps_or_the_order_solved():
    p = problem(6, 2)
    y_new = np.ones(4)
    one, other = (
        nk.solve(quadratic(eps), p.x, p.y, nk.Ridge(0.0), order=order).feature_learning(p.x_new, y_new)
        for eps, order in ((0.01, 1), (0.7, 2))
    )
    np.testing.assert_allclose(one.terms, other.terms, rtol=1e-10)
    z_f, z_i, z_ii = one.terms
    error = z_f[:, 0] - y_new
    assert one.slope == pytest.approx(error @ z_i[:, 0])  # no factor eps
    assert one.curvature == pytest.approx((z_i**2).sum() + 2 * error @ z_ii[:, 0])
    assert one.loss == pytest.approx(0.5 * error @ error)


def labels_with_best_eps(p, algorithm, eps):
    """Test labels for which the exact loss is least at a small eps: the exact outputs there, and noise across."""
    at = exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0]
    step = 1e-4
    ahead = exact_outputs(trained(algorithm, p, eps + step), p.x_new, eps + step)[:, 0]
    behind = exact_outputs(trained(algorithm, p, eps - step), p.x_new, eps - step)[:, 0]
    along = ahead - behind
    noise = np.random.default_rng(1).normal(size=4)
    return at + 0.3 * (noise - along * (along @ noise) / (along @ along))


@pytest.mark.parametrize("name", ("direct", "least norm", "descent"))
def test_the_best_eps_is_where_the_exact_loss_is_least(name):
    """To relative order eps*; with z^I^2 + (z^F - y) z^II below, without the 2, it is off by a fixed share."""
    p, algorithm = problem(6, 3), ALGORITHMS[name]
    errors, wrong = [], []
    for eps in (4e-3, 1e-3):
        y_new = labels_with_best_eps(p, algorithm, eps)
        found = nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=2).feature_learning(p.x_new, y_new)
        z_f, z_i, z_ii = (term[:, 0] for term in found.terms)
        assert found.is_minimum and found.helps
        errors.append(abs(found.best_eps / eps - 1))
        without = -((z_f - y_new) @ z_i) / (z_i @ z_i + (z_f - y_new) @ z_ii)
        wrong.append(abs(without / eps - 1))
    assert errors[1] < 0.02 and errors[1] < 0.3 * errors[0]
    assert wrong[1] > 0.05


def test_a_maximum_says_so():
    p = problem(6, 4)
    solution = nk.solve(quadratic(0.01), p.x, p.y, nk.Ridge(0.0), order=2)
    z_f, _, z_ii = (term[:, 0] for term in solution.feature_learning(p.x_new, np.zeros(4)).terms)
    found = solution.feature_learning(p.x_new, z_f + 100 * z_ii)
    assert not found.is_minimum and found.predicted(found.best_eps) > found.loss


def test_the_second_order_of_direct_optimization_is_its_formula():
    """nu0 = -K^-1 e, nu1 = -1/2 K^-1 mu_A(nu0, nu0); z^I = 1/2 br(nu0, nu0), z^II = br(nu0, nu1)."""
    p = problem(7, 5)
    f, f_new = p.x[:, :F], p.x_new[:, :F]
    kernel, cross = f @ f.T, f_new @ f.T
    mu, mu_new = (np.einsum("ajk,bj,ck->abc", psi_array(x), f, f) for x in (p.x, p.x_new))
    nu0 = np.linalg.solve(kernel, p.y)
    nu1 = -0.5 * np.linalg.solve(kernel, mu @ nu0 @ nu0)
    bracket = mu_new - np.einsum("ba,acd->bcd", cross @ np.linalg.inv(kernel), mu)
    found = nk.solve(quadratic(0.01), p.x, p.y, nk.DirectOptimization(), order=2)
    _, z_i, z_ii = found.feature_learning(p.x_new, np.zeros(4)).terms
    np.testing.assert_allclose(z_i[:, 0], 0.5 * bracket @ nu0 @ nu0, atol=1e-12)
    np.testing.assert_allclose(z_ii[:, 0], bracket @ nu0 @ nu1, atol=1e-12)


@pytest.mark.slow
def test_for_an_expanded_model_eps_1_is_the_model_and_0_its_linearization():
    p, start = problem(6, 6), 0.3 * np.random.default_rng(2).normal(size=(1, F))
    y_new, direct = np.zeros(4), nk.DirectOptimization()
    found = nk.solve(nk.expand(quadratic(0.02), start, 2), p.x, p.y, direct, order=1)
    found = found.feature_learning(p.x_new, y_new)
    weights = trained(direct, p, 0.02, start)
    exact = 0.5 * (exact_outputs(weights, p.x_new, 0.02)[:, 0] ** 2).sum()
    linear, itself = found.curve([0.0, 1.0])
    assert itself == pytest.approx(exact) and linear == pytest.approx(found.loss)
    assert found.predicted(1.0) == pytest.approx(exact, rel=1e-2)


def test_a_learning_rate_that_fails_at_some_eps_leaves_a_gap():
    p = problem(6, 7)
    solution = nk.solve(quadratic(0.01), p.x, p.y, nk.GradientDescent(0.45), order=1)
    near, far = solution.feature_learning(p.x_new, np.zeros(4)).curve([0.01, 50.0])
    assert np.isfinite(near) and np.isnan(far)


def test_several_outputs_add_up():
    p = problem(6, 8, outputs=2)
    y_new = np.random.default_rng(3).normal(size=(4, 2))
    both = nk.solve(quadratic(0.01), p.x, p.y, nk.Ridge(0.1), order=1).feature_learning(p.x_new, y_new)
    parts = [
        nk.solve(quadratic(0.01), p.x, p.y[:, i], nk.Ridge(0.1), order=1).feature_learning(
            p.x_new, y_new[:, i]
        )
        for i in range(2)
    ]
    for name in ("loss", "slope", "curvature"):
        assert getattr(both, name) == pytest.approx(sum(getattr(part, name) for part in parts))
