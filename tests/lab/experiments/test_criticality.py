"""The page of criticality, against plain quadrature, `propagate` and single draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.lab import Watch
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.criticality import Criticality
from support.answers import curves, numbers

CHOSEN = Criticality(activation="arctan(z)", weight_var=2.3, bias_var=0.1, depth=6, width=60)
Z = np.linspace(-9, 9, 1001)
WEIGHTS = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()


def averages(k):
    """E[s^2] and E[s'^2] of arctan."""
    u = np.sqrt(k) * Z
    return WEIGHTS @ np.arctan(u) ** 2, WEIGHTS @ (1 / (1 + u**2)) ** 2


def deep(weight_var, bias_var):
    k = 1.0
    for _ in range(1000):
        k = bias_var + weight_var * averages(k)[0]
    return k, weight_var * averages(k)[1]


def test_curves_over_depth_are_those_of_propagate():
    answer = CHOSEN.theory()
    angle = np.arccos(0.9)
    x = np.sqrt(2) * np.array([[0.5, 0], [1, 0], [2, 0], [0, 1], [np.cos(angle), np.sin(angle)]])
    layers = nk.propagate(nk.MLP(2, (1,) * 5, 1, jnp.arctan, 2.3, 0.1), x)
    kernel, angles, growth = (curves(picture) for picture in answer.pictures[1:])
    for i, name in enumerate(("from 0.25", "from 1", "from 4")):
        assert np.allclose(kernel[name].y, [layer.kernel[i, i] for layer in layers], rtol=1e-8)
    for i, name in ((3, "from 0"), (4, "from 0.9")):
        assert np.allclose(angles[name].y, [layer.correlation[1, i] for layer in layers], rtol=1e-7)
    factors = [2.3 * averages(k)[1] for k in kernel["from 1"].y[:-1]]
    assert np.allclose(growth["squared"].y, np.cumprod([1.0, *factors]), rtol=1e-8)


def test_phases_are_those_of_long_flows():
    answer = CHOSEN.theory()
    heat, line = answer.pictures[0].parts[0], curves(answer.pictures[0])["χ = 1"]
    for row, column in ((0, 15), (4, 5), (10, 30), (20, 20)):
        chi = deep(heat.x[column], heat.y[row])[1]
        assert heat.z[row, column] == pytest.approx(np.clip(np.log(chi), -1, 1), abs=1e-3)
    assert deep(line.x[150], line.y[150])[1] == pytest.approx(1.0, abs=1e-3)
    found = numbers(answer)
    k, chi = deep(2.3, 0.1)
    assert (found["mean square in deep layers"], found["χ"]) == pytest.approx((k, chi), rel=1e-4)
    assert found["phase"] == ("chaotic" if chi > 1 else "ordered")
    assert found["critical weight variance"] == pytest.approx(1.0)  # s'(0) = 1


def test_what_does_not_exist_is_said():
    answer = Criticality(activation="exp(z)", weight_var=3.0, depth=8).theory()
    assert "no critical point" in answer.notes[0]
    assert np.isnan(curves(answer.pictures[1])["from 4"].y[-1])
    assert numbers(answer)["critical point"] == "none"


def test_drawn_networks_scatter_around_theory():
    told = []
    answer = CHOSEN.check(Watch(lambda share, words, shown: told.append((share, shown))))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0 and told[-1][1] is not None
    for picture in answer.pictures[1:]:
        shown = curves(picture)
        for name in [name for name in shown if name.endswith(", drawn")]:
            drawn, theory = shown[name], shown[name.removesuffix(", drawn")]
            assert np.all(np.abs(drawn.y - theory.y) <= 4 * drawn.sem + 4 / 60 * np.abs(theory.y) + 1e-12)
    stopped = Watch()
    stopped.stop()
    with pytest.raises(Stopped):
        CHOSEN.check(stopped)
