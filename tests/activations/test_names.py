"""Activations by name and by callable, and what is said about those that are none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nearkernel.activations import AbstractActivation, get, names
from nearkernel.results import Monomial, PiecewiseLinear
from nearkernel.theory import dual, moments

FORMULAS = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0.0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
    "leaky_relu(0.3)": lambda z: np.where(z > 0, z, 0.3 * z),
    "leaky_relu( -.5 )": lambda z: np.where(z > 0, z, -0.5 * z),
    "leaky_relu(1e-2)": lambda z: np.where(z > 0, z, 0.01 * z),
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "gaussian": lambda z: np.exp(-z * z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "swish": lambda z: z / (1 + np.exp(-z)),
    "mish": lambda z: z * np.tanh(np.log1p(np.exp(z))),
    "elu": lambda z: np.where(z > 0, z, np.expm1(z)),
    "selu": lambda z: 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z)),
    "monomial(1)": lambda z: z,
    "monomial(4)": lambda z: z**4,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_name_means_its_formula(name):
    z = np.linspace(-3.0, 3.0, 31)
    with jax.enable_x64(True):
        np.testing.assert_allclose(get(name)(jnp.asarray(z)), FORMULAS[name](z), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", names())
def test_every_name_is_known(name):
    assert isinstance(get(name), AbstractActivation)
    assert get(name) is get(name)


def test_an_activation_stands_for_itself():
    activation = PiecewiseLinear(0.5, 0.2)
    assert get(activation) is activation


def test_a_callable_agrees_with_its_name():
    q, c = np.array([0.4, 2.0]), np.array([-0.3, 0.9])
    np.testing.assert_allclose(dual(get(jnp.sin), q, q, c), dual(get("sin"), q, q, c), rtol=1e-10)
    np.testing.assert_allclose(dual(get(jnp.abs), q, q, c), dual(get("abs"), q, q, c), rtol=1e-9)


def test_monomials_up_to_degree_19():
    assert get("monomial(19)") == Monomial(19)


@pytest.mark.parametrize(
    "wrong, nearest", [("rellu", "relu"), ("tahn", "tanh"), ("GELU", None), ("leaky-relu", "leaky_relu")]
)
def test_an_unknown_name_suggests_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=f"`activation` '{wrong}' is unknown; known: linear, relu") as caught:
        get(wrong)
    assert (f"Did you mean {nearest!r}?" in str(caught.value)) == (nearest is not None)


@pytest.mark.parametrize("wrong", ["monomial(0)", "monomial(20)", "monomial(2.5)", "monomial(-1)"])
def test_a_monomial_needs_a_whole_degree(wrong):
    with pytest.raises(ValueError, match=r'"monomial\(degree\)" takes an integer degree from 1 to 19'):
        get(wrong)


@pytest.mark.parametrize("wrong", ["leaky_relu()", "leaky_relu(nan)", "leaky_relu(.)", "relu(0.1)", ""])
def test_a_malformed_name_is_unknown(wrong):
    with pytest.raises(ValueError, match="is unknown"):
        get(wrong)


@pytest.mark.parametrize("wrong", [3, None, 0.5, ["relu"]])
def test_neither_name_nor_function_is_refused(wrong):
    with pytest.raises(TypeError, match="`activation` must be a name or a function; got"):
        get(wrong)


class WithArrays(eqx.Module):
    slope: jax.Array

    def __call__(self, z):
        return jnp.tanh(self.slope * z)


def test_a_function_with_arrays_gets_the_hint():
    with pytest.raises(
        TypeError, match="`activation` contains arrays, so its results cannot be cached: wrap it"
    ):
        get(WithArrays(jnp.ones(())))


@pytest.mark.parametrize(
    "function", [np.tanh, lambda z: np.maximum(np.asarray(z), 0.0), lambda z: z if z > 0 else 0.0 * z]
)
def test_numpy_and_branches_get_the_hint(function):
    with pytest.raises(TypeError, match=r"`activation` must be written with jax\.numpy"):
        get(function)


@pytest.mark.parametrize("function", [jnp.sum, lambda z: z[:-1], jnp.cumsum, lambda z: jnp.stack([z, z])])
def test_a_function_that_changes_the_shape_is_refused(function):
    with pytest.raises(ValueError, match=r"must act elementwise: it maps shape \(8, 8\) to"):
        get(function)


@pytest.mark.parametrize("function", [jax.nn.softmax, lambda z: z - jnp.mean(z), lambda z: jnp.sort(z)[::-1]])
def test_a_function_that_mixes_inputs_is_refused(function):
    with pytest.raises(
        ValueError, match="must act elementwise: its value at one input changes with the others"
    ):
        get(function)


@pytest.mark.parametrize("function", [jnp.log, lambda z: 1.0 / (z - z), jnp.sqrt])
def test_a_function_that_is_not_finite_is_refused(function):
    with pytest.raises(ValueError, match="`activation` is not finite between -5 and 5"):
        get(function)


def test_pair_averages_need_a_correlation_or_a_gap():
    relu = get("relu")
    with pytest.raises(ValueError, match="`dual` needs either `correlation` or `gap`, not both"):
        dual(relu, 1.0, 1.0)
    with pytest.raises(ValueError, match="`dual` needs either `correlation` or `gap`, not both"):
        dual(relu, 1.0, 1.0, 0.5, gap=0.5)
    with pytest.raises(ValueError, match=r"`correlation` must lie in \[-1, 1\]"):
        dual(relu, 1.0, 1.0, 1.1)
    with pytest.raises(ValueError, match="`q1` and `q2` are variances and must be at least 0"):
        dual(relu, -1.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="`q` is a variance and must be at least 0"):
        moments(relu, [1.0, -1.0])
    with pytest.raises(ValueError, match="`q2` holds 1 NaN or infinite value"):
        dual(relu, 1.0, np.nan, 0.5)


def test_closed_forms_need_no_quadrature():
    one = np.ones(1)
    with pytest.raises(TypeError, match="PiecewiseLinear is exact in closed form: it has no quadrature"):
        get("relu").quadrature(one, one, one)
