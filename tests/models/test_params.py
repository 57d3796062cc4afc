"""Trees of parameters: those of a model are taken, others are refused in one line that names the leaf."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

NET = nk.MLP(3, (4,))
PARAMS = NET.init(0)
X = np.random.default_rng(0).normal(size=(5, 3))
Y = X[:, 0]


def changed(leaf):
    return [{"weight": leaf, "bias": PARAMS[0]["bias"]}, PARAMS[1]]


@pytest.mark.parametrize(
    "params, message",
    [
        (
            PARAMS[:1],
            r"`params` must have the structure of `model.init\(key\)`; MLP needs `params\[1\]\['bias'\]`",
        ),
        ([*PARAMS, PARAMS[0]], r"MLP does not use `params\[2\]\['bias'\]`"),
        ({"a": 1.0}, r"MLP needs `params\[0\]\['bias'\]`"),
        (None, r"`params` must be a tree of arrays, e.g. `model.init\(key\)`; got None, which contains none"),
        (
            changed(np.ones((2, 4))),
            r"`params\[0\]\['weight'\]` must have shape \(3, 4\) for this MLP; got \(2, 4\)",
        ),
        (
            changed(np.ones((3, 4)).astype(str)),
            r"`params\[0\]\['weight'\]` must hold numbers; got values such as",
        ),
        (changed(np.ones((3, 4)) * 1j), r"`params\[0\]\['weight'\]` must be real; got complex numbers"),
        (changed(np.ma.masked_greater(np.eye(3, 4), 0)), r"`params\[0\]\['weight'\]` is a masked array"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda params: NET(params, X),
        lambda params: nk.kernels.EmpiricalNTK(NET, params),
        lambda params: nk.expand(NET, params),
        lambda params: nk.simulate(NET, params, X, Y, nk.GradientDescent(0.1, 1)),
        lambda params: nk.geometry.Hessian(NET, params, X, Y),
        lambda params: nk.theory.breakpoints(NET, params, np.zeros(3), np.ones(3)),
    ],
    ids=["call", "kernel", "expand", "simulate", "curvature", "line"],
)
def test_a_tree_of_another_model_is_refused(use, params, message):
    with pytest.raises((ValueError, TypeError)) as error:
        use(params)
    text = str(error.value)
    assert "\n" not in text
    if "floating-point arrays" not in text:  # where derivatives are taken, this is said first
        with pytest.raises((ValueError, TypeError), match=message):
            use(params)


def test_numbers_that_are_not_finite_are_found_before_they_are_used():
    with pytest.raises(ValueError, match=r"`params\[0\]\['weight'\]` holds 12 NaN .* did training diverge"):
        nk.kernels.EmpiricalNTK(NET, changed(np.full((3, 4), np.nan)))


def test_tuples_stand_for_lists():
    as_tuple, algorithm = tuple(PARAMS), nk.GradientDescent(0.05, 3)
    np.testing.assert_array_equal(NET(as_tuple, X), NET(PARAMS, X))
    for method in ("layers", "jacobian"):
        one, other = (
            nk.kernels.EmpiricalNTK(NET, p, NET.lr_factors(), method)(X) for p in (as_tuple, PARAMS)
        )
        np.testing.assert_array_equal(one, other)
    runs = [nk.simulate(NET, p, X, Y, algorithm, lr_factors=NET.lr_factors()) for p in (as_tuple, PARAMS)]
    np.testing.assert_array_equal(runs[0].history["loss"], runs[1].history["loss"])


def test_the_initializer_of_a_function_says_which_trees_fit():
    model = nk.from_function(lambda p, x: x @ p["w"], lambda key: {"w": jax.random.normal(key, (3,))})
    assert nk.kernels.EmpiricalNTK(model, model.init(0))(X).shape == (5, 5)
    with pytest.raises(
        ValueError, match=r"`params\['w'\]` must have shape \(3,\) for this FunctionModel; got \(2,\)"
    ):
        nk.simulate(model, {"w": np.ones(2)}, X, Y, nk.GradientDescent(0.1, 1))
    anything = nk.from_function(lambda p, x: x @ p["w"])
    assert nk.expand(anything, {"w": jnp.ones(3)}).init()["w"].shape == (3,)


@pytest.mark.parametrize(
    "factors, message",
    [
        (jax.tree.map(lambda _: -1.0, PARAMS), r"`lr_factors\[0\]\['bias'\]` must be at least 0; got -1"),
        (jax.tree.map(lambda _: np.nan, PARAMS), r"`lr_factors\[0\]\['bias'\]` holds 1 NaN"),
        (
            NET.lr_factors()[:1],
            r"`lr_factors` must be one number or a tree like `params`.*`lr_factors\[1\]\['bias'\]` is missing",
        ),
        (-1.0, r"`lr_factors` must be greater than 0; got -1"),
        ("own", r"`lr_factors` must be .*got 'own'"),
        (
            [{"weight": np.ones(5), "bias": 1.0}, NET.lr_factors()[1]],
            r"`lr_factors\[0\]\['weight'\]` must be one number or have",
        ),
    ],
)
def test_learning_rate_factors_are_checked(factors, message):
    for use in (
        lambda: nk.kernels.EmpiricalNTK(NET, PARAMS, factors),
        lambda: nk.simulate(NET, PARAMS, X, Y, nk.GradientDescent(0.1, 1), lr_factors=factors),
        lambda: nk.theory.learning_rate_phase(NET, PARAMS, X, Y, 0.1, 1, lr_factors=factors),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            use()


def test_a_factor_for_each_entry_is_what_it_says():
    """No layer can be contracted with such factors: the Jacobian is."""
    rng = np.random.default_rng(1)
    factors = jax.tree.map(lambda leaf: rng.uniform(0.5, 2.0, leaf.shape), PARAMS)
    jacobian = nk.theory.effective_features(NET, PARAMS, X)[:, 0]
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(factors)])
    expected = (jacobian * flat) @ jacobian.T
    np.testing.assert_allclose(nk.kernels.EmpiricalNTK(NET, PARAMS, factors)(X), expected, rtol=1e-12)
    with pytest.raises(ValueError, match='`method="layers"` needs one learning-rate factor for each array'):
        nk.kernels.EmpiricalNTK(NET, PARAMS, factors, "layers")


def test_a_network_larger_than_memory_is_refused_before_it_is_drawn():
    with pytest.raises(
        MemoryError, match=r"`init` of a network with 1,000,000,006,000,000,001 parameters needs"
    ):
        nk.MLP(3, (10**9, 10**9)).init(0)
    with pytest.raises(MemoryError, match="`size` = 1000000000000 random features needs"):
        nk.kernels.RandomFeatures(3, 10**12, 0)


@pytest.mark.parametrize("widths", [{4: 1}, {4, 5}, "44", 4, None])
def test_widths_are_an_ordered_sequence(widths):
    with pytest.raises(TypeError, match=r"`widths` must be a tuple such as \(256, 256\); got"):
        nk.MLP(3, widths)


def test_the_outputs_of_a_feature_model_are_those_of_its_targets():
    with pytest.raises(ValueError, match="`y` has 1 outputs per row; the model has 2"):
        nk.solve(nk.FeatureModel(lambda x: x, out_dim=2), X, Y)
