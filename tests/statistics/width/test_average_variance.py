"""The variance of averages over a layer."""

import numpy as np
import pytest

import nearkernel as nk

NET = nk.MLP(3, (40, 60), 1, "tanh", weight_var=1.5, bias_var=0.2)
X = np.array([[0.5, -1.0, 0.3]])


@pytest.mark.parametrize("function", [np.cos, np.square, lambda z: z**4], ids=["cos", "square", "fourth"])
def test_averages_vary_as_theory_says(function):
    rng, size = np.random.default_rng(0), 6000
    first = np.sqrt(1.5 / 3) * (X @ rng.normal(size=(size, 3, 40)))[:, 0] + np.sqrt(0.2) * rng.normal(
        size=(size, 40)
    )
    second = np.einsum("si,sij->sj", np.tanh(first), np.sqrt(1.5 / 40) * rng.normal(size=(size, 40, 60)))
    second += np.sqrt(0.2) * rng.normal(size=(size, 60))
    for layer, z in ((1, first), (2, second)):
        theory = nk.theory.average_variance(NET, X, function, layer)
        averages = function(z).mean(axis=1)
        found = averages.var(ddof=1)
        error = np.std((averages - averages.mean()) ** 2) / size**0.5
        assert abs(found - theory) < 4 * error + 0.06 * theory * (layer - 1)  # the next order of 1/n


def test_errors_name_the_argument():
    A = nk.theory.average_variance
    with pytest.raises(TypeError, match=r"`net` must be an nk\.MLP or nk\.Network; got int"):
        A(3, X, np.cos)
    with pytest.raises(ValueError, match=r"`x` must be one input, \(1, d\); got 2 inputs"):
        A(NET, np.ones((2, 3)), np.cos)
    with pytest.raises(TypeError, match=r"`function` must be a function of preactivations; got 3"):
        A(NET, X, 3)
    with pytest.raises(ValueError, match=r"`layer` must be at most 2, the last hidden layer; got 3"):
        A(NET, X, np.cos, 3)
    with pytest.raises(ValueError, match=r"`function` must return one value per neuron, \(200,\); got \(\)"):
        A(NET, X, np.sum)
