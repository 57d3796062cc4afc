"""Relu networks with weights of any symmetric law, against networks that are drawn."""

import numpy as np
import pytest

import nearkernel as nk

X = np.array([[1.0, -0.5], [0.0, 2.0]])


def test_normal_weights_have_the_known_moments():
    net = nk.MLP(2, (5, 3), activation="relu", weight_var=1.7)
    found, law = nk.theory.relu_moments(net, X), nk.theory.input_gradient(net)
    assert found.gradient_second == pytest.approx(law.second_moment, rel=1e-13)
    assert found.gradient_fourth == pytest.approx(law.fourth_moment, rel=1e-13)
    assert found.excess == pytest.approx(3 * ((1 + 5 / 5) * (1 + 5 / 3) - 1), rel=1e-13)


@pytest.mark.parametrize("parametrization", ["ntk", "standard", "mean_field", "mup"])
def test_all_scalings_and_variances_of_each_layer_are_those_of_drawn_networks(parametrization):
    net = nk.MLP(2, (2, 3), activation="relu", weight_var=(1.0, 2.0, 0.5), parametrization=parametrization)
    last = {"mean_field": 1 / 3, "mup": 64 / 3}.get(parametrization, 1.0)
    assert nk.theory.relu_moments(net, X).second == pytest.approx(np.sum(X**2, 1) / 2 * 0.25 * last)


def drawn(rng, size, draw):
    """z at X (size, 2) and the input gradients (size, 2, 2) of relu networks 2-3-2-1 at C_W = 2."""
    shapes = [(2, 3), (3, 2), (2, 1)]
    weights = [np.sqrt(2 / a) * draw(rng, (size, a, b)) for a, b in shapes]
    s = np.broadcast_to(X, (size, 2, 2))
    gradient = np.broadcast_to(np.eye(2), (size, 2, 2, 2))  # network, input, output, coordinate
    for layer, weight in enumerate(weights):
        s = s @ weight
        gradient = np.einsum("kni...,kij->knj...", gradient, weight)
        if layer < 2:
            gradient, s = gradient * (s > 0)[..., None], np.maximum(s, 0)
    return s[:, :, 0], gradient[:, :, 0]


@pytest.mark.parametrize(
    "kurtosis, draw",
    [
        (1.8, lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape)),
        (1.5, lambda rng, shape: np.sqrt(2) * np.sin(rng.uniform(0, 2 * np.pi, shape))),
    ],
)
def test_moments_are_those_of_drawn_networks(kurtosis, draw):
    net = nk.MLP(2, (3, 2), activation="relu", weight_var=2.0)
    found, normal = (nk.theory.relu_moments(net, X, each) for each in (kurtosis, 3.0))
    z, gradient = drawn(np.random.default_rng(3), 400_000, draw)
    square = np.sum(gradient**2, axis=2)
    for theory, other, each in (
        (found.second, None, z**2),
        (found.fourth, normal.fourth, z**4),
        (found.gradient_second, None, square),
        (found.gradient_fourth, normal.gradient_fourth, square**2),
    ):
        mean, sem = each.mean(axis=0), each.std(axis=0) / np.sqrt(len(each))
        assert np.all(np.abs(mean - theory) < 4 * sem)
        assert other is None or np.all(np.abs(mean - other) > 10 * sem)


@pytest.mark.parametrize("kurtosis", [1.2, 1.8, 3.0, 4.5])
def test_symmetric_weights_have_their_moments(kurtosis):
    net = nk.MLP(300, (400,), activation="relu", weight_var=2.0, parametrization="standard")
    weight = np.asarray(nk.models.symmetric_init(net, 1, kurtosis)[0]["weight"]) / np.sqrt(2 / 300)
    for power, theory in ((1, 0.0), (2, 1.0), (3, 0.0), (4, kurtosis)):
        draws = weight.ravel() ** power
        assert abs(draws.mean() - theory) < 4 * draws.std() / np.sqrt(draws.size)
    assert np.abs(weight).max() < (np.sqrt(3) + 1e-12 if kurtosis == 1.8 else np.inf)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.relu_moments(nk.MLP(2, (3,), bias_var=0.1), X), "`bias_var` must be 0"),
        (lambda: nk.theory.relu_moments(nk.MLP(2, (3,)), 0 * X), "must not contain the input 0"),
        (
            lambda: nk.theory.relu_moments(nk.MLP(2, (3,)), X, 0.5),
            "`kurtosis` must be from 1 to 1e6; got 0.5",
        ),
        (lambda: nk.models.symmetric_init(nk.MLP(2, (3,)), 0, 1.0), "greater than 1 and at most 1e6; got 1"),
        (lambda: nk.models.symmetric_init(3, 0), "`net` must be an nk.MLP or nk.Network; got int"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
