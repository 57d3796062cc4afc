"""Classifiers of a few digits on their way: parameters at some steps of gradient descent."""

from typing import Any

import numpy as np

import nearkernel as nk


def on_the_way(
    seed: int, classes: int, points: int, width: int, steps: tuple[int, ...]
) -> tuple[Any, list[Any]]:
    """(network, x, y) and its parameters after each of `steps` steps, ascending, on the cross-entropy loss."""
    import jax
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    chosen = np.flatnonzero(labels < classes)[:points]
    x, y = pixels[chosen], np.eye(classes)[labels[chosen]]
    x = (x - x.mean()) / x.std()
    net = nk.MLP(64, (width,) * 2, classes, "tanh", weight_var=1.0, parametrization="standard")
    params = net.init(jax.random.key(seed))
    lr = 0.5 / nk.geometry.sharpness(net, params, x, y, "cross_entropy")
    found, done = [], 0
    for step in steps:
        if step > done:
            descent = nk.GradientDescent(lr, step - done)
            record = nk.Record(every=step - done)
            params = nk.simulate(
                net, params, x, y, descent, record, loss="cross_entropy", lr_factors=1.0
            ).params
        found.append(params)
        done = step
    return (net, x, y), found


def hessian(problem: Any, params: Any) -> nk.geometry.Hessian:
    net, x, y = problem
    return nk.geometry.Hessian(net, params, x, y, "cross_entropy")
