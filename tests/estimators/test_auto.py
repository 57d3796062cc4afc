"""Estimators that choose for themselves: kernels, ridges, weights, probabilities and intervals are what they say."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import nearkernel as nk
from nearkernel.estimators import AutoClassifier, AutoRegressor
from nearkernel.estimators.auto import members as _members
from nearkernel.estimators.auto.blend import blended
from nearkernel.estimators.auto.members import ALL, METRIC, Member, fitted_kernels, matrices
from nearkernel.estimators.auto.metric import learned_weights, negative_log_likelihood
from nearkernel.estimators.auto.relu_kernels import relu_diagonal, relu_kernels
from nearkernel.estimators.auto.ridge_path import Spectrum, by_centers, by_cholesky
from nearkernel.estimators.tables.views import Views
from support.references.contract import fulfils_the_contract_of_scikit_learn

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(40, 5)), RNG.normal(size=(9, 5))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=40), X[:, 1] * X[:, 2]])
Y = Y - Y.mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", (AutoRegressor, AutoClassifier))
def test_scikit_learns_own_checks_pass(estimator):
    fulfils_the_contract_of_scikit_learn(estimator())


# Parts


@pytest.mark.parametrize("z", (Z, None))
def test_kernels_in_numpy_are_those_of_the_library_and_come_from_one_pass(z):
    wanted = [(1, True), (3, False), (3, True), (1, False)]
    for (depth, tangent), found in zip(wanted, relu_kernels(X, z, wanted), strict=True):
        net = nk.MLP(5, (1,) * depth, 1, "relu", weight_var=2.0, bias_var=0.1)
        kernel = nk.kernels.NTK(net) if tangent else nk.kernels.NNGP(net)
        np.testing.assert_allclose(found, kernel(X, z), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(relu_diagonal(X, depth, tangent), kernel.diag(X), rtol=1e-13)


def test_threads_fill_the_same_matrix_and_a_symmetric_one_is_its_mirror():
    x = RNG.normal(size=(700, 3))
    (whole,), (mirrored,) = relu_kernels(x, x, [(2, True)]), relu_kernels(x, None, [(2, True)])
    parts = [relu_kernels(x[i : i + 70], x, [(2, True)])[0] for i in range(0, 700, 70)]
    np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-13)
    np.testing.assert_allclose(
        mirrored, whole, rtol=1e-7
    )  # the cosine of a row with itself has 16 digits, its angle 8
    np.testing.assert_array_equal(mirrored, mirrored.T)


def test_kernels_of_one_view_share_products_and_distances(monkeypatch):
    calls = []
    for name in ("relu_kernels", "pdist", "cdist"):
        made = getattr(_members, name)
        monkeypatch.setattr(
            _members, name, lambda *args, made=made, name=name: calls.append(name) or made(*args)
        )
    views = Views(X)
    kernels = fitted_kernels([*ALL, METRIC], views, X, np.ones(5))
    calls.clear()
    together = dict(matrices(kernels, X))
    assert sorted(calls) == ["pdist", "pdist", "relu_kernels", "relu_kernels", "relu_kernels"]
    apart = [next(matrices([kernel], X))[1] for kernel in kernels]
    for place, matrix in together.items():
        np.testing.assert_allclose(matrix, apart[place], rtol=1e-12)
        np.testing.assert_allclose(next(matrices([kernels[place]], X, X))[1], matrix, rtol=1e-6)


def left_out_by_hand(kernel, y, ridge):
    found = np.empty_like(y)
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        inverse = np.linalg.inv(kernel[np.ix_(kept, kept)] + ridge * np.eye(len(y) - 1))
        found[i] = kernel[i, kept] @ inverse @ y[kept]
    return found


def test_leave_one_out_is_that_of_real_fits_and_of_tune():
    kernel = nk.kernels.RBF(2.0)
    matrix, ridges = kernel(X), np.logspace(-4, 1, 11)
    unit = np.trace(matrix) / len(X)
    fit = Spectrum(matrix.copy()).fit(Y, ridges)
    np.testing.assert_allclose(fit.left_out, left_out_by_hand(matrix, Y, fit.ridge * unit), atol=1e-9)
    tuned = nk.dynamics.tune(kernel, X, Y, "ridge", values=ridges * unit)
    assert tuned.value == pytest.approx(fit.ridge * unit) and tuned.error.min() == pytest.approx(
        2 * fit.error
    )
    again = by_cholesky(matrix.copy(), Y, fit.ridge)
    np.testing.assert_allclose(again.left_out, fit.left_out, atol=1e-9)
    np.testing.assert_allclose(again.coefficients, fit.coefficients, atol=1e-8)


def test_leave_one_out_on_few_centers_is_that_of_real_fits():
    kernel, centers = nk.kernels.RBF(2.0), X[:8]
    fit = by_centers(kernel(X, centers).copy(), kernel(centers).copy(), Y, np.logspace(-4, 1, 11))
    unit = np.trace(kernel(centers)) / 8
    lam, vectors = np.linalg.eigh(
        kernel(centers) + 1e-8 * unit * np.eye(8)
    )  # which repeated centers would need
    features = kernel(X, centers) @ (vectors / np.sqrt(lam))
    found = np.empty_like(Y)
    for i in range(len(X)):
        kept = np.arange(len(X)) != i
        gram = features[kept].T @ features[kept] + fit.ridge * unit * np.eye(8)
        found[i] = features[i] @ np.linalg.solve(gram, features[kept].T @ Y[kept])
    np.testing.assert_allclose(fit.left_out, found, atol=1e-8)


def test_few_centers_in_single_precision_may_repeat_themselves():
    """The Gram matrix of such features is singular up to rounding: a ridge above that is taken."""
    x = np.repeat(X, 3, axis=0).astype(float)
    kernel = nk.kernels.RBF(30.0)
    y = np.repeat(Y, 3, axis=0)
    rows = kernel(x, x).astype(np.float32)
    fit = by_centers(rows, kernel(x).copy(), y, np.logspace(-12, -2, 11))
    assert np.isfinite(fit.left_out).all() and np.mean((fit.left_out - y) ** 2) < np.mean(y**2)


def test_gradients_of_the_likelihood_are_right():
    at, step = np.append(RNG.normal(size=5) * 0.5, -1.0), 1e-5
    _, gradient = negative_log_likelihood(at, X, Y)
    found = [
        (negative_log_likelihood(at + e, X, Y)[0] - negative_log_likelihood(at - e, X, Y)[0]) / (2 * step)
        for e in step * np.eye(6)
    ]
    np.testing.assert_allclose(gradient, found, rtol=1e-5, atol=1e-6)


def test_the_learned_metric_finds_the_columns_that_matter():
    x = RNG.normal(size=(200, 8))
    y = (np.sin(2 * x[:, 2]) + 0.05 * RNG.normal(size=200))[:, None]
    weights = learned_weights(x, y - y.mean(), np.random.RandomState(0))
    assert weights.argmax() == 2 and np.delete(weights, 2).max() < 0.2 * weights[2]
    assert learned_weights(x[:10], y[:10], np.random.RandomState(0)) is None


def test_views_keep_new_rows_within_the_range_and_ranks_make_columns_normal():
    x = np.exp(3 * RNG.normal(size=(300, 2)))
    x[:, 1] = 7.0
    views = Views(x)
    np.testing.assert_allclose(views.plain(x).std(), 1.0)
    assert views.plain(x).shape == (300, 1)  # constant columns are left out
    assert views.plain(np.array([[1e9, 7.0]])) == views.plain(x).max()
    normal = views.normal(x)[:, 0]
    assert abs(np.mean(normal**3)) < 0.1 and abs(np.mean(normal**4) - 3) < 0.5
    assert np.all(np.diff(normal[np.argsort(x[:, 0])]) >= 0)
    assert Views(X, shared=True).scale.std() == 0


def test_weights_of_the_average_have_the_least_error_of_left_out_rows():
    made = blended(X, Y, False, False, 100, 10, np.random.RandomState(0))
    kernels = fitted_kernels(ALL, Views(X), X, None)
    singles = [Spectrum(matrix).fit(Y).error for _, matrix in matrices(kernels, X)]
    assert np.mean((made.left_out - Y) ** 2) <= min(singles) * (1 + 1e-9)
    assert all(part.weight > 0 for part in made.blend.parts)
    assert all(kernel.length > 0 for kernel in fitted_kernels([Member("laplace", 2.0)], Views(X), X, None))


# The whole


def test_regression_beats_the_linear_model_and_says_what_it_chose():
    x, y = make_friedman1(300, 8, noise=1.0, random_state=0)
    model = AutoRegressor().fit(x[:200], y[:200])
    assert model.score(x[200:], y[200:]) > 0.85 and model.target_ == "plain"
    assert sum(weight for _, weight, _ in model.kernels_) == pytest.approx(1.0, abs=0.2)
    assert model.column_weights_[:5].min() > model.column_weights_[5:].max()
    inside = 1 - np.mean((model.left_out_ - y[:200]) ** 2) / y[:200].var()
    assert abs(inside - model.score(x[200:], y[200:])) < 0.1  # leave-one-out says how good it will be


def test_raw_diabetes_needs_no_scaling_by_hand():
    x, y = load_diabetes(return_X_y=True)
    a, b, c, d = train_test_split(1e4 * x + 5, y, test_size=0.5, random_state=1)
    score = AutoRegressor().fit(a, c).score(b, d)
    assert score > 0.36 and score == pytest.approx(AutoRegressor().fit(a / 7, c).score(b / 7, d), abs=0.01)


@pytest.mark.slow
def test_intervals_hold_the_share_they_promise():
    """600 new rows: the standard error of a share of 0.9 is 0.012, and quantiles of 300 rows add 0.017."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(900, 3))
    y = np.sin(3 * x[:, 0]) + (0.05 + 0.4 * (x[:, 1] > 0)) * rng.normal(size=900)
    model = AutoRegressor().fit(x[:300], y[:300])
    for coverage in (0.8, 0.9):
        low, high = model.predict_interval(x[300:], coverage).T
        share = np.mean((low <= y[300:]) & (y[300:] <= high))
        error = np.sqrt(coverage * (1 - coverage) * (1 / 600 + 1 / 300))
        assert abs(share - coverage) < 4 * error
    noisy = x[300:, 1] > 0
    assert (high - low)[noisy].mean() > 2 * (high - low)[~noisy].mean()  # the noise is where it is
    _, std = model.predict(x[300:], return_std=True)
    assert std[noisy].mean() > 2 * std[~noisy].mean()


def test_a_skewed_target_is_learned_by_its_logarithm():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3))
    y = np.exp(2 * x[:, 0] + 0.1 * rng.normal(size=150))
    model = AutoRegressor().fit(x[:100], y[:100])
    assert model.target_ == "log" and np.all(model.predict(x[100:]) > 0)
    low, high = model.predict_interval(x[100:]).T
    assert np.all((0 < low) & (low < high))
    assert np.all(model.predict(x, return_std=True)[1] > 0)
    assert AutoRegressor("plain").fit(x[:100], y[:100]).target_ == "plain"


def test_several_targets():
    model = AutoRegressor().fit(X, Y)
    assert model.predict(Z).shape == (9, 2) and model.predict_interval(Z).shape == (9, 2, 2)
    assert model.left_out_.shape == Y.shape


@pytest.mark.parametrize("load, least", ((load_wine, 0.96), (load_breast_cancer, 0.95)))
def test_classification_and_its_probabilities(load, least):
    x, y = load(return_X_y=True)
    a, b, c, d = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    model = AutoClassifier().fit(a, c)
    proba = model.predict_proba(b)
    assert model.score(b, d) > least
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(d, proba) < 0.16
    assert abs(log_loss(c, model.left_out_proba_) - log_loss(d, proba)) < 0.1
    np.testing.assert_array_equal(model.predict(b), model.classes_[proba.argmax(axis=1)])


def test_a_rare_class_is_found_where_it_is_asked_for():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4))
    y = rng.random(500) < 1 / (1 + np.exp(3.5 - 1.5 * x[:, 0]))
    plain = AutoClassifier().fit(x[:300], y[:300])
    balanced = AutoClassifier("balanced").fit(x[:300], y[:300])
    found = [model.predict(x[300:])[y[300:]].mean() for model in (plain, balanced)]
    assert found[1] > found[0] + 0.2
    np.testing.assert_array_equal(plain.predict_proba(x), balanced.predict_proba(x))
    assert roc_auc_score(y[300:], plain.predict_proba(x[300:])[:, 1]) > 0.75
    costly = AutoClassifier({False: 1.0, True: 1e6}).fit(x[:300], y[:300])
    assert costly.predict(x).all()


@pytest.mark.slow
def test_more_rows_take_a_cholesky_factor_and_then_few_centers():
    x, y = make_friedman1(2600, 5, noise=1.0, random_state=0)
    exact = AutoRegressor().fit(x[:2100], y[:2100])
    few = AutoRegressor(most_exact=2050, centers=400).fit(x[:2100], y[:2100])
    assert len(exact.blend_.centers) == 2100 and len(few.blend_.centers) == 400
    assert exact.score(x[2100:], y[2100:]) > 0.94 and few.score(x[2100:], y[2100:]) > 0.93


@pytest.mark.parametrize(
    "model, error, match",
    [
        (AutoRegressor("square"), ValueError, "`target` must be one of|`target`.*'auto', 'plain'"),
        (
            AutoRegressor("log"),
            ValueError,
            '`target` = "log" needs `y` greater than 0; got a smallest value of',
        ),
        (AutoRegressor(scale="rows"), ValueError, "`scale`"),
        (AutoRegressor(most_exact=1), ValueError, "`most_exact` must be at least 2"),
        (AutoRegressor(centers=1.5), TypeError, "`centers` must be an integer"),
    ],
)
def test_bad_parameters_are_named(model, error, match):
    with pytest.raises(error, match=match):
        model.fit(X, Y)


def test_bad_class_weights_and_coverage_are_named():
    labels = X[:, 0] > 0
    with pytest.raises(ValueError, match='`class_weight` must be None, "balanced" or a dict; got 3'):
        AutoClassifier(3).fit(X, labels)
    with pytest.raises(ValueError, match="`class_weight` must be greater than 0 for each class"):
        AutoClassifier({False: 1, True: 0}).fit(X, labels)
    with pytest.raises(ValueError, match="`coverage` must be between 0 and 1; got 90"):
        AutoRegressor().fit(X, Y).predict_interval(Z, 90)
