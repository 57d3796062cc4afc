"""The page of the quadratic model, against gradient descent written out in NumPy."""

import numpy as np
import pytest

from nearkernel.lab import Watch
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.quadratic import Quadratic
from support.answers import curves, numbers

CHOSEN = Quadratic(eps=0.25, rate=1.3, bend=0.3, points=5, seed=4)
GRID = np.linspace(-3, 3, 121)


def truth(t):
    return np.sin(2 * t + 1) + 0.15 * np.sin(1 - 2 * t) ** 2


class ByHand:
    """The same draws; `trained` descends step by step."""

    def __init__(self):
        rng = np.random.default_rng(4)
        self.speed, self.phase = 1.6 * rng.normal(size=60), rng.uniform(0, 2 * np.pi, 60)
        self.at = np.linspace(-2.7, 2.7, 5) + rng.uniform(-0.8, 0.8, 5) / 5
        self.here, self.there = self.waves(self.at), self.waves(-self.at)
        self.lr = 1.3 / np.linalg.eigvalsh(self.here @ self.here.T)[-1]

    def waves(self, t):
        return np.cos(np.outer(t, self.speed) + self.phase) / 30**0.5

    def features(self, w, eps):
        return self.here + eps * (self.there @ w)[:, None] * self.there

    def trained(self, eps):
        w = np.zeros(60)
        for _ in range(2500):
            z = self.here @ w + eps / 2 * (self.there @ w) ** 2
            w -= self.lr * self.features(w, eps).T @ (z - truth(self.at))
        return w

    def outputs(self, eps):
        w = self.trained(eps)
        return self.waves(GRID) @ w + eps / 2 * (self.waves(-GRID) @ w) ** 2


def test_orders_are_derivatives_of_trained_outputs():
    hand, answer, h = ByHand(), CHOSEN.theory(), 2e-3
    zero, plus, minus = (hand.outputs(eps) for eps in (0.0, h, -h))
    first, second = (plus - minus) / (2 * h), (plus - 2 * zero + minus) / (2 * h**2)
    shown = curves(answer.pictures[0])
    assert np.allclose(shown["order 0"].y, zero, atol=1e-8)
    assert np.allclose(shown["order 1"].y, zero + 0.25 * first, atol=1e-4)
    assert np.allclose(shown["order 2"].y, zero + 0.25 * first + 0.0625 * second, atol=2e-4)
    error = zero - truth(GRID)
    best = -(error @ first) / (first @ first + 2 * error @ second)
    assert numbers(answer)["eps*"] == pytest.approx(best, rel=2e-3)
    loss = curves(answer.pictures[1])["to second order"]
    parabola = np.mean(error**2) + 2 * loss.x * np.mean(error * first)
    parabola += loss.x**2 * np.mean(first**2 + 2 * error * second)
    assert np.allclose(loss.y, parabola, atol=1e-4)


def test_kernel_moves_as_the_features_of_the_linear_solution():
    hand, answer = ByHand(), CHOSEN.theory()
    w = hand.trained(0.0)
    half = (hand.there @ w)[:, None] * hand.there @ hand.here.T
    eigenvalues = np.linalg.eigvalsh(hand.here @ hand.here.T + 0.25 * (half + half.T))[::-1]
    shown = curves(answer.pictures[3])
    assert np.allclose(shown["after, order 1"].y, eigenvalues, rtol=1e-6)
    assert numbers(answer)["lr · kernel after training"] == pytest.approx(
        1.3 * eigenvalues[0] / shown["before"].y[0]
    )
    x = GRID[::3]
    half = (hand.waves(-x) @ w)[:, None] * hand.waves(-x) @ hand.waves(x).T
    assert np.allclose(answer.pictures[2].parts[0].z, 0.25 * (half + half.T), atol=1e-7)


def test_trained_model_is_that_of_plain_descent():
    hand, told = ByHand(), []
    answer = CHOSEN.check(Watch(lambda share, words, shown: told.append(share)))
    assert np.allclose(curves(answer.pictures[0])["trained"].y, hand.outputs(0.25), atol=1e-7)
    rows = hand.features(hand.trained(0.25), 0.25)
    assert np.allclose(curves(answer.pictures[3])["trained"].y, np.linalg.eigvalsh(rows @ rows.T)[::-1])
    error = curves(answer.pictures[1])["trained"]
    assert error.y[3] == pytest.approx(np.mean((hand.outputs(error.x[3]) - truth(GRID)) ** 2), rel=1e-5)
    found = numbers(answer)
    assert found["error of order 2"] < found["error of order 1"] < found["error of order 0"]
    assert told == sorted(told) and told[-1] == 1.0
    stopped = Watch()
    stopped.stop()
    with pytest.raises(Stopped):
        CHOSEN.check(stopped)


def test_training_that_does_not_settle_is_a_note():
    answer = Quadratic(eps=0.6, rate=1.9, points=5, seed=4).check(Watch())
    assert "does not settle" in answer.notes[0]
    assert "trained" not in curves(answer.pictures[0])
