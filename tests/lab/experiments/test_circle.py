"""The experiment on the circle against kernels in closed form and matrix exponentials, and against real networks."""

import numpy as np
import pytest
import scipy.linalg

from nearkernel.lab import Watch, find
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.circle import data
from support.answers import number, part

Circle = find("circle")


def erf_kernels(a, b, weight_var, bias_var):
    """Covariance and tangent kernel of one hidden layer of erf neurons, for angles (n,) and (m,)."""
    first = bias_var + weight_var * np.cos(a[:, None] - b) / 2
    wide = 1 + 2 * (bias_var + weight_var / 2)
    start = bias_var + weight_var * 2 / np.pi * np.arcsin(2 * first / wide)
    slope = 4 / np.pi / np.sqrt(wide**2 - 4 * first**2)
    return start, start + weight_var * slope * first


def test_the_law_of_trained_networks():
    chosen = Circle(time=0.6, depth=1, activation="erf", points=7, weight_var=1.7, bias_var=0.4)
    answer, (angles, y) = chosen.theory(), data(chosen.points)
    new = part(answer, 0, "theory").x
    k_aa, t_aa = erf_kernels(angles, angles, 1.7, 0.4)
    k_ba, t_ba = erf_kernels(new, angles, 1.7, 0.4)
    k_bb, _ = erf_kernels(new, new, 1.7, 0.4)
    left = scipy.linalg.expm(-0.6 * t_aa)
    response = t_ba @ np.linalg.solve(t_aa, np.eye(7) - left)
    cov = k_bb - response @ k_ba.T - k_ba @ response.T + response @ k_aa @ response.T
    np.testing.assert_allclose(part(answer, 0, "theory").y, response @ y, atol=1e-9)
    np.testing.assert_allclose(part(answer, 1, "theory").y, np.sqrt(np.diagonal(cov)), atol=1e-9)
    np.testing.assert_allclose(part(answer, 1, "at initialization").y, np.sqrt(np.diagonal(k_bb)), atol=1e-9)
    loss = 0.5 * np.sum((left @ y) ** 2) + 0.5 * np.trace(left @ k_aa @ left)
    np.testing.assert_allclose(number(answer, "loss"), loss, rtol=1e-8)
    slowest = 1 / np.linalg.eigvalsh(t_aa)[0]
    np.testing.assert_allclose(number(answer, "slowest time"), slowest, rtol=1e-6)


def test_trained_networks_agree_and_can_be_stopped():
    chosen = Circle(time=0.5, depth=1, activation="erf", points=3, width=100, networks=40)
    seen = []
    answer = chosen.check(Watch(lambda *event: seen.append(event)))
    shares = [share for share, _, _ in seen]
    assert shares == sorted(shares) and sum(event[2] is not None for event in seen) == 5
    for picture in (0, 1):
        trained, theory = part(answer, picture, "mean of networks"), part(answer, picture, "theory")
        # A width of 100 is not infinite: 0.05 allow for that.
        assert np.all(np.abs(trained.y - theory.y[::8]) < 4 * trained.sem + 0.05)
    trained, theory = part(answer, 2, "mean of networks"), part(answer, 2, "theory")
    expected = np.exp(np.interp(np.log(trained.x), np.log(theory.x), np.log(theory.y + 1e-30)))
    assert np.all(np.abs(trained.y - expected) < 4 * trained.sem + 0.05 * expected)
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        chosen.check(watch)


def test_long_training_is_cut_and_said():
    time, steps, notes = Circle(time=1000.0, depth=1, points=16, activation="erf")._plan()
    assert time < 1000 and steps == 3000 and f"{time:.3g}" in notes[0]
    assert Circle(time=0.01, depth=1, points=16, activation="erf")._plan()[1:] == (100, ())


@pytest.mark.parametrize("settings", [{"time": 1000.0, "bias_var": 0.0}, {"time": 0.001, "weight_var": 4.0}])
def test_the_ends_of_all_settings(settings):
    answer = Circle(points=16, depth=1, activation="erf", **settings).theory()
    assert all(np.isfinite(each.y).all() for picture in answer.pictures for each in picture.parts)
