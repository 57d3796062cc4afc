"""Leave-one-out from one factorization against n trainings."""

import warnings

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.algorithms.ridges import ridges_of_descent, ridges_of_flow

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(19, 4)), RNG.normal(size=(19, 2))
KERNEL = nk.kernels.NTK(nk.MLP(4, (8, 8), activation="relu", weight_var=2.0, bias_var=0.1))
LARGEST = float(np.linalg.eigvalsh(KERNEL(X))[-1])
EIGENVALUES = np.concatenate([[0.0], np.logspace(-9, 0, 200), np.linspace(0.001, 1.0, 500)])


def retrained(problem, x, y, algorithm):
    rest = [np.delete(np.arange(len(x)), i) for i in range(len(x))]
    return np.array(
        [
            nk.solve(problem, x[r], y[r], algorithm).predict(x[i : i + 1]).mean[0] - y[i]
            for i, r in enumerate(rest)
        ]
    )


@pytest.mark.parametrize(
    ("lr", "steps", "momentum"),
    [
        (0.9, 1, 0),
        (0.9, 15, 0),
        (0.9, 16, 0),
        (1.9, 17, 0),
        (1.99, 100_000, 0),
        (2.5, 40, 0.5),
        (3, 1000, 0.9),
    ],
)
def test_gradient_descent_is_a_sum_of_ridges(lr, steps, momentum):
    strengths, weights = ridges_of_descent(lr, steps, momentum, 1.0)
    found = (weights * strengths / (EIGENVALUES[:, None] + strengths)).sum(axis=1).real
    expected = nk.GradientDescent(lr, steps, momentum).decay(np.maximum(EIGENVALUES, 1e-300))
    np.testing.assert_allclose(found, expected, atol=2e-11)


@pytest.mark.parametrize("time", [1e-3, 1.0, 1e8])
def test_gradient_flow_is_a_sum_of_ridges(time):
    strengths, weights = ridges_of_flow(time)
    found = (weights * strengths / (EIGENVALUES[:, None] + strengths)).sum(axis=1).real
    np.testing.assert_allclose(found, np.exp(-EIGENVALUES * time), atol=1e-13)
    assert weights.sum().real == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.Ridge(0.3),
        nk.Ridge(0.0),
        nk.DirectOptimization(),
        nk.GradientFlow(),
        nk.GradientFlow(0.0),
        nk.GradientFlow(0.4),
        nk.GradientFlow(40.0),
        nk.GradientDescent(1.5 / LARGEST, 0),
        nk.GradientDescent(1.5 / LARGEST, 3),
        nk.GradientDescent(0.5 / LARGEST, 41),
        nk.GradientDescent(1.9 / LARGEST, 2001),
        nk.GradientDescent(2.5 / LARGEST, 51, momentum=0.6),
    ],
    ids=repr,
)
def test_it_equals_training_again_without_each_point(algorithm):
    found = nk.solve(KERNEL, X, Y, algorithm).leave_one_out()
    expected = retrained(KERNEL, X, Y, algorithm)
    np.testing.assert_allclose(found.residuals, expected, atol=1e-11)
    np.testing.assert_allclose(found.predictions, Y + expected, atol=1e-11)
    assert found.error == pytest.approx((expected**2).sum(axis=1).mean(), rel=1e-10)
    assert found.sem == pytest.approx((expected**2).sum(axis=1).std(ddof=1) / 19**0.5, rel=1e-10)


@pytest.mark.parametrize("algorithm", [nk.Ridge(0.3), nk.Ridge(0.0), nk.GradientFlow(0.3)], ids=repr)
@pytest.mark.parametrize(("points", "features"), [(19, 4), (4, 4)])
def test_a_singular_kernel(algorithm, points, features):
    x, y = X[:points].copy(), Y[:points]
    x[-1] = x[-2]  # a twin stays in
    linear = nk.kernels.Linear()
    found = nk.solve(linear, x, y, algorithm).leave_one_out()
    np.testing.assert_allclose(found.residuals, retrained(linear, x, y, algorithm), atol=1e-10)


@pytest.mark.parametrize("algorithm", [nk.Ridge(0.3), nk.GradientFlow(0.3), nk.GradientFlow()], ids=repr)
def test_outputs_of_an_expanded_network_are_left_out_together(algorithm):
    net = nk.MLP(4, (16,), 2, "tanh")
    linear = nk.expand(net, net.init(jax.random.key(0)), 1)
    x, y = X[:8], Y[:8]
    found = nk.solve(linear, x, y, algorithm).leave_one_out()
    np.testing.assert_allclose(found.residuals, retrained(linear, x, y, algorithm), atol=1e-9)


def test_a_kernel_that_is_zero_predicts_nothing():
    found = nk.solve(nk.kernels.Linear(), np.zeros((3, 2)), Y[:3], nk.GradientFlow(1.0)).leave_one_out()
    np.testing.assert_allclose(found.predictions, 0.0, atol=1e-13)


def test_another_time_is_another_algorithm():
    solution = nk.solve(KERNEL, X, Y[:, 0])
    expected = nk.solve(KERNEL, X, Y[:, 0], nk.GradientFlow(0.7)).leave_one_out().residuals
    np.testing.assert_allclose(solution.leave_one_out(time=0.7).residuals, expected, atol=1e-12)
    assert expected.shape == (19,)


def test_a_ridge_has_the_log_score_of_a_gaussian_process():
    found = nk.solve(KERNEL, X, Y, nk.Ridge(0.3)).leave_one_out()
    scores = []
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        law = nk.posterior(KERNEL, X[rest], Y[rest], X[i : i + 1], noise=0.3)
        variance = law.std[0] ** 2 + 0.3
        scores.append(-0.5 * (np.log(2 * np.pi * variance) + (law.mean[0] - Y[i]) ** 2 / variance).sum())
        assert found.std[i] ** 2 == pytest.approx(variance, rel=1e-10)
    assert found.log_score == pytest.approx(np.mean(scores), rel=1e-10)
    by_spectrum = nk.solve(KERNEL, X, Y, nk.GradientFlow(1.0))
    assert by_spectrum.leave_one_out().std is None and np.isfinite(by_spectrum.leave_one_out().log_score)


def test_classes_are_counted():
    from sklearn.datasets import load_digits

    x, labels = load_digits(return_X_y=True)
    x, one_hot = x[:80] / 16, np.eye(10)[labels[:80]]
    kernel = nk.kernels.RBF(2.0)
    found = nk.solve(kernel, x, one_hot, nk.GradientFlow(20.0)).leave_one_out()
    expected = one_hot + retrained(kernel, x, one_hot, nk.GradientFlow(20.0))
    assert found.error_rate() == np.mean(expected.argmax(axis=1) != labels[:80])
    signs = np.where(labels[:80] < 5, -1.0, 1.0)
    assert 0 < nk.solve(kernel, x, signs, nk.Ridge(0.1)).leave_one_out().error_rate() < 0.5


def test_what_cannot_be_left_out_is_said():
    with pytest.raises(ValueError, match="needs stable training, but it diverges: lr = "):
        nk.solve(KERNEL, X, Y, nk.GradientDescent(2.1 / LARGEST, 10)).leave_one_out()
    with pytest.raises(ValueError, match="short sum of ridges, not GradientFlow"):
        nk.solve(KERNEL, X, Y, nk.GradientFlow(1.0, friction=0.5)).leave_one_out()
    with pytest.raises(ValueError, match="with momentum up to 1000 steps"):
        nk.solve(KERNEL, X, Y, nk.GradientDescent(1 / LARGEST, 2000, momentum=0.5)).leave_one_out()
    net = nk.MLP(4, (1,), 2, "linear")
    wide = nk.expand(net, net.init(jax.random.key(0)), 1)
    with pytest.raises(ValueError, match="tangent kernel of full rank"):
        nk.solve(wide, X, Y).leave_one_out()


@pytest.mark.parametrize(("kind", "made"), [("ridge", nk.Ridge), ("flow", nk.GradientFlow)])
def test_the_tuned_value_is_the_best_of_those_tried(kind, made):
    y = np.sin(X[:, 0]) + 0.3 * Y[:, 0]
    found = nk.dynamics.tune(KERNEL, X, y, kind)
    assert found.error.min() == found.error[list(found.values).index(found.value)]
    again = nk.solve(KERNEL, X, y, found.algorithm).leave_one_out()
    assert again.error == pytest.approx(found.error.min(), rel=1e-9) and isinstance(found.algorithm, made)
    with pytest.warns(UserWarning, match="the best of `values` is at an end of the range"):
        nk.dynamics.tune(KERNEL, X, y, kind, values=[found.value, 3 * found.value, 9 * found.value])
    with pytest.raises(ValueError, match="`values` must be a list of numbers greater than 0"):
        nk.dynamics.tune(KERNEL, X, y, kind, values=[0.0])
    with pytest.raises(ValueError, match="the kernel is zero on `x`"):
        nk.dynamics.tune(nk.kernels.Linear(), np.zeros_like(X), y, kind)


def test_estimators_tune_themselves():
    from nearkernel.estimators import KernelMachine, NNGPRegressor, NTKClassifier, NTKRegressor

    y = np.sin(X[:, 0]) + 0.3 * Y[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = NTKRegressor(algorithm="ridge").fit(X, y)
        centered = y - y.mean()
        ntk = nk.kernels.NTK(nk.MLP(4, (1, 1), weight_var=2.0, bias_var=0.1))
        assert fitted.solution_.algorithm == nk.dynamics.tune(ntk, X, centered, "ridge").algorithm
        assert isinstance(NTKRegressor(algorithm="flow").fit(X, y).solution_.algorithm, nk.GradientFlow)
        assert isinstance(KernelMachine(algorithm="flow").fit(X, y).solution_.algorithm, nk.GradientFlow)
        assert NNGPRegressor(noise="loo").fit(X, y).solution_.algorithm.strength > 0
        assert NTKClassifier(algorithm="ridge").fit(X, y > 0).predict(X).shape == (19,)
    with pytest.raises(TypeError, match="or 'ridge' or 'flow'; got 'rigde'"):
        NTKRegressor(algorithm="rigde").fit(X, y)
