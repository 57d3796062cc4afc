"""How the tangent kernel of a relu network begins to move, at any width."""

import itertools

import numpy as np

import nearkernel as nk

from .. import Claim, Result, Row, at_least, exact, setting, statistical
from .._claim import generator, slope
from .._drawing import Figure


class KernelChange(Claim):
    """The mean change of a relu network's tangent kernel in a step is known at any width, and of order depth/width."""

    source = "graduate course: paths of relu networks"
    formula = "E[dTheta] = -lr E[z grad z.grad Theta]: E|h|^4 E tr(A^T A)^2 E|delta|^4 over pairs of layers"

    networks: int = setting(200_000, "Networks for each width.", low=10_000, high=2_000_000, quick=40_000)
    depth: int = setting(3, "Hidden layers.", low=1, high=6)

    def run(self, seed: int) -> Result:
        widths, rows = np.array([4, 6, 10, 16]), list[Row]()
        theory, measured, errors = [], [], []
        for n in widths:
            net = nk.MLP(3, (int(n),) * self.depth, 1, "relu", weight_var=2.0)
            mean = 2.0 * (self.depth + 1)  # of the kernel, at |x|^2 = d
            law = nk.theory.relu_ntk_change(net, np.ones((1, 3)))[0] / mean**2
            found = self._moved(generator(seed, f"width {n}"), int(n)) / mean**2
            error = found.std() / np.sqrt(len(found))
            rows.append(
                statistical(f"E[z grad z.grad Theta]/E[Theta]^2, width {n}", law, found.mean(), error)
            )
            theory.append(law)
            measured.append(found.mean())
            errors.append(error)
        wide = np.array([200, 400, 800])
        nets = [nk.MLP(3, (int(n),) * self.depth, 1, "relu", weight_var=2.0) for n in wide]
        far = [nk.theory.relu_ntk_change(net, np.ones((1, 3)))[0] for net in nets]
        rows.append(exact("power of the width, wide networks", -1.0, slope(wide, far), 0.05))
        rows.append(
            at_least(
                "at width 4 over the law of wide networks", 1.5, theory[0] * 4 / (far[-1] / mean**2 * 800)
            )
        )
        return Result(
            tuple(rows),
            {
                "width": widths.astype(float),
                "theory": np.array(theory),
                "measured": np.array(measured),
                "sem": np.array(errors),
            },
        )

    def _moved(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """z grad z . grad Theta of each network, in chunks, by a difference of the kernel along the gradient."""
        found = []
        for _ in range(max(1, self.networks // 4000)):
            sizes = (3, *(n,) * self.depth, 1)
            weights = [rng.normal(size=(4000, a, b)) * np.sqrt(2 / a) for a, b in itertools.pairwise(sizes)]
            out, theta, gradients = _kernel(weights)
            step = 1e-6 / np.maximum(theta, 1e-9)
            ends = [
                _kernel(
                    [w + sign * step[:, None, None] * g for w, g in zip(weights, gradients, strict=True)]
                )[1]
                for sign in (1, -1)
            ]
            found.append(out * (ends[0] - ends[1]) / (2 * step))
        return np.concatenate(found)

    figure = Figure("width", "mean change of Θ, relatively", log="xy")
    figure.pair()


def _kernel(weights: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Outputs, tangent kernels and gradients at x = (1, 1, 1), of many networks at once, in NTK scaling."""
    h = [np.ones((len(weights[0]), 3))]
    for weight in weights[:-1]:
        h.append(np.maximum(np.einsum("bi,bij->bj", h[-1], weight), 0.0))
    out = np.einsum("bi,bij->bj", h[-1], weights[-1])[:, 0]
    signal, gradients, theta = np.ones((len(out), 1)), list[np.ndarray](), np.zeros(len(out))
    for at in range(len(weights) - 1, -1, -1):
        lam = 2 / weights[at].shape[1]
        gradients.insert(0, lam * h[at][:, :, None] * signal[:, None, :])
        theta += lam * np.sum(h[at] ** 2, axis=1) * np.sum(signal**2, axis=1)
        if at:
            signal = np.einsum("bij,bj->bi", weights[at], signal) * (h[at] > 0)
    return out, theta, gradients
