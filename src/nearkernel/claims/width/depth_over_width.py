"""How much the tangent kernel moves, by depth and by width."""

import math

import numpy as np

from .. import Claim, Result, at_most, setting, statistical
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE, Figure


class DepthOverWidth(Claim):
    """The relative change of the tangent kernel, per change of the output, grows as depth over width."""

    source = "talk on the principles of deep learning theory: networks of finite width"
    formula = "sqrt(E[(d ln Theta/dz)^2]) ~ L/n along the gradient of z at one input"

    networks: int = setting(600, "Networks for each depth and width.", low=50, high=5000, quick=200)

    def run(self, seed: int) -> Result:
        depths, widths = np.array([3, 6, 12, 24]), np.array([24, 48, 96])
        rows, data = [], {}
        for name in ("linear", "tanh"):
            table = np.array([[self._drift(seed, name, int(l), int(n)) for n in widths] for l in depths])
            logs = np.log(table[..., 0])
            error = table[..., 1] / table[..., 0]
            design = np.array([[1.0, math.log(l), math.log(n)] for l in depths for n in widths])
            fit = np.linalg.lstsq(design / error.reshape(-1, 1), logs.ravel() / error.ravel(), rcond=None)[0]
            spread = np.sqrt(np.diagonal(np.linalg.inv((design / error.reshape(-1, 1) ** 2).T @ design)))
            rows.append(statistical(f"power of the depth, {name}", 1.0, fit[1], spread[1], 0.15))
            rows.append(statistical(f"power of the width, {name}", -1.0, fit[2], spread[2], 0.15))
            data[name] = table[..., 0].ravel()
        ratio = np.array([l / n for l in depths for n in widths])
        rows.append(at_most("largest standard error of a mean, relatively", 0.25, np.max(error)))
        return Result(tuple(rows), {"depth over width": ratio, **data})

    def _drift(self, seed: int, name: str, depth: int, n: int) -> tuple[float, float]:
        rng, found = generator(seed, name, str(depth), str(n)), np.empty(self.networks)
        for t in range(self.networks):
            weights = [rng.normal(size=(n, n)) / math.sqrt(n) for _ in range(depth)]
            weights.append(rng.normal(size=(n, 1)) / math.sqrt(n))
            x = rng.normal(size=n)
            theta, gradients = _kernel(weights, x, name)
            step = 1e-4 / theta
            moved = [w + step * g for w, g in zip(weights, gradients, strict=True)]
            back = [w - step * g for w, g in zip(weights, gradients, strict=True)]
            found[t] = ((_kernel(moved, x, name)[0] - _kernel(back, x, name)[0]) / (2e-4 * theta)) ** 2
        root = math.sqrt(found.mean())
        return root, float(found.std(ddof=1) / math.sqrt(self.networks)) / (2 * root)

    figure = Figure("depth over width", "root mean square of d ln Θ/dz", log="xy")
    figure.line("linear", BLUE, "o")
    figure.line("tanh", ORANGE, "s")
    figure.line(
        lambda data: data["linear"][0] * data["depth over width"] / data["depth over width"][0],
        GRAY,
        "--",
        "L/n",
    )


def _kernel(weights: list[np.ndarray], x: np.ndarray, name: str) -> tuple[float, list[np.ndarray]]:
    """The tangent kernel at x, in NTK scaling, and the gradient of the output by the weights."""
    slope = (lambda h: 1 - h**2) if name == "tanh" else np.ones_like
    enters, n = [x], len(x)
    for weight in weights[:-1]:
        z = enters[-1] @ weight
        enters.append(np.tanh(z) if name == "tanh" else z)
    signal, gradients = np.ones(1), list[np.ndarray]()
    for at in range(len(weights) - 1, -1, -1):
        gradients.insert(0, np.outer(enters[at], signal) / n)  # weights are 1/sqrt(n) times those that train
        if at:
            signal = (weights[at] @ signal) * slope(enters[at])
    theta = n * float(np.sum([np.sum(g**2) for g in gradients]))
    return theta, gradients
