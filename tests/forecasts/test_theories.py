"""Every theory against every problem: what fits is computed, the rest is refused in one line that says what fits."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts.forecasting import THEORIES

L = nk.layers
RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 4))
Y, LABELS = np.array([0.4, -0.8, 0.6]), np.array([0, 1, 0])
SMOOTH, KINKED = nk.MLP(4, (512,), activation="tanh"), nk.MLP(4, (512,), activation="relu")
RICH = nk.MLP(4, (32,), activation="tanh", parametrization="mean_field")
LAYERS = nk.Network(4, [L.Dense(512), L.Activation("tanh"), L.Dense(1)])
BLOCKS = nk.ResMLP(4, 512, 1, activation="tanh", norm=False)
NORMED = nk.Network(4, [L.Dense(512), L.LayerNorm(), L.Activation("tanh"), L.Dense(1)])
PAIR = nk.kernels.NNGP(SMOOTH), nk.kernels.NTK(SMOOTH)
FEATURES = nk.FeatureModel(jnp.sin, weight_var=0.5)
STEPS, FLOW, MOMENTUM = (
    nk.GradientDescent(0.05, 3),
    nk.GradientFlow(2.0),
    nk.GradientDescent(0.05, 3, momentum=0.5),
)
BATCHES = nk.SGD(0.02, 2, 3)
W, F, K, M = "InfiniteWidth", "FiniteWidth", "Kinks", "MeanField"
PROBLEMS = {
    "smooth": (SMOOTH, STEPS, {}, {W, F, M}),
    "flow": (SMOOTH, FLOW, {}, {W, F, M}),
    "kinked": (KINKED, STEPS, {}, {W, K, M}),
    "mean field": (RICH, STEPS, {}, {M}),
    "scaled": (nk.Scaled(SMOOTH, 0.1), STEPS, {}, {M}),
    "layers": (LAYERS, STEPS, {}, {W, F, M}),
    "blocks": (BLOCKS, STEPS, {}, {W, F}),
    "norm": (NORMED, STEPS, {}, {W}),
    "kernels": (PAIR, STEPS, {}, {W}),
    "features": (FEATURES, STEPS, {}, {W}),
    "momentum": (SMOOTH, MOMENTUM, {}, {W, M}),
    "ridge": (SMOOTH, nk.Ridge(0.1), {}, {W}),
    "batches": (SMOOTH, BATCHES, {"key": 0}, {W, M}),
    "huber": (SMOOTH, STEPS, {"loss": "huber", "key": 0}, {W, M}),
}
CHEAP = {
    W: nk.InfiniteWidth(),
    F: nk.FiniteWidth(),
    K: nk.Kinks(most=64, scrambles=2),
    M: nk.MeanField(neurons=64, scrambles=2),
}


def called(problem: str, theory: nk.forecasts.AbstractTheory):
    model, algorithm, options, _ = PROBLEMS[problem]
    options = dict(options)
    if (isinstance(theory, nk.InfiniteWidth) and algorithm is BATCHES) or (
        isinstance(theory, nk.MeanField) and "loss" in options
    ):
        options.pop(
            "key"
        )  # the moments of SGD are exact, and descent draws nothing: a key would have no effect
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return nk.forecast(model, X, Y, algorithm, NEW, theory=theory, **options)


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_theory_computes_what_it_fits_and_refuses_the_rest(name):
    fitting = PROBLEMS[name][3]
    for each, theory in CHEAP.items():
        if each in fitting:
            law = called(name, theory)
            assert law.mean.shape == (2,) and np.isfinite(law.mean).all() and law.theory is theory
            assert isinstance(law, nk.results.AbstractForecast) and law.predict(NEW[:1]).mean.shape == (1,)
            continue
        with pytest.raises((ValueError, TypeError)) as error:
            called(name, theory)
        assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["kinked", "ridge", "kernels", "scaled"])
def test_a_refusal_names_the_theories_that_fit(name):
    fitting = PROBLEMS[name][3]
    wrong = next(theory for each, theory in CHEAP.items() if each not in fitting)
    with pytest.raises(ValueError, match=r"^`theory=nk\.\w+\(.*\)` needs .*; got .*\. These fit: ") as error:
        called(name, wrong)
    said = str(error.value).partition("These fit: ")[2]
    assert {each for each in CHEAP if f"nk.{each}(" in said} == fitting


def test_a_layer_that_a_theory_does_not_know_is_named_by_its_place():
    for theory in (nk.FiniteWidth(), nk.Kinks()):
        with pytest.raises(
            TypeError, match=r"does not support `layers\[1\]`, LayerNorm.*nk\.InfiniteWidth\(\)"
        ):
            called("norm", theory)


def test_nothing_fits_and_the_error_says_so():
    with pytest.raises(
        ValueError, match=r"needs an `algorithm` that can be solved, .*; got Adam\. No theory fits: train"
    ):
        nk.forecast(SMOOTH, X, Y, nk.Adam(0.1, 3), NEW)


def test_the_default_is_the_limit_of_the_networks_own_parametrization():
    assert isinstance(nk.forecast(SMOOTH, X, Y, STEPS, NEW), nk.results.WideForecast)
    assert isinstance(nk.forecast(RICH, X, Y, STEPS, NEW), nk.results.RichForecast)


def test_theories_print_as_they_are_typed():
    assert [repr(theory) for theory in THEORIES] == [f"nk.{name}()" for name in (W, F, K, M)]
    assert repr(nk.FiniteWidth(exact=9, seed=3)) == "nk.FiniteWidth(exact=9, seed=3)"


@pytest.mark.parametrize("net", [SMOOTH, LAYERS], ids=["MLP", "layers"])
@pytest.mark.parametrize(
    "algorithm", [STEPS, FLOW, nk.SGD(0.05, None, 3, momentum=0.3)], ids=["descent", "flow", "SGD"]
)
def test_a_network_is_taken_at_its_own_richness(net, algorithm):
    """A network of width N is sqrt(N) times one in mean-field scaling, whose rates and times are N times shorter."""
    wide = nk.MLP(4, (512,), activation="tanh", parametrization="mean_field")
    shorter = {"time": algorithm.time / 512} if algorithm is FLOW else {"lr": algorithm.lr / 512}
    theory = CHEAP[M]
    ours = nk.forecast(net, X, Y, algorithm, NEW, theory=theory)
    by_hand = nk.forecast(
        nk.Scaled(wide, 512**0.5), X, Y, dataclasses.replace(algorithm, **shorter), NEW, theory=theory
    )
    np.testing.assert_allclose(ours.mean, by_hand.mean, rtol=1e-9)
    np.testing.assert_allclose(ours.train, by_hand.train, rtol=1e-9, atol=1e-12)
    assert ours.richness == pytest.approx(512**-0.5) == pytest.approx(nk.richness(net))
    assert ours.times[-1] == (2.0 if algorithm is FLOW else 3)


def test_lazy_networks_of_the_rich_limit_are_those_of_infinite_width():
    """At a richness of 1/10000 both theories have the same mean, to the error of the clouds."""
    net = nk.MLP(4, (10**8,), activation="tanh", weight_var=1.3)
    rich = nk.forecast(net, X, Y, STEPS, NEW, theory=nk.MeanField(neurons=256, scrambles=4))
    lazy = nk.forecast(net, X, Y, STEPS, NEW)
    assert (np.abs(rich.mean - lazy.mean) < 4 * rich.error + 1e-6).all()


def test_a_scale_divides_the_richness():
    model = nk.Scaled(SMOOTH, 0.05)
    law = nk.forecast(model, X, Y, nk.GradientDescent(20.0, 2), NEW, theory=CHEAP[M])
    assert law.richness == pytest.approx(nk.richness(model)) == pytest.approx(20 / 512**0.5)
    assert law.regime.theory == nk.MeanField()


@pytest.mark.parametrize(
    "net, scale, theory",
    [(SMOOTH, 0.1, W), (SMOOTH, 5.0, F), (KINKED, 5.0, K), (RICH, 1.0, M)],
)
def test_regime_recommends_a_theory_as_an_object(net, scale, theory):
    found = nk.regime(net, scale * Y / np.sqrt(np.mean(Y**2)))
    assert (
        type(found.theory).__name__ == theory and f"use nk.forecast with theory=nk.{theory}()" in found.advice
    )
    assert found.name in found.theory.regimes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert nk.forecast(net, X, Y, STEPS, NEW, theory=found.theory).ok


def test_models_of_unknown_richness_have_no_theory():
    other = nk.from_function(lambda theta, x: x @ theta)
    assert nk.regime(other, Y, correction=0.001).theory is None
