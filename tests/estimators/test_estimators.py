"""The estimators keep scikit-learn's contract, and say what the formulas say."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkernel as nk
from nearkernel.estimators import (
    KernelMachine,
    NNGPClassifier,
    NNGPRegressor,
    NTKClassifier,
    NTKRegressor,
    QuadraticRegressor,
)
from support.references.contract import fulfils_the_contract_of_scikit_learn

ALL = (KernelMachine, NNGPClassifier, NNGPRegressor, NTKClassifier, NTKRegressor, QuadraticRegressor)
CLASSIFIERS = (NNGPClassifier, NTKClassifier)
REGRESSORS = (KernelMachine, NNGPRegressor, NTKRegressor)
NETWORK_REGRESSORS = (NNGPRegressor, NTKRegressor)


def problem(outputs=None, n=20, m=7):
    """(x, y, x_new) with targets far from mean zero."""
    rng = np.random.default_rng(0)
    x, x_new = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    return x, 5.0 + rng.normal(size=n if outputs is None else (n, outputs)), x_new


def blobs(classes):
    x, y = make_blobs(60, centers=classes, n_features=3, cluster_std=4.0, random_state=1)
    return x[:30] / 5, y[:30], x[30:] / 5


def data_for(estimator, outputs=None):
    return blobs(3) if estimator in CLASSIFIERS else problem(outputs)


def network(activation="relu", depth=2):
    return nk.MLP(3, (64,) * depth, 1, activation, weight_var=2.0, bias_var=0.1)


# The contract of scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(each, marks=[pytest.mark.slow] if each in (NNGPClassifier, QuadraticRegressor) else [])
        for each in ALL
    ],
)
def test_scikit_learns_own_checks_pass(estimator):
    fulfils_the_contract_of_scikit_learn(estimator())


class Evasive(NTKRegressor):
    """Leaves checks out by a tag."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        return tags


def test_an_estimator_that_skips_the_checks_does_not_pass():
    with pytest.raises(AssertionError):
        fulfils_the_contract_of_scikit_learn(Evasive())


@pytest.mark.parametrize("estimator", ALL)
def test_a_clone_keeps_the_parameters_and_forgets_the_data(estimator):
    x, y, x_new = data_for(estimator)
    name = "noise" if "noise" in estimator().get_params() else "algorithm"
    fitted = estimator().set_params(**{name: 0.25 if name == "noise" else nk.Ridge(0.25)}).fit(x, y)
    copy = clone(fitted)
    assert repr(copy) == repr(fitted)
    with pytest.raises(NotFittedError):
        copy.predict(x_new)
    np.testing.assert_array_equal(copy.fit(x, y).predict(x_new), fitted.predict(x_new))


@pytest.mark.parametrize("estimator", ALL)
def test_a_pickle_predicts_the_same_and_leaves_the_hosts_precision_alone(estimator):
    x, y, x_new = data_for(estimator)
    fitted = estimator().fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(x_new), fitted.predict(x_new))
    if estimator in CLASSIFIERS:
        np.testing.assert_array_equal(again.predict_proba(x_new), fitted.predict_proba(x_new))
    assert jnp.ones(1).dtype == jnp.float32 and not jax.config.jax_enable_x64


@pytest.mark.parametrize("estimator", (NTKClassifier, NNGPRegressor))
def test_depth_is_searched_in_a_pipeline(estimator):
    x, y, x_new = data_for(estimator)
    name = estimator.__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), estimator()), {f"{name}__depth": [0, 1]}, cv=2, error_score="raise"
    )
    search.fit(x, y)
    assert search.best_params_[f"{name}__depth"] in (0, 1)
    assert search.predict(x_new).shape == (len(x_new),)


def test_algorithms_are_searched():
    x, y, _ = problem()
    choices = [nk.Ridge(0.1), nk.GradientFlow(time=1.0), nk.GradientDescent(lr=1e-3, steps=10)]
    search = GridSearchCV(NTKRegressor(depth=1), {"algorithm": choices}, cv=2, error_score="raise").fit(x, y)
    assert search.best_params_["algorithm"] in choices


# The formulas


@pytest.mark.parametrize("outputs", (None, 2))
def test_kernel_machine_with_ridge_is_kernel_ridge(outputs):
    x, y, x_new = problem(outputs)
    ours = KernelMachine(nk.kernels.RBF(2.0), nk.Ridge(0.3)).fit(x, y)
    theirs = KernelRidge(kernel="rbf", gamma=1 / 8, alpha=0.3).fit(x, y)
    np.testing.assert_allclose(ours.predict(x_new), theirs.predict(x_new), atol=1e-10)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-10)
    assert ours.dual_coef_.shape == y.shape


def test_kernel_machine_is_its_kernel_times_its_coefficients():
    x, y, x_new = problem(2)
    kernel = nk.kernels.Laplace(2.0) + 0.1 * nk.kernels.Linear()
    machine = KernelMachine(kernel, nk.GradientFlow(time=3.0)).fit(x, y)
    np.testing.assert_allclose(
        machine.predict(x_new), kernel(x_new, machine.X_fit_) @ machine.dual_coef_, atol=1e-12
    )


def test_default_kernel_has_the_length_of_the_data():
    x, y, x_new = problem()
    given = KernelMachine(nk.kernels.RBF(3**0.5)).fit(x, y)
    np.testing.assert_allclose(KernelMachine().fit(x, y).predict(x_new), given.predict(x_new), rtol=1e-12)


def test_a_kernel_machine_by_every_solver():
    x, y, x_new = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0) % 7, np.ones((2, 3))
    expected = KernelMachine(nk.kernels.RBF(1.0), nk.Ridge(1.0)).fit(x, y)
    for solver in ("cg", "richardson", nk.dynamics.Nystrom(centers=60)):
        found = KernelMachine(nk.kernels.RBF(1.0), nk.Ridge(1.0), solver=solver).fit(x, y)
        np.testing.assert_allclose(found.predict(x_new), expected.predict(x_new), rtol=1e-5)
        assert found.dual_coef_.shape == (60,)
        np.testing.assert_allclose(
            found.predict(x_new), nk.kernels.RBF(1.0)(x_new, found.X_fit_) @ found.dual_coef_
        )
    few = KernelMachine(nk.kernels.RBF(1.0), nk.Ridge(1.0), solver=nk.dynamics.Nystrom(centers=5)).fit(x, y)
    assert few.X_fit_.shape == (5, 3) and few.dual_coef_.shape == (5,)
    slow = KernelMachine(
        nk.kernels.RBF(1.0), nk.Ridge(1e-3), solver=nk.dynamics.ConjugateGradients(iterations=2)
    )
    with pytest.warns(ConvergenceWarning, match="not converged: relative residual"):
        slow.fit(x, y)


def test_networks_trained_to_the_end_are_kernel_regression():
    x, y, x_new = problem()
    kernel = nk.kernels.NTK(network())
    expected = y.mean() + kernel(x_new, x) @ np.linalg.solve(kernel(x), y - y.mean())
    np.testing.assert_allclose(NTKRegressor().fit(x, y).predict(x_new), expected, rtol=1e-10)


@pytest.mark.parametrize(
    "algorithm",
    (None, nk.Ridge(0.3), nk.GradientFlow(time=0.2), nk.GradientDescent(lr=0.01, steps=30)),
    ids=repr,
)
def test_ntk_regressor_is_the_forecast(algorithm):
    x, y, x_new = problem(2)
    law = nk.forecast(network(), x, y - y.mean(axis=0), algorithm, x_new)
    mean, std = NTKRegressor(algorithm=algorithm).fit(x, y).predict(x_new, return_std=True)
    np.testing.assert_allclose(mean, law.mean + y.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(std, np.column_stack([law.std, law.std]), rtol=1e-7)


class _AsTheirKernel(Kernel):
    """An infinitely wide network as a kernel of scikit-learn's Gaussian processes."""

    def __init__(self):  # which they inspect
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return nk.kernels.NNGP(network())(X, X if Y is None else Y)

    def diag(self, X):
        return nk.kernels.NNGP(network()).diag(X)

    def is_stationary(self):
        return False


@pytest.mark.parametrize("outputs", (None, 2))
def test_nngp_regressor_is_a_gaussian_process(outputs):
    x, y, x_new = problem(outputs)
    theirs = GaussianProcessRegressor(_AsTheirKernel(), alpha=0.2, optimizer=None).fit(x, y - y.mean(axis=0))
    expected_mean, expected_std = theirs.predict(x_new, return_std=True)
    mean, std = NNGPRegressor(noise=0.2).fit(x, y).predict(x_new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean + y.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(std, expected_std, rtol=1e-10)


@pytest.mark.parametrize("classes", (2, 3))
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_probabilities_are_shares_of_networks(estimator, classes, size=20_000):
    x, y, x_new = blobs(classes)
    one_hot = np.eye(classes)[y]
    target, center = one_hot - one_hot.mean(axis=0), one_hot.mean(axis=0)
    if estimator is NTKClassifier:
        model, law = NTKClassifier(), nk.forecast(network(), x, target, None, x_new)
    else:
        model = NNGPClassifier(noise=0.1)
        law = nk.posterior(nk.kernels.NNGP(network()), x, target, x_new, noise=0.1)
    found = model.fit(x, y).predict_proba(x_new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    answers = (law.sample(size, jax.random.key(0)) + center).argmax(axis=-1)  # (size, m)
    share = (answers[..., None] == np.arange(classes)).mean(axis=0)
    error = np.sqrt((found * (1 - found) + 1 / size) / size)
    assert np.all(np.abs(share - found) <= 4 * error)
    assert np.sum((found[:, 0] > 0.02) & (found[:, 0] < 0.98)) >= 3  # there is something to compare


@pytest.mark.parametrize("classes", (2, 3))
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_the_most_probable_class_is_the_answer(estimator, classes):
    x, y, x_new = blobs(classes)
    names = np.array(["cat", "ant", "bee"])
    model = estimator().fit(x, names[y])
    assert model.classes_.tolist() == sorted(names[:classes])
    answers = model.predict(x_new)
    np.testing.assert_array_equal(answers, model.classes_[model.predict_proba(x_new).argmax(axis=1)])
    decision = model.decision_function(x_new)
    assert decision.shape == ((len(x_new),) if classes == 2 else (len(x_new), classes))
    np.testing.assert_array_equal(model.predict(x), names[y])  # trained to the end


def test_classifiers_agree_for_outputs_that_cannot_vary():
    """x = 0 without biases: every network answers 0, so the more frequent class wins for certain."""
    x, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 1]
    model = NTKClassifier(bias_var=0.0).fit(x, y)
    np.testing.assert_array_equal(model.predict_proba(np.zeros((1, 2))), [[0.0, 1.0]])


def test_an_activation_may_be_a_function():
    x, y, x_new = problem()
    named, given = (NTKRegressor(1, activation).fit(x, y) for activation in ("sin", jnp.sin))
    np.testing.assert_allclose(given.predict(x_new), named.predict(x_new), rtol=1e-8)


@pytest.mark.parametrize("outputs", (None, 2))
@pytest.mark.parametrize("estimator", NETWORK_REGRESSORS)
def test_standardizing_inside_is_standardizing_by_hand(estimator, outputs):
    x, y, x_new = problem(outputs)
    center, scale = x.mean(axis=0), x.std(axis=0)
    unit = np.sqrt(np.mean(y.var(axis=0)))
    by_hand = estimator().fit((x - center) / scale, y / unit)
    mean, std = by_hand.predict((x_new - center) / scale, return_std=True)
    far = estimator(standardize=True).fit(1e3 * x + 7, y)
    found, spread = far.predict(1e3 * x_new + 7, return_std=True)
    np.testing.assert_allclose(found, unit * mean, rtol=1e-8)
    np.testing.assert_allclose(spread, unit * std, rtol=1e-6)


def test_raw_data_need_no_scaling_by_hand():
    x, y = load_diabetes(return_X_y=True)
    model = NNGPRegressor(noise="auto", standardize=True).fit(x[::2], y[::2])
    assert model.score(x[1::2], y[1::2]) > 0.4
    model = NTKClassifier(standardize=True, algorithm="ridge").fit(1e4 * x[::2], y[::2] > 140)
    assert model.score(1e4 * x[1::2], y[1::2] > 140) > 0.7


# What fitting means


@pytest.mark.parametrize("estimator", NETWORK_REGRESSORS)
def test_constants_are_learnt_everywhere(estimator):
    x, _, x_new = problem()
    np.testing.assert_allclose(estimator().fit(x, np.full(len(x), 7.0)).predict(x_new), 7.0, rtol=1e-14)


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_repeated_rows_give_the_average_of_their_targets(estimator):
    x, y, _ = problem(n=8)
    model = estimator().fit(np.concatenate([x, x]), np.concatenate([y - 1.0, y + 1.0]))
    assert model.solution_.rank == 8
    np.testing.assert_allclose(model.predict(x), y, rtol=1e-9)


@pytest.mark.parametrize("estimator", NETWORK_REGRESSORS)
def test_trained_to_the_end_nothing_is_left_to_chance_on_the_training_set(estimator):
    x, y, x_new = problem()
    model = estimator().fit(x, y)
    assert model.predict(x, return_std=True)[1].max() < 1e-5
    assert model.predict(x_new, return_std=True)[1].min() > 1e-2


@pytest.mark.parametrize("estimator", ALL)
def test_fit_factors_once_and_predict_never(estimator, monkeypatch):
    x, y, x_new = data_for(estimator)
    model = estimator().fit(x, y)
    for name in ("cholesky", "spectrum"):
        monkeypatch.setattr(f"nearkernel.dynamics.linear.tangent.{name}", None)
    model.predict(x_new)
    if estimator in NETWORK_REGRESSORS:
        model.predict(x_new, return_std=True)
    if estimator in CLASSIFIERS:
        model.predict_proba(x_new)


@pytest.mark.parametrize("estimator", NETWORK_REGRESSORS)
def test_standard_deviations_do_not_depend_on_the_memory_they_take(estimator, monkeypatch):
    x, y, x_new = problem()
    model = estimator().fit(x, y)
    whole = model.predict(x_new, return_std=True)[1]
    monkeypatch.setattr(
        "nearkernel.forecasts.infinite_width.trained_gaussian.rows_that_fit", lambda bytes_per_row: 3
    )
    np.testing.assert_allclose(model.predict(x_new, return_std=True)[1], whole, rtol=1e-10)


@pytest.mark.parametrize("estimator", ALL)
def test_what_was_learnt_does_not_change_with_the_callers_arrays(estimator):
    x, y, x_new = data_for(estimator)
    model = estimator().fit(x, y)
    before = model.predict(x_new)
    x[:], y[:] = 0, 0
    np.testing.assert_array_equal(model.predict(x_new), before)


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("outputs", (None, 1, 3))
def test_predictions_have_the_shape_of_the_targets(estimator, outputs):
    x, y, x_new = problem(outputs)
    assert estimator().fit(x, y).predict(x_new).shape == (len(x_new), *y.shape[1:])
    if estimator in NETWORK_REGRESSORS:
        mean, std = estimator().fit(x, y).predict(x_new, return_std=True)
        assert mean.shape == std.shape


# Bad input

BAD_PARAMETERS = [
    (NTKRegressor(depth=-1), ValueError, "`depth` must be at least 0; got -1"),
    (NTKRegressor(depth=1.5), TypeError, "`depth` must be an integer; got 1.5"),
    (NTKRegressor(activation="rleu"), ValueError, "`activation` 'rleu' is unknown.*Did you mean 'relu'"),
    (NTKRegressor(weight_var=0.0), ValueError, "`weight_var` must be greater than 0"),
    (NNGPRegressor(bias_var=-1.0), ValueError, "`bias_var` must be at least 0"),
    (NNGPRegressor(noise=-0.1), ValueError, "`noise` must be at least 0; got -0.1"),
    (NTKRegressor(algorithm="adam"), TypeError, "`algorithm` must be one that can be solved"),
    (NTKRegressor(algorithm=nk.SGD(0.1, 2, 3)), TypeError, "`algorithm` must be one that can be solved"),
    (NTKRegressor(algorithm=nk.GradientDescent(1e6)), ValueError, "`algorithm` = .* diverges: lr = 1e.06 exceeds"),
    (KernelMachine(algorithm=nk.GradientDescent(1e6)), ValueError, "`algorithm` = .* diverges"),
    (KernelMachine(kernel="rbf"), TypeError, r"`kernel` must be a kernel, e.g. nk.kernels.RBF\(1.0\); got str"),
]  # fmt: skip


@pytest.mark.parametrize(
    "model, error, message", BAD_PARAMETERS, ids=[message for *_, message in BAD_PARAMETERS]
)
def test_bad_parameters_are_named_by_fit_and_not_before(model, error, message):
    x, y, _ = problem()
    with pytest.raises(error, match=message):
        model.fit(x, y)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_one_class_is_refused(estimator):
    x, _, _ = problem()
    with pytest.raises(ValueError, match="`y` must have at least two classes; got one class, 'cat'"):
        estimator().fit(x, ["cat"] * len(x))


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_words_are_no_targets_of_a_regression(estimator):
    x, _, _ = problem()
    with pytest.raises(ValueError, match="could not convert string to float"):
        estimator().fit(x, ["cat"] * len(x))


@pytest.mark.parametrize("estimator", ALL)
def test_other_features_than_those_fitted_are_refused(estimator):
    x, y, x_new = data_for(estimator)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        estimator().fit(x, y).predict(x_new[:, :2])


@pytest.mark.parametrize("name", nk.estimators.__all__)
def test_masked_values_are_not_computed_with(name):
    """One masked target of 1e6 must not become a prediction of 5e5."""
    x = np.random.default_rng(0).normal(size=(12, 3))
    y = np.arange(12) % 2
    hidden_y = np.ma.array(np.where(y == 1, 1e6, 0.0), mask=y == 1)
    hidden_x = np.ma.masked_greater(x, 1.0)
    estimator = getattr(nk.estimators, name)()
    with pytest.raises(
        ValueError, match=r"`X` is a masked array with \d+ masked values?: leave those rows out"
    ):
        estimator.fit(hidden_x, y)
    if name == "PrepareTable":
        return  # it does not look at targets
    with pytest.raises(ValueError, match=r"`y` is a masked array with 6 masked values: leave those rows out"):
        estimator.fit(x, hidden_y)
    if name in ("KernelMachine", "DeepLinearBayes", "NTKClassifier"):  # all predict through one check
        with pytest.raises(ValueError, match="`X` is a masked array"):
            estimator.fit(x, y).predict(hidden_x)


def test_estimators_take_networks_and_images():
    """The kernel of the network, whether pixels come as images or in rows."""
    images = np.random.default_rng(0).normal(size=(12, 4, 4, 1))
    y, net = images.sum(axis=(1, 2, 3)), nk.CNN((4, 4, 1), (3,), head="flatten")
    kernel = nk.kernels.NNGP(net)
    found = nk.estimators.NNGPRegressor(noise=0.1, network=net).fit(images[:9], y[:9])
    solution = nk.solve(kernel, images[:9], y[:9] - y[:9].mean(), nk.Ridge(0.1))
    expected = solution.predict(images[9:]).mean.ravel() + y[:9].mean()
    np.testing.assert_allclose(found.predict(images[9:]), expected, rtol=1e-9)
    np.testing.assert_allclose(found.predict(images[9:].reshape(3, 16)), expected, rtol=1e-9)
    classes = nk.estimators.NTKClassifier(network=net).fit(images, y > 0)
    assert (classes.predict(images) == (y > 0)).all() and classes.predict_proba(images).shape == (12, 2)
    with pytest.raises(
        ValueError, match=r"`network` takes inputs of shape \(4, 4, 1\); got `X` with 15 numbers per row"
    ):
        nk.estimators.NTKRegressor(network=net).fit(np.ones((3, 15)), [1, 2, 3])
    with pytest.raises(TypeError, match=r"`network` must be an nk.MLP or nk.Network; got str"):
        nk.estimators.NTKRegressor(network="cnn").fit(np.ones((3, 15)), [1, 2, 3])
