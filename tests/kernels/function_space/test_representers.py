"""Minimizers over a kernel's space, for any loss and within a norm."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import nearkernel as nk

K = nk.kernels
RNG = np.random.default_rng(2)
X = RNG.normal(size=(12, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=12)
SIGNS = np.where(X[:, 0] + 0.5 * RNG.normal(size=12) > 0, 1.0, -1.0)


def huber(f, y):
    return jnp.sum(jnp.sqrt(1 + (f - y) ** 2))


@pytest.mark.parametrize("loss, y", [("logistic", SIGNS), (huber, Y)])
def test_the_minimizer_over_the_span_is_that_over_all_features(loss, y):
    kernel, ridge = K.Polynomial(2), 0.3
    found = nk.theory.representer(kernel, X, y, ridge, loss)
    features = nk.theory.feature_map(kernel, X)
    plain = {
        "logistic": lambda f: np.sum(np.log1p(np.exp(-y * f))),
        huber: lambda f: np.sum(np.sqrt(1 + (f - y) ** 2)),
    }[loss]
    best = scipy.optimize.minimize(
        lambda w: plain(features @ w) + ridge / 2 * w @ w, np.zeros(features.shape[1]), tol=1e-10
    )
    assert found.weights() == pytest.approx(best.x, abs=2e-4)
    assert plain(features @ found.weights()) + ridge / 2 * found.norm() ** 2 <= best.fun + 1e-9


def test_the_squared_loss_as_a_function_is_the_linear_system():
    given = nk.theory.representer(K.RBF(1.0), X, Y, 0.1, lambda f, y: 0.5 * jnp.sum((f - y) ** 2))
    assert given.coefficients == pytest.approx(
        nk.theory.representer(K.RBF(1.0), X, Y, 0.1).coefficients, rel=1e-9
    )


@pytest.mark.parametrize("share", [0.9, 0.3, 1e-3])
def test_a_bound_on_the_norm_is_a_ridge(share):
    kernel = K.RBF(1.0)
    norm = share * nk.theory.representer(kernel, X, Y).norm()
    function, ridge = nk.theory.norm_bounded(kernel, X, Y, norm)
    assert function.norm() == pytest.approx(norm, rel=1e-9) and ridge > 0
    loss, matrix = np.sum((function(X) - Y) ** 2), np.asarray(kernel(X))
    for _ in range(200):  # no other function of that norm fits better
        a = (
            function.coefficients
            + RNG.normal(size=12) * 10 ** RNG.uniform(-4, 0) * np.abs(function.coefficients).max()
        )
        a *= norm / np.sqrt(a @ matrix @ a)
        assert np.sum((matrix @ a - Y) ** 2) >= loss * (1 - 1e-9)


def test_a_bound_that_does_not_bind_is_no_ridge():
    free = nk.theory.representer(K.RBF(1.0), X, Y)
    function, ridge = nk.theory.norm_bounded(K.RBF(1.0), X, Y, 2 * free.norm())
    assert ridge == 0 and function.coefficients == pytest.approx(free.coefficients)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.representer(K.RBF(), X, Y, 0.1, "logistic"), "must hold -1 and 1 only"),
        (lambda: nk.theory.representer(K.RBF(), X, SIGNS, 0.0, "logistic"), "`ridge` must be"),
        (
            lambda: nk.theory.representer(K.RBF(), X, Y, 0.1, lambda f, y: -jnp.sum((f - y) ** 2)),
            "Newton's method found no minimum",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
