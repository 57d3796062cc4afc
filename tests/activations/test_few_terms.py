"""Series with no more terms than digits, and averages of many variances from those of few."""

import jax
import numpy as np
import pytest

from nearkernel import activations
from nearkernel.activations.averages.chebyshev import interpolated
from nearkernel.activations.averages.sums import sums

rng = np.random.default_rng(0)


@pytest.mark.parametrize("largest", [0.05, 0.99])
@pytest.mark.parametrize("terms", [16, 64])
def test_terms_that_are_left_out_are_rounding_errors(largest, terms):
    tail1, tail2 = (rng.uniform(-1, 1, size=(terms, *shape)) / np.sqrt(terms) for shape in ((5, 1), (1, 6)))
    w = rng.uniform(-largest, largest, size=(5, 6))
    powers = np.arange(terms)[:, None, None]
    value = (tail1 * tail2 * w**powers).sum(axis=0)
    slope = (tail1[1:] * tail2[1:] * powers[1:] * w ** (powers[1:] - 1)).sum(axis=0)
    with jax.enable_x64(True):
        found = [np.asarray(part) for part in jax.jit(sums)(tail1, tail2, w)]
        by_w = np.asarray(jax.grad(lambda w: sums(tail1, tail2, w)[0].sum())(w))
    assert np.abs(found[0] - value).max() < 1e-15
    assert np.abs(found[1] - slope).max() < 1e-14 and np.abs(by_w - slope).max() < 1e-14


@pytest.mark.parametrize(
    "name, low, high", [("tanh", 1.3, 1.9), ("softplus", 0.2, 9.0), ("sigmoid", 1.0, 1.0)]
)
def test_averages_of_many_variances_are_those_of_each(name, low, high):
    q, calls = rng.uniform(low, high, 400), []
    ready = activations.get(name).prepared(q)

    def counted(q):
        calls.append(len(q))
        return ready._row_averages(q)

    found, each = interpolated(counted, q), ready._row_averages(q)
    assert max(calls) <= 96  # never all of them
    assert np.abs(found - each).max() <= 2e-14 * np.abs(each).max()


def test_what_is_not_smooth_is_asked_for_everywhere():
    q = rng.uniform(0.5, 2.0, 300)
    assert np.array_equal(interpolated(lambda q: np.abs(q - 1.0)[None], q), np.abs(q - 1.0)[None])
