"""Small networks trained on a few digits."""

from typing import Any

import numpy as np

import nearkernel as nk


def digits(classes: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardized images (n, 64) of the digits 0 to classes - 1, and their classes."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    chosen = np.flatnonzero(labels < classes)[:points]
    x = pixels[chosen]
    return (x - x.mean()) / x.std(), labels[chosen]


def trained(
    net: Any, params: Any, x: Any, y: Any, algorithm: Any, loss: str = "cross_entropy", key: Any = None
) -> Any:
    """Parameters at the end."""
    record = nk.Record(every=algorithm.steps)
    return nk.simulate(net, params, x, y, algorithm, record, loss=loss, lr_factors=1.0, key=key).params


def layers(net: nk.MLP, params: Any, x: np.ndarray) -> list[np.ndarray]:
    """Features after each hidden layer of a relu network in standard scaling."""
    found = []
    for entry in params[:-1]:
        x = np.maximum(x @ np.asarray(entry["weight"]) + np.asarray(entry["bias"]), 0.0)
        found.append(x)
    return found


def on_the_way(
    seed: int, classes: int, points: int, width: int, steps: tuple[int, ...]
) -> tuple[Any, list[Any]]:
    """(network, x, y) and its parameters after each of `steps` steps, ascending, on the cross-entropy loss."""
    import jax

    x, labels = digits(classes, points)
    y = np.eye(classes)[labels]
    net = nk.MLP(64, (width,) * 2, classes, "tanh", weight_var=1.0, parametrization="standard")
    params = net.init(jax.random.key(seed))
    lr = 0.5 / nk.geometry.sharpness(net, params, x, y, "cross_entropy")
    found, done = [], 0
    for step in steps:
        if step > done:
            params = trained(net, params, x, y, nk.GradientDescent(lr, step - done))
        found.append(params)
        done = step
    return (net, x, y), found


def hessian(problem: Any, params: Any) -> nk.geometry.Hessian:
    net, x, y = problem
    return nk.geometry.Hessian(net, params, x, y, "cross_entropy")
