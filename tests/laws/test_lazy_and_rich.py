"""How far training moves a network, as a law over its width, in three scalings."""

import jax
import numpy as np
import pytest

import nearkernel as nk

X = np.random.default_rng(1).normal(size=(8, 4))
X *= 2 / np.linalg.norm(X, axis=1, keepdims=True)
Y = np.sin(2 * X[:, 0]) + X[:, 1]


def log_movement(scaling: str, width: int, seed: int) -> np.ndarray:
    """Logarithms of the movement of weights, features and kernel."""
    net = nk.MLP(4, (width,), 1, "tanh", weight_var=1.5, bias_var=0.1, parametrization=scaling)
    factors = 1.0 if scaling == "standard" else None  # one learning rate for all parameters
    theta = net.init(jax.random.key(seed))
    top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta, factors)(X))[-1]
    descent = nk.GradientDescent(1 / top, 1000)
    end = nk.simulate(net, theta, X, Y, descent, nk.Record(every=1000), lr_factors=factors).params
    moved = nk.theory.movement(net, theta, end, X, lr_factors=factors)
    return np.log([moved.weights, moved.features, moved.kernel])


@pytest.mark.slow
@pytest.mark.parametrize(
    "scaling, powers",
    [("ntk", (-0.5, -0.5, -1.0)), ("standard", (-1.0, -1.5, -2.0)), ("mean_field", (0.0, 0.0, 0.0))],
)
def test_movement_is_a_power_of_the_width(scaling, powers):
    """Slopes between widths 64 and 1024 over ten networks, within 4 standard errors and 0.15."""
    small, large = (
        np.array([log_movement(scaling, width, seed) for seed in range(10)]) for width in (64, 1024)
    )
    slopes = (large - small) / np.log(16)
    sem = slopes.std(axis=0, ddof=1) / np.sqrt(len(slopes))
    assert (np.abs(slopes.mean(axis=0) - powers) < 4 * sem + 0.15).all(), (slopes.mean(axis=0), sem)
