"""Bad input gets one clear line: the argument as it was typed, what came, what to do."""

import fractions

import jax
import numpy as np
import pytest
import scipy.sparse

import nearkernel as nk
from nearkernel._base import check as _check
from nearkernel._run import memory as _memory

X, Y = np.ones((4, 2)) + np.eye(4, 2), np.arange(4.0)
BAD_X = X.copy()
BAD_X[2, 1] = np.nan


@pytest.mark.parametrize(
    "x, message",
    [
        (BAD_X, r"`x` holds 1 NaN or infinite value, the first at index \(2, 1\): remove or impute"),
        (np.full((2, 2), np.inf), r"`x` holds 4 NaN or infinite values, the first at index \(0, 0\)"),
        (np.ones(3), r"`x` must have shape \(n, d\); got \(3,\); for one feature pass `x\[:, None\]`"),
        (np.ones((2, 2, 2)), r"`x` must have shape \(n, d\); got \(2, 2, 2\)"),
        (np.empty((0, 3)), r"`x` is empty: shape \(0, 3\)"),
        (np.array([["a", "b"]]), "`x` must hold numbers; got values such as 'a': encode them first"),
        (np.array([[1.0, "b"]], dtype=object), "`x` must hold numbers; got values such as"),
        ([[1.0, 2.0], [3.0]], "`x` must be a rectangular array; its rows have different lengths"),
        (scipy.sparse.eye(3), r"`x` is a sparse matrix; pass `x.toarray\(\)`"),
        (np.ones((2, 2)) * 1j, "`x` must be real; got complex numbers"),
        (
            np.ma.masked_less(X, 2),
            r"`x` is a masked array with \d masked values: leave those rows out, or fill them",
        ),
        ([np.ma.masked_less(row, 2) for row in X], "`x` is a masked array with"),
        ([[10**400, 1.0]], r"`x` holds a number beyond 1.8e308"),
        (
            np.ones((2, 2)) * 1e160,
            r"`x` holds values up to 1e\+160, whose squares overflow: scale it towards 1",
        ),
        (
            np.array([[1.0, None]], dtype=object),
            "`x` holds 1 NaN|`x` must hold numbers; got values such as 'None'",
        ),
        ([[{"a": 1}]], "`x` must hold numbers; got values such as"),
        (nk.MLP(3), "`x` must hold numbers; got values such as"),
        (jax.random.key(0), "`x` must be an array of numbers; got"),
    ],
)
def test_inputs_that_cannot_be_used_are_named(x, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        nk.kernels.RBF(1.0)(x)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "y, message",
    [
        (np.arange(3.0), "`x` and `y` must have the same number of rows; got 4 and 3"),
        (np.array([0.0, 1.0, np.nan, 2.0]), "`y` holds 1 NaN or infinite value"),
        (np.ones((4, 1, 1)), r"`y` must have shape \(n,\) or \(n, out\); got \(4, 1, 1\)"),
        (np.array(["a", "b", "c", "d"]), "`y` must hold numbers; got values such as 'a'"),
        (
            np.ma.masked_greater(Y, 2.0),
            r"`y` is a masked array with 1 masked value: .* e\.g\. `y\.filled\(0\.0\)`",
        ),
    ],
)
def test_targets_that_cannot_be_used_are_named(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        nk.solve(nk.kernels.RBF(1.0), X, y)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nk.MLP(0), "`in_dim` must be at least 1; got 0"),
        (lambda: nk.MLP(2, (3, 0)), "`widths`.*must be at least 1; got 0"),
        (lambda: nk.MLP(2, 5), "`widths` must be a tuple such as"),
        (lambda: nk.MLP(2, (2.5,)), "`widths`.*must be an integer; got 2.5"),
        (lambda: nk.MLP(2, weight_var=0.0), "`weight_var` must be greater than 0; got 0.0"),
        (lambda: nk.MLP(2, weight_var=np.inf), "`weight_var` must be finite; got inf"),
        (lambda: nk.MLP(2, bias_var=-0.1), "`bias_var` must be at least 0; got -0.1"),
        (lambda: nk.MLP(2, activation="rellu"), "`activation` 'rellu' is unknown.*Did you mean 'relu'"),
        (lambda: nk.MLP(2, activation=3), "`activation` must be a name or a function; got 3"),
        (
            lambda: nk.MLP(2, parametrization="mupp"),
            "`parametrization` must be one of 'ntk', 'standard', 'mean_field', 'mup'",
        ),
        (lambda: nk.kernels.RBF(0.0), "`length` must be greater than 0; got 0.0"),
        (lambda: nk.kernels.Polynomial(0), "`degree` must be at least 1; got 0"),
        (lambda: nk.kernels.NTK("relu"), "`net` must be an nk.MLP"),
        (lambda: nk.kernels.RBF(1.0) * -1.0, "the factor of a kernel` must be at least 0; got -1.0"),
        (lambda: nk.kernels.NTK(nk.MLP(3))(X), "`x` has 2 features per row; 3 expected"),
        (lambda: nk.kernels.RBF(1.0)(X, X[:, :1]), "`x2` has 1 features per row; 2 expected"),
        (
            lambda: _memory.parse_bytes("4 parsecs"),
            '`memory` must be a size such as "4GiB" or a number of bytes',
        ),
        (lambda: _check.one_of("reluu", "name", ["relu"]), "Did you mean 'relu'"),
        (lambda: nk.Ridge(10**400), "`strength` is too large for a floating-point number"),
        (lambda: nk.GradientDescent(0.1, 10**400), "`steps` is too large for a floating-point number"),
        (lambda: nk.GradientDescent(0.1, 2.5), "`steps` must be an integer; got 2.5"),
        (lambda: nk.SGD(0.1, 2, 10**400), "`steps` must be at most 9223372036854775807; got 1000"),
        (
            lambda: nk.GradientFlow(1e200),
            r"`time` must be at most 1e\+150 in size, or infinite, .* got 1e\+200",
        ),
        (lambda: nk.Ridge(np.ones((2, 2))), r"`strength` must be one number; got an array of shape \(2, 2\)"),
        (lambda: nk.Ridge(np.ma.masked), "`strength` must be one number; got masked"),
        (lambda: nk.MLP(np.ones((2, 2))), r"`in_dim` must be an integer; got an array of shape \(2, 2\)"),
        (
            lambda: nk.kernels.layer_kernels(nk.MLP(3), np.ones(3)),
            r"`x` must have shape \(n, d\); got \(3,\)",
        ),
        (
            lambda: jax.jit(lambda x: nk.solve(nk.kernels.RBF(1.0), x, Y))(X),
            "`x` is traced by jit, grad or vmap",
        ),
    ],
)
def test_arguments_out_of_range_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_result_larger_than_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"40 x 40 points needs 12\.5 KiB, but 9\.8 KiB are free"):
        nk.kernels.RBF(1.0)(np.random.default_rng(0).normal(size=(40, 2)))


def test_a_mask_that_hides_nothing_is_no_mask():
    found = nk.kernels.RBF(1.0)(np.ma.array(X, mask=False))
    np.testing.assert_array_equal(found, nk.kernels.RBF(1.0)(X))


def test_whole_numbers_of_every_kind_are_taken():
    for three in (3, np.int8(3), np.array(3), jax.numpy.int32(3)):
        assert nk.MLP(three).in_dim == 3 and type(nk.MLP(three).in_dim) is int


def test_fractions_are_numbers():
    assert nk.Ridge(fractions.Fraction(1, 4)).filter(np.ones(1)) == 0.8


def test_what_came_is_shown_in_one_short_line():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    for value in (np.eye(30), {"a": list(range(100))}, "a\nb" * 100, 10**5000, Odd(), jax.numpy.eye(3)):
        text = _check.shown(value)
        assert "\n" not in text and len(text) <= 60


@pytest.mark.parametrize(
    "wrong, right", [("forcast", "forecast"), ("kernls", "kernels"), ("Gradientdescent", "GradientDescent")]
)
def test_a_misspelled_name_gets_a_suggestion(wrong, right):
    with pytest.raises(
        AttributeError, match=f"module 'nearkernel' has no attribute '{wrong}'. Did you mean '{right}'?"
    ):
        getattr(nk, wrong)
    assert not hasattr(nk, "_private") and not hasattr(nk, "__wrapped__")
