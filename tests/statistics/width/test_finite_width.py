"""Every correction of order 1/n against networks that were drawn, extrapolated to infinite width where needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.width.fluctuations import FIELDS
from support import helpers

pytestmark = pytest.mark.slow
OUTPUTS = [FIELDS[letter] for letter in "VDFAB"]
MEANS = [FIELDS[letter] for letter in "GH"]
BEYOND = [FIELDS[letter] for letter in "PQRSTU"]


def assert_agrees(make, x, fields, widths, size, sigmas=4.0):
    """`make(n)` is a network; the wider, the fewer are drawn."""
    found = []
    for n in widths:
        net = make(n)
        draws = max(size * widths[0] // n, 500)
        found.append(nk.measure(nk.theory.observables(net, x, fields), net, draws, jax.random.key(n)))
    limit = found[0]
    if len(widths) > 1:
        limit = nk.theory.extrapolated(found, [make(n).widths[-1] for n in widths])
    theory = nk.propagate(net, x, order=1)[len(net.sizes) - 1]
    for name in fields:
        expected = getattr(theory, name)
        deviation = (limit.mean[name] - expected) / np.maximum(
            limit.sem[name], 1e-12 * (1 + np.abs(expected))
        )
        assert np.abs(deviation).max() <= sigmas, (name, deviation)
    return limit, theory


def network(activation, shape, weight_var=1.5, bias_var=0.1, out=2):
    return lambda n: nk.MLP(3, tuple(n * ratio for ratio in shape), out, activation, weight_var, bias_var)


@pytest.mark.parametrize("activation", ["tanh", "relu", "silu", helpers.hard_tanh])
def test_one_hidden_layer_has_no_further_corrections(activation):
    """Layer 2 is exact at every width, so one width is enough, and any."""
    assert_agrees(network(activation, (1,)), helpers.points(2, 3, 2), [*OUTPUTS, *MEANS], (3,), 20_000)


@pytest.mark.parametrize(
    "activation, shape, inputs, variances",
    [
        ("tanh", (2, 1, 3), 2, (1.5, 0.1)),
        ("gelu", (1, 1), 1, (1.98305826, 0.17292239)),
        ("relu", (1, 1), 2, (2.0, 0.1)),
        ("sin", (1, 2), 3, (1.3, 0.1)),
        (helpers.hard_tanh, (1, 1), 2, (1.5, 0.1)),
    ],
)
def test_outputs_and_tangent_kernel(activation, shape, inputs, variances):
    x = helpers.points(inputs, 3, 7)
    limit, theory = assert_agrees(network(activation, shape, *variances), x, OUTPUTS, (8, 16), 30_000)
    size = np.abs(theory.ntk_variance_b)
    assert np.median(limit.sem["ntk_variance_b"]) < 0.1 * size.max()  # the agreement means something


def test_layers_have_variances_and_activations_of_their_own():
    make = lambda n: nk.MLP(
        3, (2 * n, n, n), 2, ("gelu", "tanh", "sin"), (1.2, 0.8, 1.6, 1.4), (0.3, 0.0, 0.1, 0.2)
    )
    assert_agrees(make, helpers.points(2, 3, 7), OUTPUTS, (8, 16, 24), 30_000)
    short = lambda n: nk.MLP(3, (2 * n, n), 2, ("gelu", "tanh"), (1.2, 0.8, 1.6), (0.3, 0.0, 0.1))
    assert_agrees(short, helpers.points(1, 3, 7), BEYOND, (8, 16, 24), 6_000)


def test_means_are_shifted():
    """G and H are small beside the spread of a network: one input, many narrow networks."""
    x = 0.8 * np.ones((1, 3))
    limit, theory = assert_agrees(network("erf", (1, 1), 1.6, 0.0), x, MEANS, (4, 8), 200_000)
    for name in MEANS:
        assert abs(getattr(theory, name).item()) > 3 * limit.sem[name].item(), name


@pytest.mark.parametrize(
    "activation, inputs, shape", [("tanh", 2, (1,)), ("gelu", 1, (1, 1)), ("tanh", 2, (1, 1))]
)
def test_derivatives_of_the_tangent_kernel(activation, inputs, shape):
    x = helpers.points(inputs, 3, 4)
    widths = (6,) if shape == (1,) else (8, 16, 24)  # a line through 8 and 16 would be biased
    assert_agrees(network(activation, shape, 1.4, 0.1), x, BEYOND, widths, 6_000)


def test_dntk_of_relu_networks_at_one_input():
    assert_agrees(network("relu", (1, 1), 2.0, 0.0), helpers.points(1, 3), ["dntk_q"], (12, 24), 20_000)


def test_observables_are_averages_of_the_definitions():
    """The same tensors from outputs and tangent kernels themselves, with nothing done by hand."""
    x = helpers.points(2, 3, 6)
    net = nk.MLP(3, (4, 5), 2, "tanh", 1.4, 0.2)
    order0 = nk.propagate(net, x)[3]

    def outputs(params):
        return net.layer_outputs(params, jnp.asarray(x))[-1]  # (a, i)

    def plain(params):
        z = outputs(params)
        jacobian = jax.jacrev(outputs)(params)
        flat = [leaf.reshape(2, 2, -1) for leaf in jax.tree.leaves(jacobian)]
        h = sum(jnp.einsum("aip,bjp->ijab", leaf, leaf) for leaf in flat)
        dz = jnp.einsum("ai,bi->iab", z, z) - order0.kernel
        dh = h[[0, 1], [0, 1]] - order0.ntk
        return {
            "four_point": 5 * jnp.einsum("ab,cd->abcd", dz[0], dz[1]),
            "ntk_output_d": 5 * jnp.einsum("ab,cd->abcd", dz[0], dh[1]),
            "ntk_output_f": 5 * jnp.einsum("a,b,cd->abcd", z[:, 0], z[:, 1], h[0, 1]),
            "ntk_variance_a": 5 * jnp.einsum("ab,cd->abcd", dh[0], dh[1]),
            "ntk_variance_b": 5 * jnp.einsum("ab,cd->abcd", h[0, 1], h[0, 1]),
        }

    by_hand = nk.measure(nk.theory.observables(net, x, OUTPUTS), net, 40_000, jax.random.key(1))
    found = nk.measure(plain, net, 80_000, jax.random.key(2))
    for name in OUTPUTS:
        error = np.hypot(found.sem[name], by_hand.sem[name])
        assert np.abs((found.mean[name] - by_hand.mean[name]) / error).max() <= 4, name


def test_derivative_observables_are_averages_with_the_outputs():
    """E[dH z] itself, where the observable has differentiated by the last layer instead."""
    x = helpers.points(1, 3, 6)
    net = nk.MLP(3, (3, 3), 2, "tanh", 1.4, 0.2)

    def plain(params):
        output = lambda i: lambda p: net.layer_outputs(p, jnp.asarray(x))[-1][0, i]
        g = [jax.grad(output(i))(params) for i in (0, 1)]
        along = lambda p, v: jax.jvp(output(0), (p,), (v,))[1]
        twice = lambda u, v: jax.jvp(lambda p: along(p, u), (params,), (v,))[1]
        z = net.layer_outputs(params, jnp.asarray(x))[-1][0]
        return {"dntk_p": 3 * twice(g[1], g[1]) * z[0], "dntk_q": 3 * twice(g[0], g[1]) * z[1]}

    by_hand = nk.measure(nk.theory.observables(net, x, ["dntk_p", "dntk_q"]), net, 30_000, jax.random.key(1))
    found = nk.measure(plain, net, 100_000, jax.random.key(2))
    for name in ("dntk_p", "dntk_q"):
        own = by_hand.mean[name].item(), by_hand.sem[name].item()
        assert abs(found.mean[name] - own[0]) <= 4 * np.hypot(found.sem[name], own[1]), name


def test_mean_tangent_kernel_of_gelu_networks_over_width():
    """Four layers at criticality, widths 32 to 220: the mean falls on theta + H/n within the error bars.

    The networks are those of Guillen, Misof and Gerken, arXiv:2508.11522.
    """
    x = np.array([[1.0, -0.4, 0.6]])
    point = nk.critical("gelu")
    np.testing.assert_allclose(point.weight_var, 1.98305826, atol=5e-9)
    for n, size in ((32, 40_000), (64, 10_000), (220, 600)):
        net = nk.MLP(3, (n,) * 3, 1, "gelu", point.weight_var, point.bias_var)
        theory = nk.propagate(net, x, order=1)[4]
        found = nk.measure(nk.theory.observables(net, x, "ntk_correction"), net, size, jax.random.key(n))
        next_order = 0.3 * np.abs(theory.ntk_correction) * 32 / n  # of 1/n^2
        assert (
            np.abs(found.mean["ntk_correction"] - theory.ntk_correction)
            <= 4 * found.sem["ntk_correction"] + next_order
        )
