"""Kernels are finite, or say which number overflowed; inputs of length 0 have their right limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

K = nk.kernels
X = np.random.default_rng(0).normal(size=(4, 3))
IMAGES = np.random.default_rng(1).normal(size=(3, 6, 2))
L = nk.layers


def images(activation, last):
    """A network of 1-d images whose variances grow by 1e99 per layer."""
    layer = [L.Conv(3, 3, weight_var=1e99), L.Activation(activation)]
    return nk.Network((6, 2), [*layer * 5, *last, L.Dense(1)])


def residual(activation):
    branch = L.Residual([L.Activation(activation), L.Dense(3, 1e99, 0.1)])
    return nk.Network(3, [L.Dense(3, 1e99, 0.1), *[branch] * 4, L.Dense(1)])


ACTIVATIONS = ["relu", "tanh", "erf", "gelu", "sin", "silu", "monomial(2)"]


@pytest.mark.parametrize("name", few(ACTIVATIONS, 3))
@pytest.mark.parametrize("depth", few([1, 3], {3}))
def test_without_biases_the_kernels_of_a_zero_input_are_zero(name, depth):
    net = nk.MLP(3, (5,) * depth, activation=name)
    x = np.vstack([np.zeros((2, 3)), X])
    for matrix in K.nngp_and_ntk(net, x):
        assert not matrix[:2].any() and not matrix[:, :2].any()
        assert np.isfinite(matrix).all() and (np.diagonal(matrix)[2:] > 0).all()
    for layer in K.layer_kernels(net, x):
        assert not layer[0][:2].any() and np.isfinite(layer[2]).all()
    gradient = jax.grad(lambda z: K.NTK(net)(z).sum())(jnp.asarray(x))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["tanh", "erf", "gelu", "sin", "silu"])
@pytest.mark.parametrize("size", [1e-8, 1e-12, 1e-40, 1e-100])
def test_small_inputs_see_the_slope_at_zero_alone(name, size):
    """Near 0 an activation is s'(0) z: the network is linear, to relative errors of the inputs' square."""
    slope = {"tanh": 1.0, "sin": 1.0, "gelu": 0.5, "silu": 0.5, "erf": 2 / np.sqrt(np.pi)}[name]
    net, linear = (nk.MLP(3, (5, 5), activation=a, weight_var=1.3) for a in (name, "linear"))
    nngp, ntk = K.nngp_and_ntk(net, size * X)
    expected = K.nngp_and_ntk(linear, X)
    np.testing.assert_allclose(nngp / size**2, slope**4 * expected[0], rtol=2e-8, atol=2e-8)
    np.testing.assert_allclose(ntk / size**2, slope**4 * expected[1], rtol=2e-8, atol=2e-8)


def test_moments_go_down_to_a_variance_of_zero():
    found = nk.theory.moments(nk.activations.get("tanh"), np.array([0.0, 1e-30, 1e-22]))
    np.testing.assert_allclose(found.value, [0.0, 1e-30, 1e-22], rtol=1e-10)
    np.testing.assert_allclose(nk.theory.moments(nk.activations.get("sigmoid"), 0.0).value, 0.25, rtol=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: K.RBF(1.0)(X * 1e160), r"`x` holds values up to .*e\+160, whose squares overflow: scale it"),
        (lambda: K.NTK(nk.MLP(3))(X * 1e160), r"`x` holds values up to .*, whose squares overflow"),
        (lambda: nk.MLP(3, weight_var=1e308), r"`weight_var` must be at most 1e\+150 in size.*got 1e\+308"),
        (lambda: nk.MLP(3, weight_var=1e-320), r"`weight_var` must be between 1e-100 and 1e\+100; got"),
        (
            lambda: K.NTK(nk.MLP(3, (4,) * 5, weight_var=1e99))(X),
            r"`x` is too large for this kernel: at row 0, of length .*, the .* of layer \d overflows at "
            r"`weight_var` = 1e\+99, `bias_var` = 0: lower them, or the depth",
        ),
        (
            lambda: K.NNGP(nk.MLP(3, (4,) * 5, weight_var=1e99, activation="silu"))(X),
            r"the variance of layer \d overflows at `weight_var` = 1e\+99",
        ),
        (
            lambda: K.NNGP(images("relu", [L.Attention(4), L.GlobalSumPool()]))(IMAGES),
            r"`x` is too large for this kernel: at row 0, of length .*, the variance of layer 4 overflows at "
            r"`weight_var` = 1e\+99, `bias_var` = 0: lower them, or the depth",
        ),
        (
            lambda: K.NTK(images("silu", [L.Flatten()]))(IMAGES),
            r"`x` is too large for this kernel: at row \d, of length .*, the variance of layer \d overflows at",
        ),
        (
            lambda: K.NTK(images("relu", [L.Flatten()])).diag(IMAGES),
            r"at row 0, of length .*, the variance of layer 4 overflows at `weight_var` = 1e\+99",
        ),
        (
            lambda: K.NNGP(residual("silu"))(X),
            r"at length .*, the variance of layer 4 overflows at `weight_var` = 1e\+99, `bias_var` = 0.1",
        ),
        (
            lambda: K.NNGP(nk.Network(3, [*residual("relu").layers.layers[:2], L.Dense(1)]))(X * 1e80),
            r"the variance of layer 2 overflows at `weight_var` = 1e\+99",
        ),
        (lambda: K.Polynomial(5)(X * 1e100), r"`x` is too large .* Polynomial overflows there"),
        (
            (lambda: (K.RBF(1.0) * 1e150 * 1e150 * 1e100)(X)),
            r"`Multiple\(x1, x2\)` is inf for row 0, of length",
        ),
        (
            lambda: (K.RBF(1.0) * 1e150 * 1e-2 * 1e150 * 1e10)(X),
            r"has entries up to 1e\+308, whose sum overflows",
        ),
        (lambda: (K.RBF(1.0) * 1e-150 * 1e-150)(X), r"has no diagonal entry above 1e-300: numbers underflow"),
        (
            lambda: K.FeatureKernel(lambda x: x * jnp.nan)(X),
            "`phi` must give finite features; feature 0 is nan",
        ),
        (lambda: K.RBF(1e-200), "`length` must be between 1e-150 and 1e.150; got 1e-200"),
        (
            lambda: nk.MLP(3, activation="leaky_relu(1e999)"),
            r"'leaky_relu\(1e999\)' has too large a slope: use",
        ),
        (lambda: nk.results.PiecewiseLinear(1.0, np.inf), "`left` must be finite; got inf"),
    ],
)
def test_what_overflows_is_named(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_in_float32_lengths_overflow_sooner():
    message = r"`x` has a row of length .*e\+20 \(row \d\), whose square overflows"
    with nk.precision("float32"), pytest.raises(ValueError, match=message):
        K.RBF(1.0)(X * 1e20)


def test_a_kernel_of_the_user_is_held_to_it_too():
    class Bad(K.AbstractKernel):
        def matrix(self, x1, x2):
            return np.full((len(x1), len(x1 if x2 is None else x2)), np.nan)

        def traced(self, x1, x2):
            return jnp.zeros((len(x1), len(x1)))

        def diagonal(self, x):
            return np.full(len(x), np.nan)

    for use in (Bad(), lambda x: nk.solve(Bad(), x, X[:, 0]), lambda x: list(Bad().blocks(x)), Bad().diag):
        with pytest.raises(ValueError, match=r"`Bad\(x.*\)` is nan for row 0"):
            use(X)


@pytest.mark.parametrize("solver", ["direct", "cg", "richardson", "eigenpro", "nystrom"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_kernel_that_is_zero_predicts_zero(solver, ridge):
    solution = nk.solve(K.NTK(nk.MLP(3)), np.zeros((4, 3)), np.arange(4.0), nk.Ridge(ridge), solver=solver)
    np.testing.assert_array_equal(solution.predict(X).mean, np.zeros(4))


def test_kernels_of_other_inputs_do_not_mix():
    three, four = K.NTK(nk.MLP(3)), K.NTK(nk.MLP(4))
    for mix in (lambda: three + four, lambda: three * four, lambda: K.RBF(1.0) + (three * (2.0 * four))):
        with pytest.raises(
            ValueError, match="`left` and `right` must take inputs of the same number of features"
        ):
            mix()
    with pytest.raises(
        ValueError, match=r"`matrix` must have shape \(3, 3\), as `kernel` needs; got \(4, 4\)"
    ):
        K.Mahalanobis(three, np.eye(4))
    with pytest.raises(TypeError, match=r"`right` must be a kernel, e.g. nk.kernels.RBF.*; got 3.0"):
        nk.results.Sum(three, 3.0)
    with pytest.raises(ValueError, match=r"`factor` must be at least 0; got -1.0"):
        nk.results.Multiple(three, -1.0)
    assert ((three + K.RBF(1.0)) * 2.0).input_dim() == 3
