"""`forecast(order=1)` by sampled neurons: against the exact tensors, and what it says and refuses."""

import jax
import numpy as np
import pytest

import helpers
import nearkernel as nk
from nearkernel.kernels import layer_kernels
from nearkernel.statistics import SampledNeurons
from nearkernel.statistics._pair_functions import layers_of, mean_corrections

X, NEW = helpers.points(4, 3, 21), helpers.points(2, 3, 22)
Y = np.array([0.8, -0.5, 0.3, 1.1])


def network(activation="tanh", widths=(200,), out=1):
    return nk.MLP(3, widths, out, activation, weight_var=1.4, bias_var=0.2)


def both(net, y, algorithm, neurons, seed=0, dtype="float32"):
    """The exact law and the sampled one."""
    few = SampledNeurons(exact=0, tolerance=1e-9, most=neurons, seed=seed, dtype=dtype)
    return (nk.forecast(net, X, y, algorithm, NEW, order=1, neurons=each) for each in (None, few))


def assert_agrees(exact, found, sigmas=4.0):
    for one, other, error in (
        (exact.terms[1], found.terms[1], found.error.mean),
        (exact.cov_terms[1], found.cov_terms[1], found.error.cov),
    ):
        z = (other - one) / error
        print(np.abs(z).max(), np.abs(error).max() / np.abs(one).max())
        assert np.abs(z).max() < sigmas
    np.testing.assert_allclose(found.terms[0], exact.terms[0], atol=1e-9)
    np.testing.assert_allclose(found.cov_terms[0], exact.cov_terms[0], atol=1e-9)


def test_means_of_kernels_need_pairs_only():
    """G^(1) and H^(1) of three hidden layers of unequal widths, of every pair of inputs."""
    net = network("gelu", (30, 60, 40))
    exact = nk.propagate(net, X, order=1)[4]
    with jax.enable_x64(True):
        found = mean_corrections(net, layers_of(net, layer_kernels(net, X)))
    for one, other in zip((exact.kernel_correction, exact.ntk_correction), found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5 * np.abs(one).max())


def test_sampled_neurons_agree_with_tensors():
    """4 standard errors of 16 scrambles; mean and covariance, one hidden layer, flow for ever."""
    exact, found = both(network(), Y, nk.GradientFlow(), 8192)
    assert_agrees(exact, found)
    assert found.neurons == 8192 and exact.neurons == 0 and not exact.error.mean.any()
    assert found.error.mean.max() < 0.2 * np.abs(exact.terms[1]).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, widths, out, algorithm",
    [
        ("gelu", (2700,), 2, nk.GradientDescent(0.12)),
        ("sin", (2100,), 1, nk.GradientFlow(1.7)),
        ("tanh", (2700, 1800), 1, nk.GradientFlow()),
        ("erf", (1800, 2700), 2, nk.GradientDescent(0.15, 6)),
        ("gelu", (1200, 2700, 1800), 1, nk.GradientDescent(0.1, 9)),
        ("tanh", (1500, 2100, 2700), 1, nk.GradientDescent(0.15)),
    ],
)
def test_any_depth_time_and_number_of_outputs(activation, widths, out, algorithm):
    y = Y if out == 1 else np.stack([Y, [-0.4, 0.2, 0.9, -1.0]], axis=1)
    exact, found = both(network(activation, widths, out), y, algorithm, 2**16)
    assert_agrees(exact, found)


@pytest.mark.slow
def test_cumulants_by_neurons_agree_with_tensors():
    exact, found = both(network("tanh", (90, 60)), Y, nk.GradientDescent(0.15, 6), 2**16)
    for order in (3, 4):
        one, other = (law.cumulants(order, diagonal=True) for law in (exact, found))
        print(order, one, other)
        np.testing.assert_allclose(other, one, atol=0.08 * np.abs(one).max())


def test_neurons_are_added_until_errors_are_small():
    x, new = helpers.points(12, 4, 3), helpers.points(5, 4, 4)
    y = np.sin(x.sum(axis=1))
    net = nk.MLP(4, (4000,), 1, "tanh", weight_var=1.4, bias_var=0.2)
    law = nk.forecast(net, x, y, nk.GradientFlow(2.0), new, order=1)
    std = np.sqrt(np.diagonal(law.cov_terms[0]))
    assert (law.error.mean < 0.01 * std).all() and (np.diagonal(law.error.cov) / (2 * std) < 0.01 * std).all()
    assert set(law.contributions) == {"metric", "ntk mean", "neurons"} and law.neurons == 4096
    later = law.at(2.0)
    np.testing.assert_array_equal(law.mean, later.mean)  # the same neurons
    draws = law.sample(2000, jax.random.key(0))
    assert (
        draws.shape == (2000, 5) and np.abs(draws.mean(axis=0) - law.mean).max() < 5 * std.max() / 2000**0.5
    )
    assert law.quantile(0.5).shape == (5,) and np.isfinite(law.expected_loss(np.zeros(5)).mean)
    with pytest.raises(ValueError, match=r"joint cumulants take tensors of four points, .* `diagonal=True`"):
        law.cumulants(3)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tolerance": 0.0}, "`tolerance` must be greater than 0"),
        ({"scrambles": 1}, "`scrambles` must be at least 2; got 1"),
        ({"dtype": "float16"}, "`dtype` must be"),
    ],
)
def test_bad_choices_get_one_clear_line(options, message):
    with pytest.raises(ValueError, match=message):
        SampledNeurons(**options)
