"""The regressor that learns features: what `solve` says, with eps chosen on held-out data."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

import nearkernel as nk
from nearkernel.estimators import QuadraticRegressor

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(24, 3)), RNG.normal(size=(9, 3))
S, S_NEW = (x @ np.array([0.6, -0.4, 0.2]) for x in (X, NEW))
Y, Y_NEW = 5.0 + S + 0.15 * S**2, 5.0 + S_NEW + 0.15 * S_NEW**2
RIDGE = nk.Ridge(0.1)


def linear(x):
    return jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)


def square(x, u):
    return linear(x) * (linear(x) @ u)[:, None]


def test_with_eps_given_it_is_solve():
    for order in (1, 2):
        model = QuadraticRegressor("linear", "square", eps=0.05, algorithm=RIDGE, order=order).fit(X, Y)
        direct = nk.solve(nk.QuadraticModel(linear, square, 0.05), X, Y - Y.mean(), RIDGE, order=order)
        expected = Y.mean() + direct.predict(NEW).mean
        np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-10)
    assert model.eps_ == 0.05 and model.held_out_loss_ is None and model.model_.eps == 0.05


def test_functions_may_be_given():
    named, given = (
        QuadraticRegressor(phi, psi, eps=0.05, algorithm=RIDGE).fit(X, Y).predict(NEW)
        for phi, psi in (("linear", "square"), (linear, square))
    )
    np.testing.assert_allclose(given, named, rtol=1e-10)


def folds():
    """Drawn among sorted rows, so that their order does not matter."""
    random, order = check_random_state(0), np.lexsort((Y, *X.T))
    random.randint(2**31 - 1)
    for rows, left in KFold(5, shuffle=True, random_state=random).split(X):
        yield order[rows], order[left]


def fold_losses(eps, order=2):
    """Of every fold held out, by solving at that eps."""
    model, total = nk.QuadraticModel(linear, square, eps), 0.0
    y = Y - Y.mean()
    for rows, left in folds():
        z = nk.solve(model, X[rows], y[rows], RIDGE, order=order).predict(X[left]).mean
        total += 0.5 * ((z - y[left]) ** 2).sum()
    return total


@pytest.mark.filterwarnings(r"ignore:\|z\^I\|")
def test_cross_validation_takes_the_best_of_the_grid():
    grid = (-0.1, 0.0, 0.1, 0.2, 0.4)
    model = QuadraticRegressor("linear", "square", algorithm=RIDGE, eps_grid=grid).fit(X, Y)
    losses = [fold_losses(eps) for eps in grid]
    assert model.eps_ == grid[int(np.argmin(losses))]
    np.testing.assert_allclose(model.held_out_loss_, (min(losses), losses[1]), rtol=1e-8)


def test_the_optimal_eps_is_that_of_feature_learning():
    model = QuadraticRegressor("linear", "square", "optimal", RIDGE, eps_grid=(-1, 1)).fit(X, Y)
    y, found = Y - Y.mean(), []
    for rows, left in folds():
        solution = nk.solve(nk.QuadraticModel(linear, square, 1.0), X[rows], y[rows], RIDGE, order=2)
        found.append(solution.feature_learning(X[left], y[left]))
    expected = -sum(f.slope for f in found) / sum(f.curvature for f in found)
    assert sum(f.curvature for f in found) > 0 and model.eps_ == pytest.approx(expected)
    near = QuadraticRegressor("linear", "square", "optimal", RIDGE, eps_grid=(-1e-3, 1e-3)).fit(X, Y)
    assert abs(near.eps_) == pytest.approx(1e-3)  # eps* is sought within the grid's bounds


@pytest.mark.parametrize("eps", ("cv", "optimal"))
def test_useful_meta_features_are_used(eps):
    """The target is s + 0.15 s^2: linear features with psi = phi phi^T can make it, at eps > 0."""
    model = QuadraticRegressor("linear", "square", eps, RIDGE).fit(X, Y)
    frozen = clone(model).set_params(eps=0.0).fit(X, Y)
    assert model.eps_ > 0 and model.held_out_loss_[0] < 0.5 * model.held_out_loss_[1]
    errors = [np.mean((m.predict(NEW) - Y_NEW) ** 2) for m in (model, frozen)]
    assert errors[0] < 0.6 * errors[1]


def test_named_features_have_their_kernels():
    from nearkernel.estimators.features import Fourier, Polynomial

    kernel = nk.kernels.FeatureKernel(Polynomial())
    np.testing.assert_allclose(kernel(X, NEW), (1 + X @ NEW.T) ** 2, atol=1e-12)
    fourier = nk.kernels.FeatureKernel(Fourier(20_000, 1))(X[:5])
    np.testing.assert_allclose(fourier, nk.kernels.RBF(3**0.5)(X[:5]), atol=0.04)


def test_targets_without_spread_leave_nothing_to_learn():
    model = QuadraticRegressor(n_features=20).fit(X, np.full(24, 7.0))
    assert model.eps_ == 0.0
    np.testing.assert_allclose(model.predict(NEW), 7.0)


def test_several_outputs():
    both = np.stack([Y, -2 * Y], axis=1)
    model = QuadraticRegressor("linear", "square", eps=0.02, algorithm=RIDGE).fit(X, both)
    assert model.predict(NEW).shape == (9, 2) and model.model_.out_dim == 2
    alone = QuadraticRegressor("linear", "square", eps=0.02, algorithm=RIDGE).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], alone.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    (
        ({"features": "furier"}, ValueError, "`features` must be one of .* Did you mean 'fourier'"),
        (
            {"meta_features": "cubes"},
            ValueError,
            "`meta_features` must be one of 'diagonal', 'square'; got 'cubes'",
        ),
        ({"eps": "best"}, ValueError, "`eps` must be one of 'cv', 'optimal'; got 'best'"),
        ({"eps": np.nan}, ValueError, "`eps` must be a number; got nan"),
        ({"order": 3}, ValueError, "`order` must be 1 or 2; got 3"),
        ({"order": 0}, ValueError, "`order` must be at least 1; got 0"),
        ({"cv": 1}, ValueError, "`cv` must be at least 2; got 1"),
        ({"n_features": 0}, ValueError, "`n_features` must be at least 1; got 0"),
        ({"eps_grid": ["much"]}, TypeError, "`eps_grid` must hold numbers"),
        ({"algorithm": "adam"}, TypeError, "`algorithm` must be one that can be solved"),
        ({"algorithm": nk.GradientDescent(1e6)}, ValueError, "`algorithm` = .* diverges: lr = 1e.06 exceeds"),
    ),
    ids=lambda v: str(v) if isinstance(v, dict) else "",
)
def test_bad_parameters_are_named_by_fit_and_not_before(options, error, text):
    model = QuadraticRegressor(**({"n_features": 20} | options))
    with pytest.raises(error, match=text):
        model.fit(X, Y)


def test_an_optimal_eps_never_raises_the_held_out_loss():
    """Random targets and steep meta-features: the loss to second order alone would lead astray."""
    y = np.random.default_rng(5).normal(size=24)
    model = QuadraticRegressor("polynomial", "square", "optimal", nk.Ridge(0.01)).fit(X, y)
    assert model.held_out_loss_[0] <= model.held_out_loss_[1]
