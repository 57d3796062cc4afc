"""What the algorithm prefers among all solutions: diagonal networks and separable data."""

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import nearkernel as nk

D = nk.dynamics
RNG = np.random.default_rng(2)
X = RNG.normal(size=(7, 16))
TRUTH = np.zeros(16)
TRUTH[[3, 11]] = 1.5, -0.8
Y = X @ TRUTH
SHAPE = RNG.uniform(0.5, 1.5, 16)


@pytest.mark.parametrize(
    "alpha", [*(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (0.01, 0.1)), 1.0, 10.0]
)
def test_gradient_flow_ends_at_the_minimum_of_the_potential(alpha):
    beta = nk.theory.implicit_minimizer(X, Y, alpha, SHAPE)
    net = nk.theory.DiagonalNetwork(16, alpha, SHAPE)
    run = nk.simulate(net, net.init(), X, Y, nk.GradientFlow(), tol=1e-8)
    assert run.status == nk.StatusKind.converged
    assert np.abs(net.weights(run.params) - beta).max() < 1e-6
    np.testing.assert_allclose(X @ beta, Y, atol=1e-10)
    np.testing.assert_allclose(run.params["plus"] * run.params["minus"], (alpha * SHAPE) ** 2, rtol=1e-6)


def test_the_minimizer_is_stationary_and_lower_than_other_interpolators():
    for alpha in (1e-3, 0.3, 30.0):
        beta = nk.theory.implicit_minimizer(X, Y, alpha, SHAPE)
        force = np.arcsinh(beta / (2 * (alpha * SHAPE) ** 2))  # the gradient of Q must lie in the rows of X
        coefficients = np.linalg.lstsq(X.T, force, rcond=None)[0]
        assert np.abs(X.T @ coefficients - force).max() < 1e-8 * np.abs(force).max()
        null = np.linalg.svd(X)[2][7:]
        lowest = nk.theory.implicit_potential(beta, alpha, SHAPE)
        for _ in range(5):
            other = beta + 0.1 * null.T @ RNG.normal(size=9)
            assert nk.theory.implicit_potential(other, alpha, SHAPE) > lowest


def test_a_large_start_is_weighted_least_squares():
    beta = nk.theory.implicit_minimizer(X, Y, 1e3, SHAPE)
    weighted = X * SHAPE**2
    np.testing.assert_allclose(beta, weighted.T @ np.linalg.solve(weighted @ X.T, Y), atol=1e-10)
    limit = 0.25 * np.sum((beta / SHAPE) ** 2)
    assert 1e6 * nk.theory.implicit_potential(beta, 1e3, SHAPE) == pytest.approx(limit, rel=1e-9)


def test_a_small_start_is_sparse_but_slowly():
    """Q / log(1/alpha^2) tends to |beta|_1 like 1/log; the minimizer to that of the L1 norm."""
    sparse = linprog(np.ones(32), A_eq=np.hstack([X, -X]), b_eq=Y, bounds=(0, None)).x
    sparse = sparse[:16] - sparse[16:]
    errors, ratios = [], []
    for alpha in (1e-2, 1e-4, 1e-8, 1e-16):
        beta = nk.theory.implicit_minimizer(X, Y, alpha)
        errors.append(np.abs(beta - sparse).max())
        ratios.append(nk.theory.implicit_potential(beta, alpha) / np.log(alpha**-2) / np.abs(beta).sum())
    assert (np.diff(errors) < 0).all() and errors[-1] < 1e-3
    assert (np.diff(ratios) > 0).all() and 0.9 < ratios[-1] < 1
    missing = (1 - np.array(ratios)) * np.log([1e2, 1e4, 1e8, 1e16])
    assert missing[-1] == pytest.approx(missing[-2], rel=0.01)


def test_weights_that_start_at_zero_stay():
    shape = SHAPE.copy()
    shape[:4] = 0.0
    beta = nk.theory.implicit_minimizer(X, Y, 0.1, shape)
    assert (beta[:4] == 0).all()
    np.testing.assert_allclose(X @ beta, Y, atol=1e-10)
    np.testing.assert_array_equal(nk.theory.implicit_minimizer(X, 0 * Y, 0.1), np.zeros(16))
    np.testing.assert_array_equal(
        nk.theory.implicit_minimizer(X, Y, 0.2, 2.0),
        nk.theory.implicit_minimizer(X, Y, 0.2, np.full(16, 2.0)),
    )


W_TRUE = RNG.normal(size=5)
POINTS = RNG.normal(size=(40, 5))
LABELS = np.sign(POINTS @ W_TRUE)
POINTS = POINTS + 0.3 * LABELS[:, None] * W_TRUE
SIGNED = POINTS * LABELS[:, None]


def test_the_maximum_margin_satisfies_its_optimality_conditions_and_is_that_of_an_svm():
    from sklearn.svm import SVC

    found = nk.theory.max_margin(POINTS, LABELS)
    margins = SIGNED @ found.w
    assert margins.min() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(margins[found.support], 1.0, atol=1e-12)
    np.testing.assert_allclose(SIGNED.T @ found.dual, found.w, atol=1e-12)
    assert (found.dual >= 0).all() and (found.dual[found.support] > 0).all() and found.dual.sum() > 0
    assert found.margin == pytest.approx(1 / np.linalg.norm(found.w))
    np.testing.assert_allclose(
        np.exp(-SIGNED[found.support] @ found.offset), found.dual[found.support], rtol=1e-10
    )
    mirrored = np.vstack([POINTS, -POINTS]), np.concatenate([LABELS, -LABELS])  # makes the best bias 0
    machine = SVC(kernel="linear", C=1e8, tol=1e-10).fit(*mirrored)
    np.testing.assert_allclose(machine.coef_[0], found.w, rtol=1e-5)
    scaled = nk.theory.max_margin(1e-3 * POINTS, LABELS)
    np.testing.assert_allclose(scaled.w, 1e3 * found.w, rtol=1e-10)


def test_two_points_are_separated_half_way_between_them():
    found = nk.theory.max_margin([[3.0, 0.0], [5.0, 2.0]], [-1, 1], bias=True)
    np.testing.assert_allclose([found.margin, *found.w, found.b], [2**0.5, 0.5, 0.5, -2.5], rtol=1e-12)
    assert found.offset is None and nk.theory.max_margin(POINTS, LABELS).b == 0
    with pytest.raises(
        ValueError, match=r"separable by `labels` through the origin: there is no margin. Try `bias=True`"
    ):
        nk.theory.max_margin([[1.0], [2.0]], [-1, 1])


@pytest.mark.parametrize("seed", range(8))
def test_the_maximum_margin_with_a_bias_is_that_of_an_svm(seed):
    """Optimality to rounding, and scikit-learn's machine to its own accuracy, in several units and off the origin."""
    from sklearn.svm import SVC

    rng = np.random.default_rng(seed)
    d, n, unit = (2, 5, 20)[seed % 3], (12, 60)[seed % 2], (1.0, 1e-3, 1e3)[seed % 3]
    points, normal = rng.normal(size=(n, d)), rng.normal(size=d)
    labels = np.where(points @ normal > 0.3, 1, 0)
    points = unit * (points + 0.05 * (2 * labels - 1)[:, None] * normal + 7.0)
    found = nk.theory.max_margin(points, labels, bias=True)
    signs = 2 * labels - 1
    margins = signs * (points @ found.w + found.b)
    assert margins.min() > 1 - 1e-9
    np.testing.assert_allclose(margins[found.support], 1.0, atol=1e-8)
    np.testing.assert_allclose((signs * found.dual) @ points, found.w, atol=1e-8 * np.abs(found.w).max())
    assert (found.dual >= 0).all() and abs(signs @ found.dual) < 1e-9 * found.dual.sum()
    machine = SVC(kernel="linear", C=1e10, tol=1e-10).fit((points - points.mean(0)) / unit, labels)
    np.testing.assert_allclose(
        found.w * unit, machine.coef_[0], rtol=1e-5, atol=1e-5 * np.abs(machine.coef_).max()
    )
    ones = nk.theory.max_margin(np.column_stack([points, np.full(n, unit)]), labels)
    assert found.margin > (1 - 1e-9) / np.linalg.norm(ones.w[:-1])


@pytest.mark.parametrize("loss", ["exponential", pytest.param("logistic", marks=pytest.mark.slow)])
def test_weights_grow_with_the_logarithm_of_time_along_the_maximum_margin(loss):
    path = nk.theory.margin_flow(POINTS, LABELS, [20.0, 500.0, 1000.0, 2000.0], loss)
    limit = path.limit
    assert path.ok
    # w - w_hat log t settles, to exp(-y x.w_tilde) = a on the support; slowly, by a point that almost supports.
    settled = path.w - path.log_time[:, None] * limit.w
    np.testing.assert_allclose(settled[-1], settled[-2], atol=1e-4)
    np.testing.assert_allclose(
        np.exp(-SIGNED[limit.support] @ settled[-1]), limit.dual[limit.support], rtol=1e-3
    )
    for quantity in (path.direction_error, path.margin_gap):
        slope = np.diff(np.log(quantity[-2:])) / np.diff(np.log(path.log_time[-2:]))
        assert slope == pytest.approx(-1.0, abs=0.01)


def test_with_one_support_vector_the_margin_closes_twice_as_fast():
    points = RNG.normal(size=(40, 5)) + 5 * np.eye(5)[0]
    points[0] = np.eye(5)[0]
    path = nk.theory.margin_flow(points * LABELS[:, None], LABELS, [100.0, 200.0, 400.0, 800.0])
    np.testing.assert_array_equal(path.limit.support, [0])
    slope = np.diff(np.log(path.margin_gap)) / np.log(2)
    assert slope[-1] == pytest.approx(-2.0, abs=0.02)


def test_margin_flow_is_gradient_descent_with_small_steps():
    """Plain steps on the exponential loss to time 20."""
    w, lr = np.zeros(5), 1e-3
    for _ in range(20000):
        w = w + lr * SIGNED.T @ np.exp(-SIGNED @ w)
    path = nk.theory.margin_flow(POINTS, LABELS, [1.0, 2.0, 3.0, np.log(21.0)])
    np.testing.assert_allclose(path.w[-1], w, atol=3e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.implicit_minimizer(X.T, np.ones(16), 1.0), "`x` cannot interpolate `y`"),
        (lambda: nk.theory.implicit_minimizer(X, Y, 0.0), "`alpha` must be greater than 0"),
        (lambda: nk.theory.implicit_minimizer(X, Y, 1.0, np.ones(3)), "`theta0` must have shape \\(16,\\)"),
        (
            lambda: nk.theory.implicit_minimizer(X, Y, 1.0, np.zeros(16)),
            "`theta0` is 0: no weight would move",
        ),
        (
            lambda: nk.theory.implicit_minimizer(X, Y[:3], 1.0),
            "`x` and `y` must have the same number of rows",
        ),
        (
            lambda: nk.theory.implicit_potential(np.ones(2), 1.0, np.array([0.0, 1.0])),
            "`beta` must be 0 wherever `theta0` is 0",
        ),
        (lambda: nk.theory.implicit_potential(np.ones((2, 2)), 1.0), "`beta` must be a vector"),
        (lambda: nk.theory.max_margin(POINTS, -LABELS * RNG.choice([1, -1], 40)), "not linearly separable"),
        (
            lambda: nk.theory.max_margin(POINTS, RNG.choice([1, -1], 40), bias=True),
            "separable by `labels`: there is no margin",
        ),
        (
            lambda: nk.theory.max_margin(np.ones((2, 3)), [0, 1], bias=True),
            "separable by `labels`: there is no margin",
        ),
        (
            lambda: nk.theory.max_margin(POINTS, LABELS[:3], bias=True),
            "`labels` must have shape \\(40,\\), one class per",
        ),
        (lambda: nk.theory.max_margin(POINTS, np.ones(40)), "`labels` must have two values; all are"),
        (lambda: nk.theory.max_margin(POINTS, np.arange(40)), "`labels` must have two values; got 40"),
        (lambda: nk.theory.max_margin(POINTS, LABELS[:3]), "`labels` must have shape \\(40,\\)"),
        (lambda: nk.theory.max_margin(0 * POINTS, LABELS), "`x` is 0 everywhere"),
        (
            lambda: nk.theory.margin_flow(POINTS, LABELS, [2.0, 1.0]),
            "`log_time` must be an increasing vector",
        ),
        (lambda: nk.theory.margin_flow(POINTS, LABELS, [1.0], "hinge"), "`loss` must be one of"),
        (lambda: nk.theory.DiagonalNetwork(3, -1.0), "`alpha` must be greater than 0"),
        (lambda: nk.theory.DiagonalNetwork(3, 1.0, np.ones(2)), "`theta0` must have shape \\(3,\\)"),
        (
            lambda: nk.theory.DiagonalNetwork(3)({"plus": np.ones(3), "minus": np.ones(3)}, np.ones((2, 4))),
            "`x` has 4",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_diagonal_network_starts_at_zero_output():
    net = nk.theory.DiagonalNetwork(16, 0.3)
    assert np.abs(net(net.init(jax.random.key(0)), X)).max() == 0
