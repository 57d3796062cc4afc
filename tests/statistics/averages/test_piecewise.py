"""Order 1/width of activations with a continuous slope whose second derivative jumps, such as elu."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.averages.base import ORDERS
from nearkernel.statistics.averages.piecewise import Pieces
from nearkernel.statistics.averages.quadrature import Smooth
from nearkernel.statistics.width.fluctuations import FIELDS
from support import helpers


class Cut:
    """tanh, in pieces that it does not need."""

    breaks = (-0.2, 0.3)

    def __call__(self, z):
        return jnp.tanh(z)


def kernels():
    factor = helpers.points(4, 6)
    near = np.concatenate([factor[:2], factor[:2] + 0.05 * helpers.points(2, 6, 3)])
    return {"plain": factor @ factor.T / 6, "nearly equal": near @ near.T / 6}


@pytest.mark.slow
@pytest.mark.parametrize("name", kernels())
def test_pieces_of_a_smooth_function_change_nothing(name):
    kernel = kernels()[name]
    with jax.enable_x64(True):
        found = Pieces(Cut()).averages(kernel, True)
        expected = Smooth(nk.activations.get("tanh"), float(kernel.max())).averages(kernel)
    for orders in ORDERS:
        np.testing.assert_allclose(found.four(*orders), expected.four(*orders), atol=5e-5)
    off = ~np.eye(4, dtype=bool)
    for i, j in ((0, 0), (1, 1), (2, 0), (2, 2), (3, 1), (4, 0), (4, 2), (3, 3), (5, 1)):
        np.testing.assert_allclose(found.pair(i, j)[off], expected.pair(i, j)[off], atol=5e-5)
        if (i, j) not in ((4, 2), (3, 3), (5, 1)):
            np.testing.assert_allclose(found.pair(i, j), expected.pair(i, j), atol=1e-8)
    total = lambda e: np.diagonal(2 * e.pair(5, 1) + 8 * e.pair(4, 2) + 6 * e.pair(3, 3))
    np.testing.assert_allclose(total(found), total(expected), atol=1e-8)


def elu_averages(q, power):
    """E[s'^power], E[s'' s'^power] and E[s''' s'^power] of elu by a fine rule; s''' = e^z (z < 0) - delta(z)."""
    e = np.linspace(-12.0, 0.0, 200_001) * np.sqrt(q)
    density = np.exp(-0.5 * e * e / q) / np.sqrt(2 * np.pi * q)
    below = lambda k: np.trapezoid(np.exp(k * e) * density, e)
    return 0.5 + below(power), below(power + 1), below(power + 1) - 1 / np.sqrt(2 * np.pi * q)


def test_third_derivatives_contain_the_jump_of_the_second():
    elu = Pieces(nk.activations.get("elu"))
    one = elu.averages(np.array([[0.7]]), True)
    np.testing.assert_allclose(one.four(3, 1, 1, 1).item(), elu_averages(0.7, 3)[2], atol=2e-5)
    np.testing.assert_allclose(one.pair(3, 1).item(), elu_averages(0.7, 1)[2], atol=1e-9)
    apart = elu.averages(np.diag([0.7, 1.3, 0.4, 1.0]), True)  # independent inputs: averages are products
    slopes = [elu_averages(q, 1)[0] for q in (1.3, 0.4, 1.0)]
    expected = elu_averages(0.7, 0)[2] * np.prod(slopes)
    np.testing.assert_allclose(apart.four(3, 1, 1, 1)[0, 1, 2, 3], expected, atol=2e-5)
    bent = elu_averages(0.7, 0)[1] * elu_averages(1.3, 0)[1] * slopes[1] * slopes[2]
    np.testing.assert_allclose(apart.four(2, 2, 1, 1)[0, 1, 2, 3], bent, atol=2e-5)


@pytest.mark.slow
def test_every_tensor_of_elu_agrees_with_drawn_networks():
    """Derivatives of a drawn network do not see the jump of the second, so `ddntk_r` is left to the test above."""
    x = helpers.points(2, 3, 5)
    net = nk.MLP(3, (14, 14), 2, "elu", weight_var=1.3, bias_var=0.1)
    theory = nk.propagate(net, x, order=1)[3]
    names = [name for letter, name in FIELDS.items() if letter != "R"]
    found = nk.measure(nk.theory.observables(net, x, names), net, 1500, jax.random.key(0))
    for name in names:
        expected = getattr(theory, name)
        allowed = 4 * found.sem[name] + 0.35 * np.abs(expected).max()  # the second is 5/14
        assert np.all(np.abs(found.mean[name] - expected) <= allowed), name


@pytest.mark.slow
def test_trained_elu_networks_agree_with_order_one():
    """100,000 networks, 4 sigmas: parts of the shift of the mean, of 20 sigmas, cancel; the variance moves by 3%."""
    x, y, new = np.array([[1.0, 0.4], [0.1, -0.9]]), np.array([1.5, 1.0]), np.array([[0.6, -0.4]])
    net, algorithm = nk.MLP(2, (80,), activation="elu"), nk.GradientDescent(0.5, steps=12)
    law = nk.forecast(net, x, y, algorithm, new, theory=nk.FiniteWidth())
    wide = law.terms[0]

    def observable(params):
        z = net(nk.simulate(net, params, x, y, algorithm).params, new)[:, 0]
        return {"mean": z, "square": (z - wide) ** 2}

    found = nk.measure(observable, net, 100_000, jax.random.key(2))
    square = law.cov[0] + (law.mean - wide) ** 2
    assert found.agrees({"mean": law.mean, "square": square}, sigmas=4)
    assert abs(law.contributions["ddntk"].mean[0]) > 15 * found.sem["mean"][0]
    assert not found.agrees({"mean": wide, "square": law.cov_terms[0][0]}, sigmas=4)  # the test can fail


def test_kinks_are_refused_in_the_same_words_by_both_orders():
    x, y = helpers.points(3, 2), np.arange(3.0)
    for activation, where in (("selu", "0"), (helpers.hard_tanh, "-1, 1"), (("relu", "selu"), "0")):
        widths = (4,) * (2 if isinstance(activation, tuple) else 1)
        net = nk.MLP(2, widths, activation=activation)
        said = set()
        for theory in (nk.Kinks(), nk.FiniteWidth()):
            with pytest.raises(ValueError, match=f"got an activation whose slope jumps at {where}") as caught:
                nk.forecast(net, x, y, nk.GradientFlow(1.0), x[:1], theory=theory)
            said.add(str(caught.value).partition("needs")[2])
        assert len(said) == 1
    with pytest.raises(ValueError, match=r"needs an activation with a kink; .* fit: .*nk\.FiniteWidth\(\)"):
        nk.forecast(nk.MLP(2, (4,), activation="elu"), x, y, nk.GradientFlow(1.0), x[:1], theory=nk.Kinks())


def test_what_pieces_cannot_do_is_refused():
    net = nk.MLP(2, (4, 4), activation="elu")
    x, y = helpers.points(13, 2), np.arange(13.0)
    with pytest.raises(
        ValueError, match="needs activations whose derivatives are all continuous, such as gelu"
    ):
        nk.forecast(net, x, y, nk.GradientFlow(1.0), x[:1], theory=nk.FiniteWidth())
    with pytest.raises(ValueError, match="supports residual blocks only with activations whose derivatives"):
        nk.propagate(nk.ResMLP(2, 4, 2, activation="elu", norm=False), x[:2], order=1)
    with pytest.raises(ValueError, match="whose second derivative is bounded: it is not at 0"):
        nk.propagate(nk.MLP(2, (4,), activation=lambda z: jnp.abs(z) ** 1.5), x[:2], order=1)
    with pytest.raises(ValueError, match="`x` contains two inputs whose correlation in some layer is within"):
        nk.propagate(nk.MLP(2, (4, 4), 1, jax.nn.soft_sign), np.array([[1.0, 0.5], [-1.0, -0.5]]), order=1)
