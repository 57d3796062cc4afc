"""What these claims train: mean-field networks of one hidden tanh layer, centered, on a few points."""

import jax
import numpy as np

import nearkernel as nk

from .._claim import generator

STEPS, DIMENSION = 40, 5


def problem(seed: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs on a sphere, targets that are a product of two features and a third one, and new inputs."""
    draw = generator(seed, "inputs").normal(size=(points + 8, DIMENSION))
    x = np.sqrt(DIMENSION) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    y = x[:, 0] * x[:, 1] + 0.5 * x[:, 2]
    return x[:points], y[:points] / np.sqrt(np.mean(y[:points] ** 2)), x[points:]


def network(width: int, activation: str = "tanh", parametrization: str = "mean_field") -> nk.MLP:
    return nk.MLP(DIMENSION, (width,), 1, activation, weight_var=2.0, parametrization=parametrization)


def rate(x: np.ndarray, activation: str = "tanh") -> float:
    """A learning rate of the network that is not scaled, 0.3 over the largest eigenvalue of its kernel."""
    return 0.3 / float(np.linalg.eigvalsh(nk.kernels.NTK(network(8, activation))(x))[-1])


def outputs(x, y, x_new, width: int, richness: float, networks: int, key: jax.Array) -> np.ndarray:
    """(networks, new points) after training."""
    model = nk.Scaled(network(width), 1 / richness)
    descent = nk.GradientDescent(rate(x) * richness**2, STEPS)

    def one(params):
        run = nk.simulate(model, params, x, y, descent)
        return model(run.params, x_new)[:, 0]

    with jax.enable_x64(True):
        keys = jax.random.split(key, networks)
        return np.asarray(jax.jit(jax.vmap(lambda key: one(model.init(key))))(keys))


def limit(x, y, x_new, richness: float, clouds=None, activation: str = "tanh"):
    """The rich limit of the same networks."""
    descent = nk.GradientDescent(rate(x, activation) * richness**2, STEPS)
    return nk.forecast(nk.Scaled(network(64, activation), 1 / richness), x, y, descent, x_new, theory=clouds)
