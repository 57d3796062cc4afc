"""How the kernel moves, and predictions in the form of a kernel machine: each right where it says."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support.helpers import compiled, points
from support.references.quadratic_problems import (
    F,
    Known,
    exact_outputs,
    problem,
    psi_array,
    quadratic,
    slope,
    trained,
)

MOST = 4.0
ALGORITHMS = {
    "direct": nk.DirectOptimization(),
    "least norm": nk.Ridge(0.0),
    "descent": nk.GradientDescent(1.7 / MOST),
    "flow": nk.GradientFlow(),
}
EPS = (4e-3, 1e-3)
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
pytestmark = pytest.mark.filterwarnings(r"ignore:\|z\^I\|")


@every_algorithm
def test_the_effective_kernel_is_the_trained_models_to_first_order(algorithm):
    p = problem(6, 1)
    errors = []
    for eps in EPS:
        w = trained(algorithm, p, eps)[0]
        exact = Known(p.x_new, eps).features(w) @ Known(p.x, eps).features(w).T
        found = nk.solve(quadratic(eps), p.x, p.y, algorithm, order=1).effective_kernel(p.x_new, p.x)
        frozen = p.x_new[:, :F] @ p.x[:, :F].T
        errors.append([np.linalg.norm(found - exact), np.linalg.norm(frozen - exact)])
    assert [slope(EPS, column) for column in zip(*errors, strict=True)] == pytest.approx([2, 1], abs=0.05)


def test_it_is_the_formula_with_the_meta_kernel():
    """k^E = k - (mu_12a + mu_21a) (K^-1 e)_a, and k# is half-way."""
    p = problem(6, 2)
    solution = nk.solve(quadratic(0.01), p.x, p.y, order=1)
    mu = nk.theory.EmpiricalDNTK(quadratic(0.01), np.zeros((1, F)))(p.x)
    kernel = p.x[:, :F] @ p.x[:, :F].T
    drift = mu @ np.linalg.solve(kernel, -p.y)
    np.testing.assert_allclose(solution.effective_kernel(p.x), kernel - drift - drift.T, atol=1e-12)
    np.testing.assert_allclose(solution.trained_kernel(p.x), kernel - (drift + drift.T) / 2, atol=1e-12)


@pytest.mark.parametrize("algorithm", [nk.GradientFlow(), nk.GradientDescent(0.1)], ids=["flow", "descent"])
def test_the_kernel_at_a_time_is_that_of_training_that_stops_then(algorithm):
    p = problem(6, 4)
    whole = nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=1)
    stopped = nk.solve(quadratic(0.01), p.x, p.y, algorithm.at(7.0), order=1)
    found = whole.effective_kernel(p.x_new, p.x, time=7.0)
    np.testing.assert_allclose(found, stopped.effective_kernel(p.x_new, p.x), atol=1e-12)
    assert np.abs(found - whole.effective_kernel(p.x_new, p.x)).max() > 1e-6
    frozen = whole.effective_kernel(p.x_new, p.x, time=0.0)
    np.testing.assert_allclose(frozen, p.x_new[:, :F] @ p.x[:, :F].T, atol=1e-12)


def test_deformed_labels_make_the_linear_model_learn_the_first_order():
    p, eps = problem(6, 5), 0.01
    solution = nk.solve(quadratic(eps), p.x, p.y, nk.DirectOptimization(), order=1)
    first, second = (np.ravel(each) for each in solution.weights)
    form = np.einsum("njk,j,k->n", psi_array(p.x_new), first, first)
    np.testing.assert_allclose(solution.quadratic_form(p.x_new), form, atol=1e-12)
    linear = nk.FeatureModel(lambda x: x[:, :F])
    fitted = nk.solve(linear, p.x, solution.deformed_labels(), nk.DirectOptimization())
    np.testing.assert_allclose(np.ravel(fitted.params()), first + second, atol=1e-12)
    together = fitted.predict(p.x_new).mean + eps / 2 * form
    np.testing.assert_allclose(together, solution.predict(p.x_new).mean, atol=1e-12)


def test_several_outputs_have_a_kernel_each():
    p = problem(6, 3, outputs=2)
    both = nk.solve(quadratic(0.01), p.x, p.y, order=1).effective_kernel(p.x_new, p.x)
    assert both.shape == (4, 2, 6, 2) and not both[:, 0, :, 1].any()
    alone = nk.solve(quadratic(0.01), p.x, p.y[:, 1], order=1).effective_kernel(p.x_new, p.x)
    np.testing.assert_allclose(both[:, 1, :, 1], alone, atol=1e-12)


@pytest.mark.slow
def test_the_kernel_of_a_network_moves_along_its_weights():
    """k^E = k + dJ J^T + J dJ^T, dJ the change of the Jacobian along W^F; outputs share parameters."""
    net, x = nk.MLP(3, (4,), out_dim=2, activation="tanh"), points(3, 3)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), net.init(jax.random.key(0)))
    y = np.asarray(compiled(net)(params, x)) + 0.01 * points(3, 2, seed=1)
    solution = nk.solve(nk.expand(net, params, 2), x, y, nk.DirectOptimization(), order=1)
    shift = lambda s: jax.tree.map(lambda p, w: p + s * w, params, solution.weights[0])
    kernel = lambda s: nk.kernels.EmpiricalNTK(net, shift(s), method="jacobian").full(x)
    expected = kernel(0.0) + (kernel(1e-3) - kernel(-1e-3)) / 2e-3
    np.testing.assert_allclose(solution.effective_kernel(x), expected, atol=1e-7)


def compressed_slope(kernel, p, algorithm, exact, start=None):
    errors = []
    for eps, z in zip(EPS, exact, strict=True):
        model = quadratic(eps) if start is None else nk.expand(quadratic(eps), start, 2)
        solution = nk.solve(model, p.x, p.y, algorithm, order=1)
        errors.append(np.linalg.norm(solution.compressed_prediction(p.x_new, kernel) - z))
    return slope(EPS, errors)


@every_algorithm
@pytest.mark.parametrize("kernel", ("flat", "trained"))
def test_where_compressed_predictions_are_right(kernel, algorithm):
    """More parameters than points: k_flat is direct optimization, k# no algorithm. As many: both are every one."""
    p = problem(6, 4)
    exact = [exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0] for eps in EPS]
    right = kernel == "flat" and isinstance(algorithm, nk.DirectOptimization)
    assert compressed_slope(kernel, p, algorithm, exact) == pytest.approx(2 if right else 1, abs=0.05)
    p = problem(F, 4)
    exact = [exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0] for eps in EPS]
    assert compressed_slope(kernel, p, algorithm, exact) == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_a_compressed_prediction_starts_where_the_model_does():
    p, start = problem(6, 5), 0.5 * np.random.default_rng(0).normal(size=(1, F))
    direct = nk.DirectOptimization()
    exact = [exact_outputs(trained(direct, p, eps, start), p.x_new, eps)[:, 0] for eps in EPS]
    assert compressed_slope("flat", p, direct, exact, start) == pytest.approx(2, abs=0.05)


def test_k_sharp_is_the_rule_of_two_halves():
    """With its own inverse: w in the span of (f + f^E)/2, i.e. Z_A = Z_B = 1/2 K^-1 x K^-1."""
    p = problem(6, 6)
    errors = []
    for eps in EPS:
        solution = nk.solve(quadratic(eps), p.x, p.y, nk.DirectOptimization(), order=1)
        direct, least = (
            nk.solve(quadratic(eps), p.x, p.y, a, order=1).predict(p.x_new).mean
            for a in (nk.DirectOptimization(), nk.Ridge(0.0))
        )
        rule = (direct + least) / 2  # z^I is linear in Z_A, which is 0 and 1 for these two
        errors.append(np.linalg.norm(solution.compressed_prediction(p.x_new, "trained") - rule))
    assert slope(EPS, errors) == pytest.approx(2, abs=0.05)


def test_k_sharp_with_the_untrained_inverse_is_wrong_at_first_order():
    p = problem(F, 6)
    errors = []
    for eps in EPS:
        solution = nk.solve(quadratic(eps), p.x, p.y, nk.DirectOptimization(), order=1)
        exact = exact_outputs(trained(nk.DirectOptimization(), p, eps), p.x_new, eps)[:, 0]
        found = solution.trained_kernel(p.x_new, p.x) @ np.linalg.solve(p.x[:, :F] @ p.x[:, :F].T, p.y)
        errors.append(np.linalg.norm(found - exact))
    assert slope(EPS, errors) == pytest.approx(1, abs=0.05)


def test_k_flat_is_exact_at_the_exact_weights():
    p, eps = problem(6, 7), 0.05
    w = trained(nk.DirectOptimization(), p, eps)[0]
    half = lambda x: x[:, :F] + 0.5 * eps * psi_array(x) @ w
    cross, inner = (half(x) @ p.x[:, :F].T for x in (p.x_new, p.x))
    np.testing.assert_allclose(
        cross @ np.linalg.solve(inner, p.y), exact_outputs([w], p.x_new, eps)[:, 0], atol=1e-11
    )


def test_with_fewer_parameters_than_points_there_is_no_inverse():
    p = problem(17, 1)
    solution = nk.solve(quadratic(0.001), p.x, p.y, order=1)
    for kernel in ("flat", "trained"):
        with pytest.raises(
            ValueError, match=r"a compressed prediction needs a kernel matrix of full rank; its rank .* is 11"
        ):
            solution.compressed_prediction(p.x_new, kernel)
    stopped = nk.solve(quadratic(0.001), p.x[:6], p.y[:6], nk.GradientFlow(1.0), order=1)
    with pytest.raises(ValueError, match="a compressed prediction exists only for training to convergence"):
        stopped.compressed_prediction(p.x_new)
