"""Keywords of nk.forecast of the last release still work, and print what replaces them."""

import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(2)
X, Y, NEW = RNG.normal(size=(3, 4)), np.array([0.4, -0.8, 0.6]), RNG.normal(size=(2, 4))
NET, RELU = nk.MLP(4, (4096,), activation="tanh"), nk.MLP(4, (10**6,), activation="relu")
RICH = nk.MLP(4, (32,), activation="tanh", parametrization="mean_field")
STEPS, KERNEL = nk.GradientDescent(0.05, 3), nk.kernels.NNGP(NET)
FEW, CLOUDS = nk.FiniteWidth(most=64, scrambles=2, exact=0), nk.MeanField(neurons=64, scrambles=2)


@pytest.mark.parametrize(
    "net, old, new",
    [
        (NET, {"order": 0}, None),
        (NET, {"order": 1}, nk.FiniteWidth()),
        (RELU, {"order": 0.5, "neurons": FEW}, nk.Kinks(most=64, scrambles=2)),
        (NET, {"samples": 20, "loss": "huber", "key": 1}, nk.InfiniteWidth(samples=20)),
        (RICH, {"clouds": CLOUDS}, CLOUDS),
        (NET, {"trained": "all"}, None),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_an_old_keyword_is_the_new_theory_and_says_so(net, old, new):
    said = "default" if new is None else f"`theory={new!r}`"
    with pytest.warns(DeprecationWarning, match=r" of nk\.forecast is now .*removed in 0\.5") as told:
        before = nk.forecast(net, X, Y, STEPS, NEW, **old)
    assert said in str(told[0].message) and told[0].filename == __file__
    rest = {name: old[name] for name in ("loss", "key") if name in old}
    after = nk.forecast(net, X, Y, STEPS, NEW, theory=new, **rest)
    np.testing.assert_array_equal(before.mean, after.mean)
    assert type(before) is type(after)


def test_order_by_its_place():
    with pytest.warns(
        DeprecationWarning, match=r"`order` of nk\.forecast is now `theory=nk\.FiniteWidth\(\)`"
    ):
        law = nk.forecast(NET, X, Y, STEPS, NEW, 1)
    assert isinstance(law, nk.results.FiniteForecast)


def test_training_the_last_layer_is_a_pair_of_kernels():
    with pytest.warns(
        DeprecationWarning, match=r"`trained=\"last\"` .* `\(nk\.kernels\.NNGP\(net\),\) \* 2`"
    ):
        old = nk.forecast(NET, X, Y, nk.GradientFlow(), NEW, trained="last")
    new = nk.forecast((KERNEL, KERNEL), X, Y, nk.GradientFlow(), NEW)
    np.testing.assert_allclose(old.cov, new.cov, atol=1e-12)
    with pytest.warns(DeprecationWarning):
        nk.forecast(problem=NET, x=X, y=Y, x_new=NEW, trained="last")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"order": 2}, r"`order` must be 0 .*, 1 .*, or 0\.5 .*; got 2"),
        ({"order": True}, "`order` must be 0 .*; got True"),
        ({"neurons": FEW}, "`neurons` has no effect at order 0"),
        ({"order": 1, "samples": 3}, "`samples` has no effect at order 1"),
        ({"order": 0.5, "clouds": CLOUDS}, r"`clouds` has no effect at order 0\.5"),
        ({"clouds": CLOUDS, "samples": 3}, "`samples` has no effect with `clouds`"),
        ({"order": 1, "neurons": 3}, "`neurons` must be an object of the class FiniteWidth; got 3"),
        ({"clouds": 3}, "`clouds` must be an object of the class MeanField; got 3"),
        ({"trained": "first"}, "`trained` must be one of 'all', 'last'; got 'first'"),
        ({"trained": "last", "order": 1}, '`trained="last"` cannot be combined with `order`'),
        ({"order": 1, "theory": nk.FiniteWidth()}, "`theory` replaces `order`: leave it out"),
        (
            {"order": 0, "samples": 3, "theory": nk.InfiniteWidth()},
            "`theory` replaces `order` and `samples`: leave them",
        ),
    ],
)
def test_combinations_without_effect_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        nk.forecast(NET, X, Y, STEPS, NEW, **options)
    assert "\n" not in str(error.value)


def test_the_last_layer_needs_a_network():
    with pytest.raises(
        ValueError, match='`trained="last"` needs a network: kernels and features have no layers'
    ):
        nk.forecast((KERNEL, KERNEL), X, Y, STEPS, NEW, trained="last")
