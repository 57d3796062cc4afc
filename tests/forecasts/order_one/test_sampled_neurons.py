"""`nk.FiniteWidth` by sampled neurons: against the exact tensors, and what it says and refuses."""

import warnings

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel import FiniteWidth
from nearkernel.forecasts.order_half import kink_crossings as _crossings
from nearkernel.forecasts.order_one import neuron_average as _sampled
from nearkernel.kernels import layer_kernels
from nearkernel.statistics.width.pair_functions import layers_of, mean_corrections
from support import helpers
from support.cases import few

X, NEW = helpers.points(4, 3, 21), helpers.points(2, 3, 22)
Y = np.array([0.8, -0.5, 0.3, 1.1])


def network(activation="tanh", widths=(200,), out=1):
    return nk.MLP(3, widths, out, activation, weight_var=1.4, bias_var=0.2)


def forecast(net, y, algorithm, neurons=0, x=X, new=NEW, **choices):
    """By exact tensors, or by so many neurons; its warnings are for others to test."""
    options = FiniteWidth(exact=0, tolerance=1e-9, most=neurons, **choices) if neurons else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return nk.forecast(net, x, y, algorithm, new, theory=options or nk.FiniteWidth(exact=99))


def both(net, y, algorithm, neurons, **data):
    """The exact law and the sampled one."""
    return (forecast(net, y, algorithm, count, **data) for count in (0, neurons))


def corrections(law):
    """Of mean and covariance, and the third and fourth cumulant of each output: in the order of `law.error`."""
    return law.terms[1], law.cov_terms[1], *(law.cumulants(order, diagonal=True) for order in (3, 4))


def assert_agrees(exact, found, sigmas=4.0):
    for one, other, error in zip(corrections(exact), corrections(found), found.error, strict=True):
        z = (other - one) / error
        assert np.abs(z).max() < sigmas, np.abs(error).max() / np.abs(one).max()
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
    assert all((part > 0).all() for part in found.error) and not any(part.any() for part in exact.error)
    assert found.error.third.shape == found.error.fourth.shape == found.mean.shape


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
def test_errors_of_cumulants_are_small_where_there_are_many_neurons():
    exact, found = both(network("tanh", (90, 60)), Y, nk.GradientDescent(0.15, 6), 2**16)
    assert_agrees(exact, found)
    for order, error in ((3, found.error.third), (4, found.error.fourth)):  # of skewness and kurtosis
        assert (error < 0.02 * exact.std**order).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, widths, train, new, algorithm",
    [
        ("tanh", (300,), 16, 2, nk.GradientFlow(2.5)),
        ("gelu", (400,), 14, 3, nk.GradientDescent(0.02)),
        ("erf", (500, 400), 14, 1, nk.GradientDescent(0.05, 30)),
    ],
)
def test_more_points_than_a_dozen_agree_with_tensors(activation, widths, train, new, algorithm):
    """Inputs in three dimensions, without biases, whose exact tensors take half a minute."""
    x, x_new = 1.5 * helpers.points(train, 3, 5), 1.5 * helpers.points(new, 3, 6)
    net = nk.MLP(3, widths, 1, activation, weight_var=1.6)
    exact, found = both(net, np.sin(x.sum(axis=1)), algorithm, 2**16, x=x, new=x_new)
    assert_agrees(exact, found)
    assert found.error.mean.max() < 0.1 * np.abs(exact.terms[1]).max()


@pytest.mark.parametrize("points, d, time", few([(24, 3, np.inf), (30, 2, 30.0), (30, 2, np.inf)], 1))
def test_float32_is_enough_or_is_not_used(points, d, time):
    """The same neurons: errors are a hundredth of a standard error, also for an ill-conditioned kernel at a finite
    time; at its end float64 is used whatever is asked for."""
    x, new = helpers.points(points, d, 1), helpers.points(3, d, 2)
    net = nk.MLP(d, (300,), 1, "tanh", weight_var=1.6, bias_var=0.1)
    spectrum = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))
    assert (spectrum[-1] / spectrum[0] > 1e6) == (d == 2) and spectrum[-1] / spectrum[0] > 1e3
    y, flow = np.sin(x.sum(axis=1)), nk.GradientFlow(time)
    one, other = (forecast(net, y, flow, 512, x, new, dtype=dtype) for dtype in ("float32", "float64"))
    same = d == 2 and time == np.inf
    for single, double, error in zip(corrections(one), corrections(other), other.error, strict=True):
        assert np.abs(single - double).max() <= (0.0 if same else 0.01) * error.max()
    assert (one.mean == other.mean).all() == same


@pytest.mark.parametrize("theory, activation", [(nk.FiniteWidth(0, 0.2), "tanh"), (nk.Kinks(0.2), "relu")])
def test_the_tolerance_is_a_fraction_of_the_correction_itself(theory, activation):
    """At any width: a wide network has a small correction, which is asked for all the same."""
    found = []
    for width in (10**8, 10**10):
        law = nk.forecast(network(activation, (width,)), X, Y, nk.GradientFlow(1.5), NEW, theory=theory)
        std = np.sqrt(np.diagonal(law.cov_terms[0].reshape(law.mean.size, -1))).reshape(law.mean.shape)
        assert 0 < law.relative_error <= 0.2 and np.abs(law.error.mean / std).max() <= 0.2 * law.distance
        assert f"correction='known to {100 * law.relative_error:.2g} %'" in repr(law)
        found.append((law.neurons, law.relative_error))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1], rel=1e-3)


def test_neurons_that_were_not_enough_are_told():
    x, new = helpers.points(12, 3, 3), helpers.points(2, 3, 4)
    few = FiniteWidth(tolerance=1e-5, most=300, scrambles=4)
    message = r"with 256 neurons per layer, .* above `tolerance` = 1e-05: .* neurons would be enough; .* larger `most`"
    with pytest.warns(UserWarning, match=message) as told:
        law = nk.forecast(network(widths=(9000,)), x, np.ones(12), nk.GradientFlow(2.0), new, theory=few)
    assert [each.filename for each in told] == [__file__]
    for again in (lambda: law.at(1.0), lambda: law.predict(new[:1])):
        with pytest.warns(UserWarning, match=message) as told:
            again()
        assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize("activation, where", [("tanh", _sampled), ("relu", _crossings)])
def test_neurons_that_are_counted_are_those_that_were_drawn(activation, where, monkeypatch):
    """Also if the number of scrambles is no power of two."""
    drawn, run = [], where.run

    def counting(job, blocks):
        blocks = list(blocks)
        drawn.append(sum(len(block) for block in blocks))
        return run(job, blocks)

    monkeypatch.setattr(where, "run", counting)
    settings = {"tolerance": 1e9, "most": 4096, "scrambles": 12}
    theory = FiniteWidth(exact=0, **settings) if activation == "tanh" else nk.Kinks(**settings)
    law = nk.forecast(network(activation, (10**6,)), X, Y, nk.GradientFlow(1.5), NEW, theory=theory)
    assert drawn == [law.neurons] and law.neurons <= 4096


@pytest.mark.merge
def test_networks_of_layers_are_sampled_as_mlps():
    """Dense and Activation in turn; what has residual blocks is refused beyond a dozen points."""
    L, options = nk.layers, FiniteWidth(tolerance=0.5, most=256, scrambles=4)
    x, new, y = helpers.points(12, 3, 3), helpers.points(2, 3, 4), np.linspace(-1, 1, 12)
    layers = [
        L.Dense(30_000, 1.2),
        L.Activation("gelu"),
        L.Dense(40_000, 1.1, 0.1),
        L.Activation("tanh"),
        L.Dense(1, 1.3),
    ]
    mlp = nk.MLP(3, (30_000, 40_000), 1, ("gelu", "tanh"), (1.2, 1.1, 1.3), (0.0, 0.1, 0.0))
    net, flow = nk.Network(3, layers), nk.GradientFlow(1.0)
    one, other = (nk.forecast(each, x, y, flow, new, theory=options) for each in (net, mlp))
    assert one.neurons == other.neurons > 0
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-5)
    few = nk.forecast(net, x[:2], y[:2], flow, new[:1], theory=options)
    assert few.neurons == 0 and few.predict(x).neurons > 0  # it chooses again
    for other in (nk.ResMLP(3, 4000, 2, activation="gelu", norm=False), nk.MLP(3, ())):
        with pytest.raises(
            ValueError,
            match=r"`theory=nk\.FiniteWidth\(\)` at 14 points, more than `exact` = 12, .* without residual",
        ):
            nk.forecast(other, x, y, flow, new, theory=nk.FiniteWidth())


@pytest.mark.merge
def test_neurons_are_added_until_errors_are_small():
    x, new = helpers.points(12, 4, 3), helpers.points(5, 4, 4)
    y = np.sin(x.sum(axis=1))
    net = nk.MLP(4, (4000,), 1, "tanh", weight_var=1.4, bias_var=0.2)
    law = nk.forecast(net, x, y, nk.GradientFlow(2.0), new, theory=nk.FiniteWidth())
    std = np.sqrt(np.diagonal(law.cov_terms[0]))
    assert (law.error.mean < 0.01 * std).all() and (np.diagonal(law.error.cov) / (2 * std) < 0.01 * std).all()
    assert set(law.contributions) == {"metric", "ntk mean", "neurons"} and law.relative_error <= 0.1
    later = law.at(2.0)
    np.testing.assert_array_equal(law.mean, later.mean)  # the same neurons
    draws = law.sample(2000, jax.random.key(0))
    assert (
        draws.shape == (2000, 5) and np.abs(draws.mean(axis=0) - law.mean).max() < 5 * std.max() / 2000**0.5
    )
    assert law.quantile(0.5).shape == (5,) and np.isfinite(law.expected_loss(np.zeros(5)).mean)
    with pytest.raises(ValueError, match=r"joint cumulants need tensors of four points, .* `diagonal=True`"):
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
        FiniteWidth(**options)
