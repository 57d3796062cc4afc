"""`solve` at orders 1 and 2: the error against training without any expansion falls as eps^(order + 1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.helpers import relative_error
from support.references.quadratic_problems import (
    F,
    cubic,
    exact_outputs,
    phi,
    problem,
    psi,
    quadratic,
    slope,
    trained,
)

MOST = 4.0  # the largest eigenvalue of every problem's kernel matrix
ALGORITHMS = {
    "descent": nk.GradientDescent(0.3 / MOST),
    "fast descent": nk.GradientDescent(1.7 / MOST),
    "40 steps": nk.GradientDescent(0.3 / MOST, steps=40),
    "40 fast steps": nk.GradientDescent(1.7 / MOST, steps=40),
    "flow": nk.GradientFlow(),
    "flow to 3": nk.GradientFlow(time=3.0),
    "direct": nk.DirectOptimization(),
    "least norm": nk.Ridge(0.0),
    "ridge": nk.Ridge(0.3),
}
SIZES = {"P > N": 6, "P = N": F, "P < N": 17}
EPS = (8e-3, 2e-3)
TOLERANCE = 0.05

# Random problems may have a large first correction; its warning has a test of its own.
pytestmark = pytest.mark.filterwarnings(r"ignore:\|z\^I\|")
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)


def measured_slopes(model, p, algorithm, expected, orders=(0, 1, 2), eps=EPS):
    """Of the error of each order, given the exact test outputs at each eps."""
    errors = [
        [
            np.linalg.norm(nk.solve(model(e), p.x, p.y, algorithm, order=order).predict(p.x_new).mean - z)
            for order in orders
        ]
        for e, z in zip(eps, expected, strict=True)
    ]
    return [slope(eps, column) for column in zip(*errors, strict=True)]


@every_algorithm
@pytest.mark.parametrize(
    ("size", "seed"),
    [(size, 1) for size in SIZES]
    + [pytest.param(size, seed, marks=pytest.mark.slow) for size in SIZES for seed in (2, 3)],
    ids=str,
)
def test_errors_fall_with_the_order(size, seed, algorithm):
    p = problem(SIZES[size], seed)
    exact = [exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0] for eps in EPS]
    assert measured_slopes(quadratic, p, algorithm, exact) == pytest.approx([1, 2, 3], abs=TOLERANCE)


@every_algorithm
def test_so_they_do_from_any_start_and_with_several_outputs(algorithm):
    p = problem(6, 4, outputs=2)
    start = 0.5 * np.random.default_rng(0).normal(size=(2, F))
    exact = [exact_outputs(trained(algorithm, p, eps, start), p.x_new, eps) for eps in EPS]
    found = measured_slopes(lambda eps: nk.expand(quadratic(eps, out_dim=2), start, 2), p, algorithm, exact)
    assert found == pytest.approx([1, 2, 3], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "start"),
    [("40 steps", 0.0)]
    + [pytest.param(*c, marks=pytest.mark.slow) for c in (("fast descent", 0.0), ("fast descent", 0.5))],
)
def test_so_they_do_for_cubic_models(name, start):
    p, algorithm = problem(6, 5), ALGORITHMS[name]
    w0 = start * np.random.default_rng(1).normal(size=(1, F))

    def model(eps):
        return nk.expand(cubic(eps), w0, 3) if start else cubic(eps)

    exact = []
    for eps in EPS:
        weights = trained(algorithm, p, eps, w0, model=cubic)
        exact.append(np.asarray(cubic(eps)(weights, p.x_new))[:, 0])
    assert measured_slopes(model, p, algorithm, exact) == pytest.approx([1, 2, 3], abs=TOLERANCE)


def test_each_output_has_its_own_weights():
    p = problem(6, 6, outputs=2)
    both = nk.solve(quadratic(0.01), p.x, p.y, order=2)
    for i in range(2):
        alone = nk.solve(quadratic(0.01), p.x, p.y[:, i], order=2)
        for term, own in zip(both.predict(p.x_new).terms, alone.predict(p.x_new).terms, strict=True):
            np.testing.assert_allclose(term[:, i], own, rtol=1e-10, atol=1e-14)
        for w, own in zip(both.weights, alone.weights, strict=True):
            np.testing.assert_allclose(w[i : i + 1], own, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ("fast descent", "least norm", "40 steps"))
def test_an_expanded_model_at_its_start_is_the_model_itself(name):
    p, algorithm = problem(6, 7, outputs=2), ALGORITHMS[name]
    here = nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=2).predict(p.x_new).terms
    there = nk.solve(nk.expand(quadratic(0.01, out_dim=2), np.zeros((2, F)), 2), p.x, p.y, algorithm, order=2)
    for one, other in zip(here, there.predict(p.x_new).terms, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ("descent", "flow"))
def test_any_time_of_one_solution_is_a_solution_at_that_time(name):
    p, algorithm = problem(6, 8), ALGORITHMS[name]
    solution = nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=1)
    for time in (0, 5, 5000):
        again = nk.solve(quadratic(0.01), p.x, p.y, algorithm.at(time), order=1)
        found, expected = solution.predict(p.x_new, time=time), again.predict(p.x_new)
        np.testing.assert_allclose(found.terms, expected.terms, atol=1e-13)
        np.testing.assert_allclose(solution.params(time), again.params(), atol=1e-13)
        np.testing.assert_allclose(solution.residual(time), again.residual(), atol=1e-13)
    np.testing.assert_allclose(found.terms, solution.predict(p.x_new).terms, atol=1e-8)
    assert not np.any(solution.predict(p.x_new, time=0).mean)


def test_the_record():
    p = problem(6, 9)
    solution = nk.solve(quadratic(0.01), p.x, p.y, ALGORITHMS["descent"], order=2)
    prediction = solution.predict(p.x_new)
    assert len(prediction.terms) == 3 and prediction.mean.shape == (4,)
    np.testing.assert_allclose(prediction.mean, sum(prediction.terms))
    first, second, third = solution.weights
    np.testing.assert_allclose(solution.params(), first + second + third)
    # the terms are the model's own, at the weights split by order
    x, e = p.x_new, 0.01
    bent = lambda u, v: np.einsum("nj,nj->n", np.asarray(psi(x, u)), np.broadcast_to(v, (4, F)))
    z_i = phi(x) @ second[0] + e / 2 * bent(first[0], first[0])
    z_ii = phi(x) @ third[0] + e * bent(first[0], second[0])
    np.testing.assert_allclose(prediction.terms, [phi(x) @ first[0], z_i, z_ii], atol=1e-14)
    np.testing.assert_allclose(
        prediction.correction, np.linalg.norm(z_i) / np.linalg.norm(phi(x) @ first[0]), rtol=1e-10
    )
    assert np.abs(solution.residual()).max() < 1e-7  # every order fits the data
    assert (
        solution.ok
        and solution.status == nk.StatusKind.converged
        and solution.rank == 6
        and solution.order == 2
    )
    assert solution.lambda_max == pytest.approx(MOST)
    assert sum(solution.passes.values()) > 0


def test_order_1_takes_as_many_terms_as_the_rank_formula_says():
    p = problem(6, 9)
    lr, least = 0.3 / MOST, 0.36
    ratio = (MOST / (1 - lr * MOST / 2)) / (least / (1 - lr * least / 2))
    expected = np.ceil(np.log(4 * ratio) * np.log(4e10) / np.pi**2)
    assert nk.solve(quadratic(1e-4), p.x, p.y, nk.GradientDescent(lr), order=1).sum_rank == expected
    assert nk.solve(quadratic(1e-4), p.x, p.y, nk.Ridge(0.0), order=1).sum_rank == 0


def test_without_curvature_strength_nothing_is_added():
    p = problem(6, 10)
    prediction = nk.solve(quadratic(0.0), p.x, p.y, order=2).predict(p.x_new)
    np.testing.assert_allclose(
        prediction.mean, nk.solve(nk.FeatureModel(phi), p.x, p.y).predict(p.x_new).mean
    )
    assert not np.any(prediction.terms[1:]) and prediction.correction == 0.0


# Singular kernels


def repeated(p, target):
    """The first point twice, the second time with another target."""
    return p._replace(x=np.concatenate([p.x, p.x[:1]]), y=np.append(p.y, target))


def dependent(p, target=None):
    """One more point, whose features, but not meta-features, are the mean of two others'."""
    row = p.x[:2].mean(axis=0)
    row[F:] = 1.0
    return p._replace(
        x=np.concatenate([p.x, [row]]), y=np.append(p.y, p.y[:2].mean() if target is None else target)
    )


@pytest.mark.parametrize("name", ("descent", "flow", "flow to 3", "direct", "least norm"))
@pytest.mark.parametrize(
    "shift", (pytest.param(0.0, marks=pytest.mark.slow), 1.0), ids=("same target", "two targets")
)
def test_a_point_may_be_given_twice(name, shift):
    once, algorithm = problem(5, 11, most=1.4), ALGORITHMS[name]
    p = repeated(once, once.y[0] + shift)
    if algorithm in (nk.DirectOptimization(), nk.Ridge(0.0)):  # rules without time see the mean target
        seen = once._replace(y=once.y + shift / 2 * (np.arange(5) == 0))
    else:
        seen = p
    exact = [exact_outputs(trained(algorithm, seen, eps), p.x_new, eps)[:, 0] for eps in EPS]
    assert measured_slopes(quadratic, p, algorithm, exact) == pytest.approx([1, 2, 3], abs=TOLERANCE)
    status = nk.solve(quadratic(1e-3), p.x, p.y, algorithm, order=1).status
    assert status.ok and "kernel of rank 5 < 6" in status.message


@pytest.mark.parametrize("name", ("descent", "flow", "least norm"))
@pytest.mark.parametrize("order", (1, 2))
def test_what_grows_without_bound_is_refused(name, order):
    p = dependent(problem(5, 11, most=1.4), target=1.0)
    with pytest.raises(
        ValueError, match=r"order 1 grows without bound.*6 outputs has rank 5.*other 6 of 11 .*Ridge"
    ):
        nk.solve(quadratic(0.01), p.x, p.y, ALGORITHMS[name], order=order)


@pytest.mark.parametrize("name", ("descent", "flow", "least norm"))
def test_if_order_0_fits_only_order_2_grows(name):
    p, algorithm = dependent(problem(5, 11, most=1.4)), ALGORITHMS[name]
    assert nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=1).ok
    with pytest.raises(ValueError, match="order 2 grows without bound"):
        nk.solve(quadratic(0.01), p.x, p.y, algorithm, order=2)


@pytest.mark.parametrize("name", ("40 steps", "flow to 3", "ridge"))
def test_but_not_at_a_finite_time_or_with_a_ridge(name):
    p, algorithm = dependent(problem(5, 11, most=1.4), target=1.0), ALGORITHMS[name]
    exact = [exact_outputs(trained(algorithm, p, eps), p.x_new, eps)[:, 0] for eps in EPS]
    assert measured_slopes(quadratic, p, algorithm, exact) == pytest.approx([1, 2, 3], abs=TOLERANCE)


def test_it_does_grow():
    """What the refusal says, measured: the first order at time t is linear in t."""
    p = dependent(problem(5, 11, most=1.4), target=1.0)
    solution = nk.solve(quadratic(0.01), p.x, p.y, nk.GradientFlow(time=1.0), order=1)
    sizes = [np.linalg.norm(solution.predict(p.x_new, time=t).terms[1]) for t in (1e3, 1e4)]
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize("size", SIZES)
def test_a_weak_ridge_is_no_ridge(size):
    p = problem(SIZES[size], 12)
    none = nk.solve(quadratic(0.01), p.x, p.y, nk.Ridge(0.0), order=2).predict(p.x_new).terms
    weak = nk.solve(quadratic(0.01), p.x, p.y, nk.Ridge(1e-9), order=2).predict(p.x_new).terms
    assert max(map(relative_error, weak, none)) < 1e-7


def test_features_that_vanish_on_the_data_leave_all_at_rest():
    p = problem(6, 13)
    blind = nk.QuadraticModel(lambda x: 0.0 * x[:, :F], psi, 0.1)
    for algorithm in (nk.GradientFlow(), nk.GradientFlow(1.0), nk.GradientDescent(0.1, steps=3)):
        assert not np.any(nk.solve(blind, p.x, p.y, algorithm, order=2).predict(p.x_new).terms)


# Size of the correction


def test_a_large_correction_warns():
    p = problem(6, 1)
    with pytest.warns(UserWarning, match=r"\|z\^I\|/\|z\^F\| = .*: the correction is not small.*simulate"):
        large = nk.solve(quadratic(0.2), p.x, p.y, order=1).predict(p.x_new)
    assert large.correction > 0.1
    small = nk.solve(quadratic(0.002), p.x, p.y, order=1).predict(p.x_new)
    assert small.correction == pytest.approx(large.correction / 100)
    assert nk.solve(quadratic(0.2), p.x, p.y).predict(p.x_new).correction is None


# Bad input


@pytest.mark.parametrize("eps", (0.0, 0.01))
@pytest.mark.parametrize("steps", (np.inf, 10))
def test_a_learning_rate_beyond_the_limit_is_a_status(eps, steps):
    p = problem(6, 0)
    solution = nk.solve(quadratic(eps), p.x, p.y, nk.GradientDescent(2.1 / MOST, steps=steps), order=1)
    assert not solution.ok and str(solution.status) == "diverges: lr = 0.525 exceeds 2/lambda_max = 0.5"
    assert np.isinf(solution.predict(p.x_new).mean).all() and np.isinf(solution.params()).all()
    assert np.isinf(solution.residual()).all()
    for ask in (solution.algorithm_projectors, lambda: solution.compressed_prediction(p.x_new)):
        with pytest.raises(ValueError, match=r"does not exist, since training diverges: lr = 0.525 exceeds"):
            ask()


@pytest.mark.parametrize(
    ("order", "error", "text"),
    (
        (3, ValueError, "`order` must be 0, 1 or 2; got 3"),
        (-1, ValueError, "`order` must be at least 0; got -1"),
        (1.5, TypeError, "`order` must be an integer; got 1.5"),
    ),
)
def test_other_orders_are_refused(order, error, text):
    p = problem(6, 0)
    with pytest.raises(error, match=text):
        nk.solve(quadratic(0.1), p.x, p.y, order=order)


@pytest.mark.parametrize("linear", (nk.FeatureModel(phi), nk.kernels.Linear()))
def test_linear_problems_have_order_0_only(linear):
    p = problem(6, 0)
    with pytest.raises(
        ValueError, match=r"`order` must be 0 for this problem, which is linear.*QuadraticModel"
    ):
        nk.solve(linear, p.x, p.y, order=1)
    with pytest.raises(ValueError, match="linear in its parameters"):
        nk.solve(nk.expand(quadratic(0.1), np.zeros((1, F)), 1), p.x, p.y, order=1)


def test_a_model_without_second_derivative_says_what_that_means():
    p = problem(6, 0)
    flat = nk.from_function(lambda w, x: jax.nn.relu(x[:, :3]) @ w)
    with pytest.raises(ValueError, match=r"second derivative of this model is zero: .*use order 0 .ReLU"):
        nk.solve(nk.expand(flat, np.ones((3, 1)), 2), p.x, p.y, order=1)
    with pytest.raises(ValueError, match="second derivative of this model is zero"):
        nk.solve(nk.QuadraticModel(phi, lambda x, u: 0.0 * x[:, :1] * u, 1.0), p.x, p.y, order=1)


def test_meta_features_may_live_on_few_inputs():
    p = problem(11, 0)
    x = np.concatenate([p.x[:, :F], p.x[:, F:] * (np.arange(11) == 10)[:, None]], axis=1)
    prediction = nk.solve(quadratic(0.001), x, p.y, order=1).predict(p.x_new)
    assert prediction.correction > 0


def test_relu_networks_learn_features_by_products_of_layers_only():
    p = problem(6, 0)
    net = nk.MLP(16, (4,), activation="relu")
    with pytest.raises(
        UserWarning, match=r"kinks, where its slope jumps: no order of the expansion.*between kinks"
    ):
        nk.solve(nk.expand(net, net.init(jax.random.key(0)), 2), p.x, p.y, nk.GradientFlow(0.1), order=1)


def test_a_second_derivative_that_is_not_finite_is_refused():
    p = problem(6, 0)
    root = nk.from_function(lambda w, x: x[:, :3] @ jnp.sqrt(jnp.abs(w)))
    with pytest.raises(ValueError, match="second derivative of this model is not finite at initialization"):
        nk.solve(nk.expand(root, np.zeros((3, 1)), 2), p.x, p.y, order=1)


def test_meta_features_must_be_symmetric():
    p = problem(6, 0)
    skew = nk.QuadraticModel(phi, lambda x, u: jnp.cos(x[:, :1]) * jnp.roll(u, 1), 0.1)
    with pytest.raises(
        ValueError, match=r"`psi\(x, u\)` must be symmetric, .* it gives .* and .*psi \+ psi\^T"
    ):
        nk.solve(skew, p.x, p.y, order=1)
    skewed = nk.models.CubicModel(phi, psi, lambda x, u, v: jnp.cos(x[:, :1]) * u * jnp.roll(v, 1), 0.1)
    with pytest.raises(ValueError, match=r"`Psi\(x, u, v\)` must be symmetric in all three indices"):
        nk.solve(skewed, p.x, p.y, order=2)


@pytest.mark.parametrize(
    ("algorithm", "text"),
    (
        (nk.GradientDescent(0.1, momentum=0.5), "`momentum` must be 0 beyond order 0; got 0.5"),
        (nk.GradientFlow(friction=1.0), "`friction` must be None beyond order 0; got 1.0"),
    ),
)
def test_inertia_is_refused(algorithm, text):
    p = problem(6, 0)
    with pytest.raises(ValueError, match=text):
        nk.solve(quadratic(0.1), p.x, p.y, algorithm, order=1)


def test_other_losses_are_refused():
    p = problem(6, 0, outputs=2)
    with pytest.raises(ValueError, match="`order` must be 0 for losses other than 'squared'; got 1"):
        one_hot = np.eye(2)[np.arange(6) % 2]
        nk.solve(quadratic(0.1), p.x, one_hot, nk.GradientFlow(1.0), order=1, loss="cross_entropy")


def test_bad_arguments_of_a_solution_are_named():
    p = problem(6, 0)
    solution = nk.solve(quadratic(0.001), p.x, p.y, nk.DirectOptimization(), order=1)
    with pytest.raises(ValueError, match="`x_new` has 3 features per row; 16 expected"):
        solution.predict(p.x_new[:, :3])
    with pytest.raises(ValueError, match="`time` is not defined for DirectOptimization"):
        solution.predict(p.x_new, time=1.0)
    with pytest.raises(ValueError, match="`x1` has 3 features per row; 16 expected"):
        solution.effective_kernel(p.x_new[:, :3], p.x)
    with pytest.raises(ValueError, match="`kernel` must be one of 'flat', 'trained'; got 'flot'"):
        solution.compressed_prediction(p.x_new, "flot")
    with pytest.raises(
        ValueError, match="`x_test` and `y_test` must have the same number of rows; got 4 and 3"
    ):
        solution.feature_learning(p.x_new, np.zeros(3))
    with pytest.raises(ValueError, match="`y` has 2 outputs per row; the model has 1"):
        nk.solve(nk.expand(quadratic(0.1), np.zeros((1, F)), 2), p.x, np.zeros((6, 2)), order=1)
