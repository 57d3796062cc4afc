"""The mean motion of the tangent kernel of relu networks of any width, against drawn ones."""

import itertools

import numpy as np
import pytest

import nearkernel as nk


def moved(widths, slopes, size, seed, d=3, c=2.0):
    """z grad z . grad Theta of `size` networks, by a difference along the gradient; x has |x|^2 = d."""
    rng = np.random.default_rng(seed)
    sizes = (d, *widths, 1)
    weights = [rng.normal(size=(size, a, b)) * np.sqrt(c / a) for a, b in itertools.pairwise(sizes)]

    def kernel(weights):
        h, factors = [np.ones((size, d))], []
        for weight in weights[:-1]:
            z = np.einsum("bi,bij->bj", h[-1], weight)
            factors.append(np.where(z > 0, slopes[0], slopes[1]))
            h.append(factors[-1] * z)
        out = np.einsum("bi,bij->bj", h[-1], weights[-1])[:, 0]
        signal, gradients, theta = np.ones((size, 1)), [], 0.0
        for at in range(len(weights) - 1, -1, -1):
            lam = c / sizes[at]
            gradients.insert(0, lam * h[at][:, :, None] * signal[:, None, :])
            theta = theta + lam * np.sum(h[at] ** 2, axis=1) * np.sum(signal**2, axis=1)
            if at:
                signal = np.einsum("bij,bj->bi", weights[at], signal) * factors[at - 1]
        return out, theta, gradients

    out, theta, gradients = kernel(weights)
    step = 1e-6 / np.maximum(theta, 1e-9)
    ends = [
        kernel([w + sign * step[:, None, None] * g for w, g in zip(weights, gradients, strict=True)])[1]
        for sign in (1, -1)
    ]
    return out * (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize(
    ("widths", "activation", "slopes"),
    [((4,), "relu", (1.0, 0.0)), ((5, 4, 6), "relu", (1.0, 0.0)), ((4, 4), "leaky_relu(0.3)", (1.0, 0.3))],
)
def test_the_kernel_moves_as_theory_says_at_small_widths(widths, activation, slopes):
    net = nk.MLP(3, widths, 1, activation, weight_var=2.0)
    theory = nk.theory.relu_ntk_change(net, np.ones((1, 3)))[0]
    found = moved(widths, slopes, 60_000, 0)
    assert abs(found.mean() - theory) < 4 * found.std() / len(found) ** 0.5
    assert found.std() / len(found) ** 0.5 < 0.1 * theory


def test_it_is_of_order_depth_over_width():
    relative = [
        nk.theory.relu_ntk_change(net, np.ones((1, 3)))[0]
        / nk.theory.relu_ntk(net, np.ones((1, 3))).mean[0, 0] ** 2
        for net in (nk.MLP(3, (n,) * 8, 1, "relu", weight_var=2.0) for n in (400, 800))
    ]
    assert relative[0] / relative[1] == pytest.approx(2.0, rel=0.05)


def test_errors_name_the_argument():
    with pytest.raises(
        ValueError,
        match=r"`bias_var` must be 0: the change of the tangent kernel is known only without biases; got 0\.1",
    ):
        nk.theory.relu_ntk_change(nk.MLP(3, (4,), bias_var=0.1), np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"`net` must have one output and parametrization=\"ntk\""):
        nk.theory.relu_ntk_change(nk.MLP(3, (4,), 2), np.ones((1, 3)))
