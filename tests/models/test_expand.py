"""Taylor expansions of models: exact for polynomials, of the right order otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers
from support.cases import few

NET, X = nk.MLP(3, (6,), 2, "tanh", bias_var=0.5), helpers.points(4, 3)
HERE, THERE = NET.init(jax.random.key(1)), NET.init(jax.random.key(2))


def moved(size):
    """HERE + size * THERE."""
    return jax.tree.map(lambda a, b: np.asarray(a) + size * np.asarray(b), HERE, THERE)


def polynomial(degree):
    """A model that is a polynomial of `degree` in its parameters, mixed terms included."""

    def f(params, x):
        inner = x @ params["a"] + params["b"]
        return sum((inner**k) * jnp.sum(params["a"]) ** (degree - k) for k in range(degree + 1))

    return nk.from_function(f)


def parameters(seed, d=3):
    return {"a": helpers.points(d, 2, seed), "b": helpers.points(1, 2, seed + 1)[0]}


@pytest.mark.parametrize("degree", few([1, 2, 3], 1))
def test_exact_for_polynomials_of_the_degree(degree):
    model, x = polynomial(degree), helpers.points(6, 3, 9)
    here, there = parameters(0), parameters(20)
    np.testing.assert_allclose(
        nk.expand(model, here, degree)(there, x), model(there, x), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_error_falls_by_one_power_more_than_the_degree(degree):
    error = helpers.compiled(lambda params: nk.expand(NET, HERE, degree)(params, X) - NET(params, X))
    errors = [np.abs(error(moved(size))).max() for size in (0.04, 0.02)]
    assert abs(np.log2(errors[0] / errors[1]) - (degree + 1)) < 0.2


def test_terms_add_up_and_each_has_its_power():
    expansion = nk.expand(NET, HERE, 3)
    terms = helpers.compiled(lambda params: (expansion.terms(params, X), expansion(params, X)))
    (once, total), (twice, _) = terms(moved(0.3)), terms(moved(0.6))
    np.testing.assert_allclose(sum(once), total, rtol=1e-12)
    for power, (small, large) in enumerate(zip(once, twice, strict=True)):
        np.testing.assert_allclose(large, 2**power * small, rtol=1e-10)


def test_terms_are_float64():
    assert all(term.dtype == np.float64 for term in nk.expand(NET, HERE, 2).terms(THERE, X))


def test_starts_where_it_was_expanded():
    expansion = nk.expand(NET, HERE, 2)
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, expansion.init(), HERE)))
    np.testing.assert_allclose(expansion(expansion.init(), X), NET(HERE, X), rtol=1e-14)


def test_the_tangent_kernel_of_a_linearization_stays_constant():
    linear = nk.expand(NET, HERE)
    at_start = nk.kernels.EmpiricalNTK(NET, HERE)(X)
    np.testing.assert_allclose(nk.kernels.EmpiricalNTK(linear, THERE)(X), at_start, rtol=1e-12)


def test_an_expansion_of_an_expansion_is_the_lower_one():
    twice = helpers.compiled(nk.expand(nk.expand(NET, HERE, 3), HERE, 1))
    once = helpers.compiled(nk.expand(NET, HERE, 1))
    np.testing.assert_allclose(twice(THERE, X), once(THERE, X), rtol=1e-12)


def test_float32_parameters_are_expanded_in_float64():
    single = jax.tree.map(lambda a: np.asarray(a, dtype=np.float32), HERE)
    exact = nk.expand(NET, helpers.to_float64(single), 2)(THERE, X)
    np.testing.assert_allclose(nk.expand(NET, single, 2)(THERE, X), exact, rtol=1e-13)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"degree": 0}, ValueError, "`degree` must be at least 1; got 0"),
        ({"degree": 7}, ValueError, "`degree` must be from 1 to 6; got 7"),
        ({"degree": 1.5}, TypeError, "`degree` must be an integer; got 1.5"),
        ({"params": {}}, TypeError, "`params` must be a tree of floating-point arrays; it has no arrays"),
        ({"params": [np.arange(3)]}, TypeError, "`params` must be a tree of floating-point arrays"),
        (
            {"model": jnp.tanh},
            TypeError,
            r"`model` must be a nearkernel model; got .*: wrap it with nk\.from_function",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        nk.expand(**({"model": NET, "params": HERE} | arguments))
