"""The page of implicit bias, against brute force."""

import itertools

import numpy as np
import pytest

from nearkernel.lab import Watch
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.bias import Bias
from support.answers import curves


def data(points, nonzero, seed):
    x, truth = np.random.default_rng(seed).normal(size=(points, 24)), np.zeros(24)
    truth[:nonzero] = np.linspace(1.5, 0.5, nonzero) * (-1.0) ** np.arange(nonzero)
    return x, x @ truth


def test_weights_are_stationary_points_of_the_potential_that_fit():
    chosen = Bias(alpha=0.2, points=5, nonzero=2, seed=3)
    x, y = data(5, 2, 3)
    answer = chosen.theory()
    beta = curves(answer.pictures[2])["theory"].y
    forces = np.arcsinh(beta / (2 * 0.2**2))  # derivative of the potential: in the span of the rows of x
    assert np.abs(x @ beta - y).max() < 1e-10
    assert np.abs(forces - x.T @ np.linalg.lstsq(x.T, forces, rcond=None)[0]).max() < 1e-9
    path = curves(answer.pictures[0])
    column = int(np.argmin(np.abs(path["weight 1"].x - 0.2)))
    assert path["weight 1"].y[column] == pytest.approx(beta[1], abs=0.05)
    assert len(path["zero in truth"].x) == 22 * 30


def test_least_norms_are_those_of_a_search():
    answer = Bias(alpha=3.0, points=3, nonzero=1, seed=5).theory()
    x, y = data(3, 1, 5)
    sizes = [np.abs(np.linalg.solve(x[:, list(c)], y)).sum() for c in itertools.combinations(range(24), 3)]
    shown = curves(answer.pictures[2])
    assert np.abs(shown["least L1 norm"].y).sum() == pytest.approx(min(sizes), rel=1e-7)
    assert np.allclose(shown["least L2 norm"].y, x.T @ np.linalg.solve(x @ x.T, y))
    l1, l2, away = (number.value for number in answer.numbers)
    beta = shown["theory"].y
    assert l1 == pytest.approx(np.abs(beta).sum() / min(sizes), rel=1e-6)
    assert l2 == pytest.approx(1.0, abs=2e-3)  # from a large start
    assert away == pytest.approx(np.linalg.norm(beta - np.eye(24)[0] * 1.5))


def test_potential_is_the_integral_of_its_derivative():
    shown = curves(Bias(alpha=0.5).theory().pictures[3])["potential"]
    fine = np.linspace(0, 2, 20_001)
    integral = np.cumsum(np.arcsinh(fine / (2 * 0.5**2))) * 1e-4
    ratio = np.interp(np.abs(shown.x), fine, integral) / np.interp(1.0, fine, integral)
    assert np.abs(ratio - shown.y).max() < 1e-3


def test_a_check_can_be_stopped():
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        Bias().check(watch)


@pytest.mark.slow
def test_trained_weights_are_those_of_plain_descent():
    chosen = Bias(alpha=0.3, points=4, nonzero=2, seed=2)
    x, y = data(4, 2, 2)
    plus, minus = np.full((2, 24), 0.3)
    for _ in range(15_000):
        force = 4e-4 * 2 * x.T @ (x @ (plus**2 - minus**2) - y)
        plus, minus = plus - force * plus, minus + force * minus
    shares = []
    answer = chosen.check(Watch(lambda share, words, answer: shares.append(share)))
    assert np.abs(curves(answer.pictures[2])["trained"].y - (plus**2 - minus**2)).max() < 2e-3
    assert answer.numbers[3].value < 1e-6
    assert shares == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
