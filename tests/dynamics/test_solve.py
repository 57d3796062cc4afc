"""`solve` against dense linear algebra and against training for real."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(11)
X, Y, NEW = RNG.normal(size=(17, 6)), RNG.normal(size=(17, 3)), RNG.normal(size=(5, 6))
KERNEL = nk.kernels.RBF(2.5)


def features(x):
    return jnp.concatenate([x, jnp.sin(x), x**2], axis=1)


@pytest.mark.parametrize(
    "algorithm", [nk.GradientFlow(), nk.GradientDescent(0.01), nk.DirectOptimization(), nk.Ridge(0)]
)
def test_the_end_of_training_is_the_kernel_interpolant(algorithm):
    expected = KERNEL(NEW, X) @ np.linalg.solve(KERNEL(X), Y)
    solution = nk.solve(KERNEL, X, Y, algorithm)
    np.testing.assert_allclose(solution.predict(NEW).mean, expected, atol=1e-10)
    np.testing.assert_allclose(solution.residual(), 0.0, atol=1e-10)
    assert solution.ok and solution.status == nk.StatusKind.converged and solution.cutoff == 0.0


def test_ridge_is_kernel_ridge_regression():
    from sklearn.kernel_ridge import KernelRidge

    rival = KernelRidge(alpha=0.3, kernel="rbf", gamma=1 / (2 * 2.5**2)).fit(X, Y)
    np.testing.assert_allclose(
        nk.solve(KERNEL, X, Y, nk.Ridge(0.3)).predict(NEW).mean, rival.predict(NEW), atol=1e-12
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.GradientDescent(lr=0.12, steps=60),
        nk.GradientDescent(lr=0.12, steps=61, momentum=0.6),
        nk.GradientFlow(time=7.0),
        pytest.param(nk.GradientFlow(time=4.0, friction=0.7), marks=pytest.mark.slow),
    ],
)
def test_training_an_expanded_network_for_real_equals_solving_it(algorithm):
    net = nk.MLP(6, (3,), 2, "tanh", weight_var=1.3, bias_var=0.2)
    theta = net.init(jax.random.key(3))
    linear = nk.expand(net, theta, degree=1)
    x, y = X[:9], Y[:9, :2]
    run = nk.simulate(linear, theta, x, y, algorithm)
    solution = nk.solve(linear, x, y, algorithm)
    assert run.ok
    np.testing.assert_allclose(solution.predict(NEW).mean, linear(run.params, NEW), atol=1e-9)
    for ours, real in zip(jax.tree.leaves(solution.params()), jax.tree.leaves(run.params), strict=True):
        np.testing.assert_allclose(ours, real, atol=1e-9)


@pytest.mark.parametrize("n", [8, 17])  # 18 features: more, then about as many, as points
@pytest.mark.parametrize("algorithm", [nk.GradientDescent(0.002, 400), nk.GradientFlow(0.3), nk.Ridge(0.1)])
def test_feature_models_are_their_kernel(n, algorithm):
    model, kernel = nk.FeatureModel(features), nk.kernels.FeatureKernel(features)
    ours, theirs = (
        nk.solve(problem, X[:n], Y[:n], algorithm).predict(NEW).mean for problem in (model, kernel)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_fewer_features_than_points_projects_and_says_so():
    n = 60
    x, y = RNG.normal(size=(n, 3)), RNG.normal(size=n)
    solution = nk.solve(nk.FeatureModel(lambda z: jnp.concatenate([z, z**2], 1)), x, y, nk.GradientFlow())
    phi = np.concatenate([x, x**2], 1)
    weights = np.linalg.lstsq(phi, y, rcond=None)[0]
    np.testing.assert_allclose(solution.params()[0], weights, atol=1e-10)
    np.testing.assert_allclose(solution.residual(), phi @ weights - y, atol=1e-10)
    assert solution.rank == 6 and solution.cutoff > 0 and "rank 6 < 60" in solution.status.message


def test_repeated_rows_use_the_pseudo_inverse():
    x, y = np.vstack([X, X[:4]]), np.vstack([Y, Y[:4] + 1.0])
    solution = nk.solve(KERNEL, x, y, nk.GradientFlow())
    matrix = KERNEL(x)
    expected = KERNEL(NEW, x) @ np.linalg.pinv(matrix, hermitian=True) @ y
    np.testing.assert_allclose(solution.predict(NEW).mean, expected, atol=1e-8)
    assert solution.rank == 17 and "rank 17 < 21" in solution.status.message
    assert solution.status == nk.StatusKind.singular and solution.ok


@pytest.mark.parametrize(
    "algorithm", [nk.Ridge(1e-14), nk.GradientFlow(1e15), nk.GradientDescent(0.1, steps=10**17)]
)
def test_long_times_do_not_amplify_the_rounding_of_a_singular_kernel(algorithm):
    x = np.repeat(X[:10], 2, axis=0)
    y = np.arange(20.0)
    found = nk.solve(KERNEL, x, y, algorithm).predict(NEW).mean
    np.testing.assert_allclose(found, nk.solve(KERNEL, x, y, nk.Ridge(0)).predict(NEW).mean, atol=1e-6)


def test_the_solution_keeps_its_own_copy_of_the_data():
    x = X.copy()
    solution = nk.solve(KERNEL, x, Y)
    before = solution.predict(NEW).mean
    x += 1.0
    np.testing.assert_array_equal(solution.predict(NEW).mean, before)


def test_one_factor_serves_all_times():
    solution = nk.solve(KERNEL, X, Y[:, 0], nk.GradientFlow())
    for time in (0.0, 0.3, 50.0, np.inf):
        fresh = nk.solve(KERNEL, X, Y[:, 0], nk.GradientFlow(time))
        np.testing.assert_allclose(solution.predict(NEW, time).mean, fresh.predict(NEW).mean, atol=1e-9)
    np.testing.assert_array_equal(solution.predict(NEW, 0.0).mean, 0.0)
    assert solution.predict(NEW).mean.shape == (5,)  # y was a vector


def test_a_rate_beyond_the_limit_is_a_status_that_names_the_limit():
    lam = np.linalg.eigvalsh(KERNEL(X))[-1]
    solution = nk.solve(KERNEL, X, Y, nk.GradientDescent(lr=2.2 / lam))
    assert not solution.ok and f"exceeds 2/lambda_max = {2 / lam:.6g}" in solution.status.message
    assert not np.isnan(solution.predict(NEW).mean).any()
    finite = nk.solve(KERNEL, X, Y, nk.GradientDescent(lr=2.2 / lam, steps=5))
    assert finite.status == nk.StatusKind.diverged and np.isfinite(finite.predict(NEW).mean).all()
    assert nk.solve(KERNEL, X, Y, nk.GradientDescent(lr=1.9 / lam)).ok


def test_lambda_max_is_the_largest_eigenvalue():
    x = RNG.normal(size=(150, 4))
    solution = nk.solve(nk.kernels.Laplace(1.0), x, x[:, 0], nk.Ridge(0.1))
    assert solution.lambda_max == pytest.approx(np.linalg.eigvalsh(nk.kernels.Laplace(1.0)(x))[-1], rel=1e-9)


@pytest.mark.parametrize(
    "algorithm", [nk.GradientFlow(3.0), nk.GradientDescent(0.05, 80), nk.GradientDescent(0.05, 80, 0.7)]
)
def test_cross_entropy_in_function_space_is_training_the_linear_model(algorithm):
    labels = np.eye(3)[RNG.integers(0, 3, 17)]
    model = nk.FeatureModel(features, out_dim=3)
    run = nk.simulate(model, np.zeros((3, 18)), X, labels, algorithm, loss="cross_entropy")
    solution = nk.solve(model, X, labels, algorithm, loss="cross_entropy")
    np.testing.assert_allclose(solution.predict(NEW).mean, model(run.params, NEW), atol=2e-6)
    assert solution.ok


def test_the_squared_loss_written_as_a_function_agrees_with_its_closed_form():
    custom = nk.solve(
        KERNEL, X, Y, nk.GradientFlow(2.0, friction=0.5), loss=lambda z, y: 0.5 * jnp.sum((z - y) ** 2)
    )
    closed = nk.solve(KERNEL, X, Y, nk.GradientFlow(2.0, friction=0.5))
    np.testing.assert_allclose(custom.predict(NEW).mean, closed.predict(NEW).mean, atol=1e-7)
    np.testing.assert_allclose(custom.predict(NEW, 1.0).mean, closed.predict(NEW, 1.0).mean, atol=1e-7)


def test_many_times_and_algorithms_share_one_kernel():
    solution = nk.solve(KERNEL, X, Y, nk.GradientFlow())
    times = [0.0, 0.3, 2.0]
    many = solution.predict(NEW, times).mean
    assert many.shape == (3, len(NEW), Y.shape[1])
    for time, each in zip(times, many, strict=True):
        np.testing.assert_allclose(each, solution.predict(NEW, time).mean, atol=1e-12)
    np.testing.assert_allclose(solution.residual(times)[0], -Y, atol=1e-12)
    rates = [0.01, 0.03, 1e3]
    swept = solution.predict_each(NEW, [nk.GradientDescent(lr) for lr in rates] + [nk.Ridge(0.1)])
    for lr, each in zip(rates, swept, strict=False):
        np.testing.assert_allclose(
            each, nk.solve(KERNEL, X, Y, nk.GradientDescent(lr)).predict(NEW).mean, rtol=1e-5, atol=1e-8
        )
    assert np.isinf(swept[2]).all()  # beyond the limit
    np.testing.assert_allclose(swept[3], nk.solve(KERNEL, X, Y, nk.Ridge(0.1)).predict(NEW).mean, atol=1e-9)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.solve(KERNEL, X, Y[:5]), "`x` and `y` must have the same number of rows; got 17 and 5"),
        (
            lambda: nk.solve(KERNEL, X[:, 0], Y),
            r"`x` must have shape \(n, d\); got \(17,\); for one feature pass",
        ),
        (lambda: nk.solve(KERNEL, X, Y, nk.Adam(0.1, 3)), "`algorithm` must be one that can be solved"),
        (lambda: nk.solve(KERNEL, X, Y, 0.1), "`algorithm` must be one that can be solved.*got float"),
        (lambda: nk.solve(KERNEL, X, Y, order=1), "`order` must be 0"),
        (lambda: nk.solve(nk.MLP(6), X, Y), r"expand yours: nk.solve\(nk.expand\(model, params\)"),
        (lambda: nk.solve("rbf", X, Y), "`problem` must be a kernel or a model; got 'rbf'"),
        (
            lambda: nk.solve(KERNEL, X, Y, loss="hinge"),
            "`loss` must be one of 'squared', 'cross_entropy', 'huber', .*; got 'hinge'",
        ),
        (
            lambda: nk.solve(KERNEL, X, Y[:, :1], loss="cross_entropy"),
            "integer labels in `y`.* or one column per",
        ),
        (
            lambda: nk.solve(KERNEL, X, np.eye(2)[np.arange(len(X)) % 2], loss="cross_entropy"),
            "needs a finite `time` or `steps`",
        ),
        (lambda: nk.solve(KERNEL, X, Y).predict(NEW[:, :2]), "`x_new` has 2 features per row; 6 expected"),
        (
            lambda: nk.solve(KERNEL, X, Y, nk.Ridge(1.0)).predict(NEW, time=3.0),
            "`time` is not defined for Ridge",
        ),
        (lambda: nk.solve(KERNEL, X, Y).predict(NEW, time=-1.0), "`time` must be at least 0; got -1.0"),
        (lambda: nk.solve(KERNEL, X, Y).params(), "a kernel has no parameters"),
        (
            lambda: nk.solve(KERNEL, X, Y).predict(NEW, time=[[1.0]]),
            r"`time` must be a number or a vector of them; got shape \(1, 1\)",
        ),
        (
            lambda: nk.solve(KERNEL, X, Y).predict_each(NEW, [0.1]),
            "`algorithms` must be algorithms with a spectral filter",
        ),
        (lambda: nk.solve(KERNEL, X, Y).predict_each(NEW, []), "`algorithms` is empty"),
        (lambda: nk.solve(KERNEL, X, Y).predict_each(NEW, 3), "`algorithms` must be a list such as"),
        (lambda: nk.solve(nk.FeatureModel(lambda z: z[:, 0]), X, Y), r"`phi` must map \(n, d\) to \(n, f\)"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
