"""`nk.richness` of every model for which it is known, and a line for the others."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.layers import Activation, Conv, Dense, Flatten
from support.cases import few

RNG = np.random.default_rng(3)
X, NEW, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), np.array([0.9, -0.4, 0.3, -1.1])


def test_richness_of_every_mlp():
    field = nk.MLP(3, (64,), parametrization="mean_field")
    assert nk.richness(nk.MLP(3, (50, 100))) == pytest.approx(0.1)
    assert nk.richness(nk.MLP(3, (100,), parametrization="standard")) == pytest.approx(0.1)
    assert nk.richness(field) == 1.0 and nk.richness(nk.Scaled(field, 4.0)) == 0.25
    assert nk.richness(nk.Scaled(nk.MLP(3, (64,)), 1 / 8)) == pytest.approx(1.0)
    assert nk.richness(nk.MLP(3, ())) == 0.0


@pytest.mark.parametrize("kind", few(["ntk", "standard", "mean_field"], 1))
def test_richness_of_dense_layers_one_after_the_other(kind):
    """As of the MLP that they are: from the same parameters both have the same outputs after training."""
    hidden = "ntk" if kind == "mean_field" else kind
    first, second, last = (
        Dense(width, 1.5, parametrization=scale) for width, scale in ((9, hidden), (16, hidden), (1, kind))
    )
    net = nk.Network((3,), [first, Activation("tanh"), second, Activation("tanh"), last])
    same = nk.MLP(3, (9, 16), 1, "tanh", weight_var=1.5, parametrization=kind)
    assert nk.richness(net) == nk.richness(same) == (1.0 if kind == "mean_field" else 0.25)
    assert nk.richness(nk.Scaled(net, 2.0)) == nk.richness(net) / 2
    params, descent = same.init(jax.random.key(0)), nk.GradientDescent(0.05, 8)
    ends = [nk.simulate(each, params, X, Y, descent).params for each in (net, same)]
    np.testing.assert_allclose(net(ends[0], NEW), same(ends[1], NEW), atol=1e-12)


def test_inputs_may_be_flattened_first():
    images = nk.Network((2, 2, 3), [Flatten(), Dense(64), Activation(), Dense(2)])
    assert nk.richness(images) == 1 / 8 and nk.richness(nk.Network((3,), [Dense(1)])) == 0.0


@pytest.mark.parametrize(
    "model",
    [
        nk.FeatureModel(lambda x: x),
        nk.Network((4, 3), [Conv(8, (3,)), Activation(), Flatten(), Dense(1)]),
        nk.Network((3,), [Dense(8, parametrization="mean_field"), Activation(), Dense(1)]),
        nk.Network((3,), [Dense(8), Activation()]),
    ],
    ids=["features", "convolutions", "mean field within", "no readout"],
)
def test_richness_of_other_models_is_not_known(model):
    name = type(model).__name__
    with pytest.raises(
        TypeError, match=rf"`model` must be an nk\.MLP, an nk\.Network of Dense .* got {name}\."
    ):
        nk.richness(model)
