"""Neural collapse: zero on an exact simplex, far from it on random features, reached by a real classifier."""

import jax
import numpy as np
import pytest

import nearkernel as nk

collapse = nk.geometry.collapse
RNG = np.random.default_rng(5)


def simplex(classes: int, k: int, points: int = 6):
    """Collapsed features (classes points, k), their labels, and the means (classes, k), turned and scaled at random."""
    means = np.eye(classes) - 1 / classes
    axes = np.linalg.svd(means)[2][: classes - 1].T  # the space of the simplex
    turn = np.linalg.qr(RNG.normal(size=(k, classes - 1)))[0]
    means = 2.7 * means @ axes @ turn.T
    return np.repeat(means, points, axis=0), np.repeat(np.arange(classes), points), means


@pytest.mark.parametrize("classes, k", [(2, 1), (3, 2), (3, 3), (4, 11), (10, 9), (10, 300)])
def test_an_exact_simplex_is_zero_in_all_metrics(classes, k):
    features, labels, means = simplex(classes, k)
    shifted = features + RNG.normal(size=k)
    for found in (
        collapse(features, labels),
        collapse(features, labels, 0.3 * means),
        collapse(shifted, labels),
    ):
        values = [found.nc1, found.nc2_norms, found.nc2_angles, found.nc3, found.nc4]
        assert np.abs(values).max() < 1e-12
    biases = -means @ shifted.mean(axis=0)
    with_bias = collapse(shifted, labels, (means.T, biases) if k != classes else (means, biases))
    assert with_bias.nc3 < 1e-12 and with_bias.nc4 == 0


def test_random_features_are_far_from_it():
    labels = np.repeat(np.arange(5), 40)
    found = collapse(RNG.normal(size=(200, 12)), labels, RNG.normal(size=(5, 12)))
    assert found.nc1 > 1 and found.nc2_norms > 0.05 and found.nc2_angles > 0.1
    assert found.nc3 > 0.5 and found.nc4 > 0.3


def test_metrics_follow_their_definitions():
    labels = RNG.integers(0, 3, 50)
    h, weights, biases = (
        RNG.normal(size=(50, 4)) + np.eye(4)[labels],
        RNG.normal(size=(3, 4)),
        RNG.normal(size=3),
    )
    means = np.stack([h[labels == c].mean(axis=0) for c in range(3)])
    m = means - means.mean(axis=0)
    within = (h - means[labels]).T @ (h - means[labels]) / 50
    between = m.T @ m / 3
    found = collapse(h, labels, (weights, biases))
    assert found.nc1 == pytest.approx(np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 3)
    norms = np.linalg.norm(m, axis=1)
    assert found.nc2_norms == pytest.approx(norms.std() / norms.mean())
    cosines = [m[a] @ m[b] / norms[a] / norms[b] for a in range(3) for b in range(3) if a != b]
    assert found.nc2_angles == pytest.approx(np.mean(np.abs(np.array(cosines) + 0.5)))
    assert found.nc3 == pytest.approx(
        np.sum((weights / np.linalg.norm(weights) - m / np.linalg.norm(m)) ** 2)
    )
    nearest = np.argmin(((h[:, None] - means) ** 2).sum(axis=2), axis=1)
    assert found.nc4 == pytest.approx(np.mean(nearest != np.argmax(h @ weights.T + biases, axis=1)))


def test_the_last_layer_of_a_network_gives_its_outputs():
    net = nk.MLP(4, (9,), 3, "relu", weight_var=1.3, bias_var=0.2)
    theta, x = net.init(jax.random.key(0)), RNG.normal(size=(5, 4))
    features, (weights, biases) = nk.theory.last_layer(net, theta, x)
    np.testing.assert_allclose(features @ weights.T + biases, net(theta, x), atol=1e-12)
    net, x = nk.CNN((4, 4, 1), (5, 6), 3), RNG.normal(size=(2, 4, 4, 1))
    features, (weights, biases) = nk.theory.last_layer(net, theta := net.init(jax.random.key(0)), x)
    assert features.shape == (2, 6)
    np.testing.assert_allclose(features @ weights.T + biases, net(theta, x), atol=1e-12)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: collapse(np.ones((4, 2)), [0, 0, 0, 0]), "`labels` must have at least 2 classes"),
        (lambda: collapse(np.ones((4, 2)), [0, 0, 1, 1]), "same mean in every class"),
        (lambda: collapse(np.ones((4, 2)), [0, 1]), "`labels` must have shape \\(4,\\)"),
        (lambda: collapse(np.full((2, 2), np.nan), [0, 1]), "`features` holds 4 NaN"),
        (lambda: collapse(np.eye(4), [0, 0, 1, 1], np.eye(3)), "`classifier` must be weights \\(2, 4\\)"),
        (
            lambda: nk.theory.last_layer(nk.MLP(2, ()), None, np.eye(2)),
            "`model` must be an nk.MLP with hidden",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
