"""Criticality: known points to many digits, the flow of kernels against the laws stated for it, plain refusals."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import nearkernel as nk
from support import helpers
from support.cases import few

# (C_W, C_b, K*) from 30-digit integrals.
KNOWN = {
    "linear": (1.0, 0.0, None),
    "relu": (2.0, 0.0, None),
    "leaky_relu(0.2)": (2 / 1.04, 0.0, None),
    "abs": (1.0, 0.0, None),
    "tanh": (1.0, 0.0, 0.0),
    "sin": (1.0, 0.0, 0.0),
    "erf": (np.pi / 4, 0.0, 0.0),
    "gelu": (1.98305825744, 0.17292239076, (3 + 17**0.5) / 2),
    "silu": (1.98800467827, 0.55514317072, 14.3201736180),
}
CLASSES = {0.0: "K* = 0", None: "scale-invariant"}


@pytest.mark.parametrize("name", KNOWN)
def test_known_points_to_many_digits(name):
    weight_var, bias_var, fixed_point = KNOWN[name]
    found = nk.critical(name)
    assert found.ok and found.universality == CLASSES.get(fixed_point, "half-stable")
    np.testing.assert_allclose(found.weight_var, weight_var, rtol=1e-10)
    np.testing.assert_allclose(found.bias_var, bias_var, rtol=1e-9, atol=1e-12)
    at = 0.7 if fixed_point is None else max(fixed_point, 1e-9)
    if fixed_point is not None:
        np.testing.assert_allclose(found.fixed_point, fixed_point, rtol=1e-10)
    np.testing.assert_allclose([found.chi_perp(at), found.chi_par(at)], 1.0, atol=1e-7)


def test_users_own_function_is_solved_too():
    mish = nk.critical(jax.nn.mish)
    value = nk.theory.moments(nk.activations.get(jax.nn.mish), mish.fixed_point).value
    np.testing.assert_allclose(mish.bias_var + mish.weight_var * value, mish.fixed_point, rtol=1e-10)
    np.testing.assert_allclose(mish.chi_par(mish.fixed_point), 1.0, atol=1e-9)
    assert mish.universality == "half-stable" and mish.attracts == "below"
    clipped = nk.critical(helpers.hard_tanh)
    assert clipped.universality == "K* = 0" and "more slowly than any power" in clipped.message


def test_no_critical_point_is_said_plainly():
    softplus = nk.critical("softplus")
    assert not softplus.ok and softplus.universality == "none"
    assert "E[s s''] > 0 at every variance" in softplus.message and np.isnan(softplus.weight_var)
    assert softplus.chi_par(2.0, weight_var=1.3) > softplus.chi_perp(2.0, weight_var=1.3)
    cosine = nk.critical("cos")
    assert not cosine.ok and "E[s s''] < 0 at every variance" in cosine.message


def test_kernel_falls_by_the_stated_law():
    for name, slope in (("tanh", 2.0), ("sin", 1.0)):
        found = nk.critical(name)
        net = nk.MLP(3, (1,) * 119, 1, name, weight_var=found.weight_var)
        kernels = [float(layer.kernel[0, 0]) for layer in nk.propagate(net, np.ones((1, 3)))]
        np.testing.assert_allclose(1 / kernels[119] - 1 / kernels[79], 40 * slope, rtol=8e-3)
        np.testing.assert_allclose(found.kernel_law(1000), 1 / (1000 * slope))


def test_gelu_comes_to_rest_from_above_only():
    found = nk.critical("gelu")
    assert found.attracts == "above"
    np.testing.assert_allclose(-1 / found.coefficient, -1.43626e-4, rtol=1e-4)
    settings = dict(weight_vars=[found.weight_var], bias_vars=[found.bias_var])
    np.testing.assert_allclose(
        nk.statistics.phase_diagram("gelu", **settings).kernel, 3.03498143551, rtol=1e-8
    )
    np.testing.assert_allclose(-1 / nk.critical("silu").coefficient, 2.8498e-6, rtol=1e-4)


def test_elu_falls_with_the_square_of_the_depth():
    found = nk.critical(jax.nn.elu)  # its second derivative jumps at 0: K' = K - sqrt(2/pi) K^1.5
    np.testing.assert_allclose([found.power, found.coefficient], [2.0, 2 * np.pi], rtol=1e-8)


# Steep, flat and kinked: s for JAX and for NumPy, the power of the depth, and c of K -> c / depth^power.
DECAYS = {
    "tanh(5 z)": (lambda z: jnp.tanh(5 * z), lambda z: np.tanh(5 * z), 1.0, 0.02),
    "tanh(10 z)": (lambda z: jnp.tanh(10 * z), lambda z: np.tanh(10 * z), 1.0, 0.005),
    "arctan(3 z)": (lambda z: jnp.arctan(3 * z), lambda z: np.arctan(3 * z), 1.0, 1 / 18),
    "z/(1+4z^2)": (lambda z: z / (1 + 4 * z**2), lambda z: z / (1 + 4 * z**2), 1.0, 1 / 24),
    "z/(1+25z^2)": (lambda z: z / (1 + 25 * z**2), lambda z: z / (1 + 25 * z**2), 1.0, 1 / 150),
    "z/(1+z^2/9)": (lambda z: z / (1 + z**2 / 9), lambda z: z / (1 + z**2 / 9), 1.0, 1.5),
    "sin(4 z)": (lambda z: jnp.sin(4 * z), lambda z: np.sin(4 * z), 1.0, 1 / 16),
    "erf(7 z)": (lambda z: jax.scipy.special.erf(7 * z), lambda z: scipy.special.erf(7 * z), 1.0, 1 / 98),
    "0.1 tanh(z/5)": (lambda z: 0.1 * jnp.tanh(z / 5), lambda z: 0.1 * np.tanh(z / 5), 1.0, 12.5),
    "z + 0.01 sin(50 z)": (
        lambda z: z + 0.01 * jnp.sin(50 * z),
        lambda z: z + 0.01 * np.sin(50 * z),
        1.0,
        0.0012,
    ),
    "celu": (
        lambda z: jax.nn.celu(z, 0.1),
        lambda z: np.where(z > 0, z, 0.1 * np.expm1(np.minimum(z, 0) / 0.1)),
        2.0,
        np.pi / 50,
    ),
    "softsign": (lambda z: z / (1 + jnp.abs(z)), lambda z: z / (1 + np.abs(z)), 2.0, np.pi / 8),
    "z - z^7": (lambda z: z - z**7, lambda z: z - z**7, 1 / 3, 630 ** (-1 / 3)),
    "z - z |z|^0.6": (
        lambda z: z - 0.3 * z * jnp.abs(z) ** 0.6 * jnp.exp(-(z**2)),
        lambda z: z - 0.3 * z * np.abs(z) ** 0.6 * np.exp(-(z**2)),
        10 / 3,
        (0.18 * 2**0.3 * scipy.special.gamma(1.8) / scipy.special.gamma(1.5)) ** (-10 / 3),
    ),
}


@pytest.mark.parametrize("name", few(DECAYS, 5))
def test_the_law_of_the_decay_follows_the_scale_of_the_activation(name):
    """Against the exact expansion to 3e-4, and against 20000 layers of K' = C_W E[s^2] by another quadrature.

    K^(-1/power) grows by coefficient^(-1/power) a layer, up to a part of order 1/depth: 3e-4 here.
    """
    function, on_numpy, power, coefficient = DECAYS[name]
    found = nk.critical(function)
    assert found.universality == "K* = 0" and found.attracts == "above"
    np.testing.assert_allclose([found.power, found.coefficient], [power, coefficient], rtol=3e-4)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    z = np.concatenate([2.5 * nodes + 2.5, 3.5 * nodes + 8.5])
    z, weights = np.concatenate([z, -z]), np.concatenate([2.5 * weights, 3.5 * weights])
    weights = np.tile(weights, 2) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    depths = 10_000, 20_000
    kernels, k = {}, found.kernel_law(100.0)  # in the small already, but not where the law is fitted
    for depth in range(100, depths[-1] + 1):
        kernels[depth] = k
        k = found.weight_var * (weights @ on_numpy(np.sqrt(k) * z) ** 2)
    first, last = (kernels[depth] ** (-1 / power) for depth in depths)
    np.testing.assert_allclose(
        (last - first) / (depths[1] - depths[0]), coefficient ** (-1 / power), rtol=3e-4
    )


def test_a_steep_clipped_line_still_follows_no_power():
    found = nk.critical(lambda z: jnp.clip(10 * z, -1, 1))
    assert found.power == 0 and np.isnan(found.coefficient)
    assert found.message == (
        "weight_var = 0.01, bias_var = 0: K falls to 0 more slowly than any power of the depth."
    )


def test_no_slope_at_zero_is_no_critical_point_there():
    assert nk.critical(lambda z: z - jnp.tanh(z)).universality == "none"


def test_correlation_length_is_the_rate_at_which_angles_are_forgotten():
    x = np.array([[1.0, 0.2, -0.4], [0.7, -0.3, 0.9]])
    found = nk.critical("tanh")
    for weight_var, bias_var in ((0.8, 0.05), (2.5, 0.02)):
        layers = nk.propagate(nk.MLP(3, (1,) * 40, 1, "tanh", weight_var, bias_var), x)
        c = np.array([layer.correlation[0, 1] for layer in layers])
        diagram = nk.statistics.phase_diagram("tanh", weight_var, bias_var)
        rate = np.diff(np.log(np.abs(c - diagram.correlation[0, 0])))[18 if weight_var > 1 else 8]
        np.testing.assert_allclose(-1 / rate, found.correlation_length(weight_var, bias_var), rtol=2e-2)
    assert found.correlation_length(1.0) == np.inf


def test_phases_and_the_line_between_them():
    diagram = nk.statistics.phase_diagram("tanh", [0.7, 1.0, 1.5, 3.0], [0.0, 0.1])
    assert diagram.phase.tolist() == [
        ["ordered", "ordered"],
        ["critical", "ordered"],
        ["chaotic", "ordered"],
        ["chaotic", "chaotic"],
    ]
    assert diagram.kernel.shape == (4, 2) and diagram.kernel[0, 0] == 0
    value = nk.theory.moments(nk.activations.get("tanh"), diagram.kernel[3]).value
    np.testing.assert_allclose(diagram.kernel[3], diagram.bias_vars + 3.0 * value, rtol=1e-12)
    assert 0 < diagram.correlation[3, 1] < 1 and diagram.correlation[0, 1] == 1
    weight_var, bias_var = diagram.critical_line[-3]
    np.testing.assert_allclose(
        nk.statistics.phase_diagram("tanh", weight_var, bias_var).chi_perp, 1.0, atol=1e-6
    )


def test_a_diagram_can_be_sent_to_another_process():
    diagram = nk.statistics.phase_diagram("tanh", [0.7, 3.0], [0.1])
    for own in (diagram, diagram):  # before its correlations are known, and after
        copy = pickle.loads(pickle.dumps(own))
        assert (copy.phase == own.phase).all() and (copy.correlation == own.correlation).all()
        assert (copy.depth_scale == own.depth_scale).all() and "_activation" not in repr(copy)


def test_relu_explodes_beyond_two():
    diagram = nk.statistics.phase_diagram("relu", [1.0, 2.0, 3.0], [0.0])
    assert diagram.kernel[:, 0].tolist() == [0.0, 2.0, np.inf]
    assert diagram.phase[:, 0].tolist() == ["ordered", "critical", "chaotic"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.critical(lambda z: jnp.log(z)), "`activation` is not finite between -5 and 5"),
        (lambda: nk.critical(3), "`activation` must be a name or a function; got 3"),
        (lambda: nk.critical("tan"), "`activation` 'tan' is unknown"),
        (
            lambda: nk.critical("softplus").chi_perp(1.0),
            "`weight_var` is required, because no value is critical",
        ),
        (
            lambda: nk.critical("relu").kernel_law(10),
            "K does not decay by a power law here: every",
        ),
        (lambda: nk.critical("tanh").correlation_length(0.0), "`weight_var` must be greater than 0; got 0.0"),
        (
            lambda: nk.statistics.phase_diagram("tanh", [], [0.0]),
            "`weight_vars` must be a vector with at least one value",
        ),
        (
            lambda: nk.statistics.phase_diagram("tanh", [0.0, 1.0], [0.0]),
            "`weight_vars` must be greater than 0; got 0",
        ),
        (
            lambda: nk.statistics.phase_diagram("tanh", [1.0], [-0.1]),
            "`bias_vars` must be at least 0; got -0.1",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        call()
