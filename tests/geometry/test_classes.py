"""Class structure of curvature, features and gradients: the parts sum to the whole, and are what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import nearkernel as nk
from support.helpers import compiled

G = nk.geometry
RNG = np.random.default_rng(11)
C = 4
LABELS = np.concatenate([np.arange(C), RNG.integers(0, C, 13)])  # classes of different sizes
X = RNG.normal(size=(len(LABELS), 5)) + 2 * np.eye(5)[LABELS]
NET = nk.MLP(5, (6,), C, "tanh", weight_var=1.5, bias_var=0.1)
with jax.enable_x64(True):
    THETA = jax.tree.map(np.asarray, NET.init(jax.random.key(3)))
    FLAT, UNRAVEL = ravel_pytree(THETA)


def split_by_hand(vectors: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """The definition with loops: vectors (n, C, k), weights (n, C)."""
    k = vectors.shape[2]
    parts = [np.zeros((k, k)) for _ in range(4)]
    for c in range(C):
        rows, wrong = np.flatnonzero(LABELS == c), [l for l in range(C) if l != c]
        means = {l: weights[rows, l] @ vectors[rows, l] / weights[rows, l].sum() for l in wrong}
        total = {l: weights[rows, l].sum() for l in wrong}
        mean = sum(total[l] * means[l] for l in wrong) / sum(total.values())
        parts[0] += sum(total.values()) * np.outer(mean, mean)
        for l in wrong:
            parts[1] += total[l] * np.outer(means[l] - mean, means[l] - mean)
            for i in rows:
                away = vectors[i, l] - means[l]
                parts[2] += weights[i, l] * np.outer(away, away)
        for i in rows:
            parts[3] += weights[i, c] * np.outer(vectors[i, c], vectors[i, c])
    return parts


def losses_of_labels(outputs):
    """(n, C): the cross-entropy of every point under every label."""
    return -jax.nn.log_softmax(outputs)


def test_the_gauss_newton_matrix_is_the_sum_of_its_four_parts():
    gradients = compiled(jax.jacobian(lambda flat: losses_of_labels(NET(UNRAVEL(flat), X))))(
        FLAT
    )  # (n, C, P)
    weights = np.exp(-compiled(lambda flat: losses_of_labels(NET(UNRAVEL(flat), X)))(FLAT))
    split = nk.theory.gauss_newton_classes(NET, THETA, X, LABELS)
    found = [part.dense() for part in split]
    scale = np.abs(found[4]).max()
    assert np.abs(sum(found[:4]) - found[4]).max() < 1e-10 * scale
    for part, expected in zip(found, split_by_hand(gradients, weights), strict=False):
        assert np.abs(part - expected).max() < 1e-12 * scale
    ranks = [np.linalg.matrix_rank(part, tol=1e-9 * scale, hermitian=True) for part in found[:2]]
    assert ranks == [C, C * (C - 2)]


@pytest.mark.parametrize("layer", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_backpropagated_gradients_are_the_sum_of_their_parts(layer):
    split = nk.theory.gradient_classes(NET, THETA, X, np.eye(C)[LABELS], layer)

    def outputs(z):
        return z if layer == 2 else NET.affine(1, THETA[1], NET.activation(z))

    def by_layer(z):
        return jax.vmap(jax.jacobian(lambda row: losses_of_labels(outputs(row[None]))[0]))(z), outputs(z)

    with jax.enable_x64(True):
        z = NET.layer_outputs(THETA, jnp.asarray(X))[layer - 1]
    gradients, out = compiled(by_layer)(np.asarray(z))
    weights = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
    for part, expected in zip(split, split_by_hand(gradients, weights), strict=False):
        np.testing.assert_allclose(part, expected / len(X), atol=1e-13)
    np.testing.assert_allclose(sum(split[:4]), split.total, atol=1e-14)
    whole = np.einsum("nl,nlw,nlv->wv", weights, gradients, gradients) / len(X)
    np.testing.assert_allclose(split.total, whole, atol=1e-13)


def test_gradients_of_convolutions_are_split_too():
    """By all numbers of a layer with positions; those of a network of dense layers are those of the MLP."""
    L = nk.layers
    conv = nk.Network((5, 1), [L.Conv(2, (3,)), L.Activation("tanh"), L.Flatten(), L.Dense(C)])
    params = conv.init(jax.random.key(1))
    split = nk.theory.gradient_classes(conv, params, X[..., None], LABELS, 1)
    assert split.total.shape == (10, 10)
    np.testing.assert_allclose(sum(split[:4]), split.total, atol=1e-14)
    dense = nk.Network(5, [L.Dense(6, 1.5, 0.1), L.Activation("tanh"), L.Dense(C, 1.5, 0.1)])
    for layer in (1, 2):
        one, other = (nk.theory.gradient_classes(net, THETA, X, LABELS, layer) for net in (dense, NET))
        np.testing.assert_allclose(one.total, other.total, atol=1e-13)


def test_labels_are_outputs_by_number_by_row_or_by_name():
    from nearkernel.geometry.curvature.classes import output_labels

    for given in (LABELS, np.eye(C)[LABELS], np.array(list("abcd"))[LABELS], LABELS + 0.5):
        np.testing.assert_array_equal(output_labels(given, len(LABELS), C), LABELS)
    np.testing.assert_array_equal(
        output_labels(2 * (LABELS % 2), len(LABELS), C), 2 * (LABELS % 2)
    )  # some are absent


def test_second_moments_of_features_are_between_plus_within():
    split = nk.theory.feature_classes(X, LABELS)
    np.testing.assert_allclose(split.total, X.T @ X / len(X), atol=1e-14)
    np.testing.assert_allclose(split.between + split.within, split.total, atol=1e-14)
    means = np.stack([X[LABELS == c].mean(axis=0) for c in range(C)])
    np.testing.assert_allclose(split.between, means[LABELS].T @ means[LABELS] / len(X), atol=1e-14)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.gauss_newton_classes(NET, THETA, X, np.zeros(len(X))),
            "`labels` must have at least 2 classes",
        ),
        (
            lambda: nk.theory.gauss_newton_classes(NET, THETA, X, LABELS % 3 + 0.5),
            "`labels` has 3 classes, but the model has 4",
        ),
        (
            lambda: nk.theory.gauss_newton_classes(NET, THETA, X, LABELS[:5]),
            "`labels` must have shape \\(17,\\)",
        ),
        (lambda: nk.theory.gradient_classes(NET, THETA, X, LABELS, 3), "`layer` must be at most 2"),
        (lambda: nk.theory.gradient_classes(NET, THETA, X, LABELS % 2 + 3, 1), "`labels` has 2 classes"),
        (
            lambda: nk.theory.gradient_classes(nk.expand(NET, THETA), THETA, X, LABELS, 1),
            "must be an nk.MLP or nk.Network",
        ),
        (lambda: nk.theory.feature_classes(X[:, 0], LABELS), "`features` must have shape"),
        (
            lambda: nk.theory.feature_classes(X, np.array([0, "a"] * 8 + [0], object)),
            "`labels` must all be numbers or all be texts; got",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
