"""Features from one gradient step: the step itself, the directions it finds, and the head by two roads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.features.last_layer import RidgeHead

KEY = jax.random.key(0)


def problem(d=8, n=600, seed=0, terms=None):
    """(target, x, y) with a constant, a linear part and two directions."""
    rng = np.random.default_rng(seed)
    u = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    terms = terms or {(0, 0): 2.0, (1, 0): 0.5, (2, 0): 0.5, (0, 2): -0.4, (2, 2): 0.3}
    target = nk.theory.MultiIndexPolynomial(u, terms)
    x = rng.normal(size=(n, d))
    return target, x, target(x)


TARGET, X, Y = problem()
NEW = np.random.default_rng(9).normal(size=(7, 8))


def test_the_step_is_that_of_automatic_differentiation_with_weight_decay():
    found = nk.theory.one_step_features(X, Y, 20, KEY, lr=0.7)
    rest = Y - found.removed(X)[:, 0]

    def loss(w):
        return jnp.mean((jax.nn.relu(X @ w.T) @ found.signs[:, 0] - rest) ** 2)

    with jax.enable_x64(True):
        start = jnp.asarray(found.start)
        assert float(jnp.abs(jax.nn.relu(X @ start.T) @ found.signs[:, 0]).max()) < 1e-12
        gradient = np.asarray(jax.grad(loss)(start))
    moved = found.start - found.lr * (gradient + found.weight_decay * found.start)
    np.testing.assert_allclose(found.weights, moved, atol=1e-12)


def test_neurons_are_paired_and_constant_and_linear_part_are_gone():
    found = nk.theory.one_step_features(X, Y, 20, KEY)
    np.testing.assert_array_equal(found.start, found.start[::-1])  # partner of j is m + 1 - j
    np.testing.assert_array_equal(found.signs, -found.signs[::-1])
    rest = Y - found.removed(X)[:, 0]
    assert abs(rest.mean()) < 1e-12 and np.abs(rest @ X).max() < 1e-9
    assert np.mean((X @ found.weights.T) ** 2) == pytest.approx(0.25)
    assert len(np.unique(found.biases)) == 20


def test_neither_units_nor_planes_added_to_the_target_change_the_default_features():
    one = nk.theory.one_step_features(X, Y, 20, KEY)
    other = nk.theory.one_step_features(X, 100 * Y + 3 - X @ np.arange(8.0), 20, KEY)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-10)
    shrunk = nk.theory.one_step_features(0.01 * X, Y, 20, KEY)
    np.testing.assert_allclose(one(X), shrunk(0.01 * X), atol=1e-10)


def test_the_gradient_tends_to_its_formula_and_the_estimate_to_the_hessian():
    target, x, y = problem(d=6, n=200_000, seed=2)
    found = nk.theory.one_step_features(x, y, 12, KEY, lr=1.0, subspace=target.directions)
    expected = -nk.theory.first_gradient(target.nonlinear(), found.start, found.signs[:, 0])
    rest = target.nonlinear()(x)[:, None]
    for row, neuron, a, mean in zip(found.weights, found.start, found.signs[:, 0], expected, strict=True):
        # What the fit of a plane to noise adds: E[x 1(w.x > 0)] = w/(|w| sqrt(2 pi)), E[x x^T 1(w.x > 0)] = 1/2.
        plane = neuron / np.linalg.norm(neuron) / np.sqrt(2 * np.pi) + x / 2
        terms = 2 * a * rest * ((x @ neuron > 0)[:, None] * x - plane)
        assert (np.abs(row - mean) < 4 * terms.std(axis=0) / np.sqrt(len(x))).all()
    assert np.abs(found.hessian - target.hessian).max() < 0.03
    assert found.overlap == found.overlap_with(target.directions) > 0.95


def test_the_step_turns_all_neurons_into_the_subspace_only_where_the_hessian_sees_it():
    """Without an average Hessian only noise points there: its share is (2k + 1)/(2k + d) for He_k, as y^2 sees it."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 32))
    for k, low, high in ((2, 0.6, 1.0), (4, 0.1, 0.4)):
        target = nk.theory.MultiIndexPolynomial(np.eye(1, 32, 5), {(k,): 0.3})
        assert target.hessian.any() == (k == 2)
        found = nk.theory.one_step_features(x, target(x), 100, KEY, subspace=target.directions)
        assert low < found.share < high
    half, x, y = problem(d=12, n=4000, terms={(2, 0): 0.5, (0, 4): 0.1})  # H sees one of two directions
    found = nk.theory.one_step_features(x, y, 100, KEY)
    assert found.overlap_with(half.directions[:1]) > 0.95 and half.kappa == np.inf


@pytest.mark.parametrize("n", [600, 15])  # more and fewer points than neurons
@pytest.mark.parametrize("ridge", [0.5, 0.0])
def test_the_head_is_solve_with_the_kernel_of_the_features(n, ridge):
    features = nk.theory.one_step_features(X[:n], Y[:n], 20, KEY)
    found = features.fit(X[:n], Y[:n], ridge)
    kernel = nk.kernels.FeatureKernel(lambda x: jax.nn.relu(x @ features.weights.T + features.biases))
    solution = nk.solve(kernel, X[:n], Y[:n] - features.removed(X[:n])[:, 0], nk.Ridge(ridge))
    expected = solution.predict(NEW).mean + features.removed(NEW)[:, 0]
    np.testing.assert_allclose(found.predict(NEW), expected, rtol=1e-7)


def test_gradient_descent_ends_at_the_closed_form():
    features = nk.theory.one_step_features(X, Y, 20, KEY)
    exact, steps = (features.fit(X, Y, 5.0, descent) for descent in (False, True))
    assert str(exact.status) == "closed form" and "converged after" in steps.status.message
    assert exact.status.kind is steps.status.kind is nk.StatusKind.converged
    np.testing.assert_allclose(steps.head, exact.head, atol=1e-7)
    np.testing.assert_allclose(steps.predict(NEW), exact.predict(NEW), atol=1e-7)
    few = nk.theory.one_step_features(X[:15], Y[:15], 20, KEY)
    exact, steps = (few.fit(X[:15], Y[:15], 1.0, descent) for descent in (False, True))
    np.testing.assert_allclose(steps.head, exact.head, atol=1e-7)


def test_a_faint_ridge_holds_also_where_features_hardly_vary():
    """Eigenvalues far below the rounding of the largest still carry weight against a small ridge."""
    found = RidgeHead(np.diag([1e8, 1.0, 1e-3]), np.ones((3, 1)))
    np.testing.assert_allclose(
        found.exact(1e-6)[:, 0], [1e-8, 1 / (1 + 1e-6), 1e-3 / (1e-6 + 1e-6)], rtol=1e-6
    )


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_finite_steps_are_the_filter_of_the_algorithm(momentum):
    """From a_0, t steps leave p(lam + ridge) of a_0 and add g(lam + ridge) F^T y."""
    features = nk.theory.one_step_features(X, Y, 20, KEY)
    F, y, ridge = features(X), Y - features.removed(X)[:, 0], 3.0
    lam, basis = np.linalg.eigh(F.T @ F + ridge * np.eye(20))
    descent = nk.GradientDescent(0.8 / lam[-1], steps=40, momentum=momentum)
    found = features.fit(X, Y, ridge, descent)
    learned = descent.filter(lam)[:, None] * (basis.T @ (F.T @ y[:, None]))
    expected = basis @ (learned + descent.decay(lam)[:, None] * (basis.T @ features.signs))
    np.testing.assert_allclose(found.head, expected, atol=1e-9)
    assert str(found.status) == "stopped at step 40" and found.ok


def test_divergence_is_a_value():
    features = nk.theory.one_step_features(X, Y, 20, KEY)
    found = features.fit(X, Y, 1.0, nk.GradientDescent(10.0))
    assert not found.ok and "diverges: lr = 10 exceeds" in found.status.message
    assert np.isinf(found.predict(NEW)).all()


def test_several_outputs_share_the_features():
    both = np.column_stack([Y, X[:, 0] ** 2])
    found = nk.theory.one_step_features(X, both, 20, KEY)
    assert found.hessian.shape == (2, 8, 8) and found.signs.shape == (20, 2)
    assert found.fit(X, both, 0.1).predict(NEW).shape == (7, 2)
    np.testing.assert_allclose(
        found.hessian[0], nk.theory.one_step_features(X, Y, 20, KEY).hessian, atol=1e-13
    )


def test_a_linear_target_leaves_nothing_to_learn():
    found = nk.theory.one_step_features(X, X @ np.arange(8.0) + 1, 20, KEY)
    assert not found.weights.any() and not found.hessian.any()
    np.testing.assert_allclose(
        found.fit(X, X @ np.arange(8.0) + 1, 0.1).predict(NEW), NEW @ np.arange(8.0) + 1
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.one_step_features(X, Y, 21),
            "`width` must be even, because neurons come in pairs; got 21",
        ),
        (lambda: nk.theory.one_step_features(X, Y, 20, 3.5), "`key` must be a key such as .* got 3.5"),
        (lambda: nk.theory.one_step_features(X, Y, 0), "`width` must be at least 2"),
        (
            lambda: nk.theory.one_step_features(X, Y[:3]),
            "`x` and `y` must have the same number of rows; got 600 and 3",
        ),
        (lambda: nk.theory.one_step_features(X, Y, 20, lr=-1.0), "`lr` must be greater than 0"),
        (
            lambda: nk.theory.one_step_features(X, Y, 20, subspace=np.ones((2, 3))),
            "`subspace` has 3 features per row; 8",
        ),
        (lambda: nk.theory.one_step_features(np.full((2, 2), np.nan), [1, 2]), "`x` holds 4 NaN"),
        (lambda: nk.theory.one_step_features(X, Y, 20).fit(X, Y, -1.0), "`ridge` must be at least 0"),
        (
            lambda: nk.theory.one_step_features(X, Y, 20).fit(X, Y, 1.0, "gd"),
            "`descent` must be True, False or",
        ),
        (
            lambda: nk.theory.one_step_features(X, Y, 20).directions(9),
            "`count` must be at most the number of features, 8",
        ),
        (
            lambda: nk.theory.one_step_features(X, Y, 20).fit(X, Y, 1.0).predict(X[:, :2]),
            "`x_new` has 2 features",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
