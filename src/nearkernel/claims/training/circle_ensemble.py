"""An ensemble of networks trained on points of a circle."""

import math

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, setting, statistical
from .._claim import generator
from .._drawing import BLUE, ORANGE


class CircleEnsemble(Claim):
    """Wide networks trained on points of a circle scatter around the circle as their forecast says."""

    source = "notes on random features and Gaussian processes: trained networks"
    formula = "z(cos g, sin g) ~ N(mean, K_BB - R K_AB - K_BA R^T + R K_AA R^T) for trained networks"

    width: int = setting(1000, "Neurons.", low=200, high=5000, quick=800)
    networks: int = setting(300, "Networks that are trained.", low=50, high=3000, quick=120)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "networks")
        at = np.array([0.3, 1.3, 2.6])
        angles = np.linspace(0, 2 * np.pi, 33)[:-1]
        x, new = (np.stack([np.cos(a), np.sin(a)], axis=1) for a in (at, angles))
        y = np.sin(at) + 0.5 * np.cos(3 * at)  # odd around the circle, as networks without biases are
        net = nk.MLP(2, (self.width,), 1, "tanh", weight_var=2.0)
        steps = 300
        lr = 1.0 / np.linalg.eigvalsh(np.asarray(nk.kernels.NTK(net)(x)))[-1]
        forecast = nk.forecast(net, x, y, nk.GradientDescent(lr, steps), new)
        found = np.array([self._trained(rng, x, y, new, lr, steps) for _ in range(self.networks)])
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
        theory = np.sqrt(np.diagonal(forecast.cov))
        root = math.sqrt(self.networks)
        away = (mean - forecast.mean) / np.hypot(spread / root, 0.02)
        rows = [
            statistical(
                f"mean at the angle {angles[i]:.2f}", forecast.mean[i], mean[i], spread[i] / root, 0.03
            )
            for i in (4, 13, 24)
        ]
        rows += [
            statistical(
                f"spread at the angle {angles[i]:.2f}",
                theory[i],
                spread[i],
                spread[i] / root / math.sqrt(2),
                0.05,
            )
            for i in (4, 13, 24)
        ]
        rows.append(
            at_most(
                "largest distance of means around the circle, in standard errors and 0.02",
                4.0,
                np.abs(away).max(),
            )
        )
        return Result(
            tuple(rows),
            {"angle": angles, "mean": forecast.mean, "std": theory, "measured": mean, "measured std": spread},
        )

    def _trained(self, rng, x, y, new, lr, steps) -> np.ndarray:
        """One network in NTK scaling, by gradient descent on both layers."""
        m = self.width
        u, v = rng.normal(size=(2, m)), rng.normal(size=m)
        scale = math.sqrt(2 / m)
        for _ in range(steps):
            hidden = np.tanh(x @ u)
            r = scale * hidden @ v - y
            back = scale * (r[:, None] * (1 - hidden**2)) * v
            u, v = u - lr * x.T @ back, v - lr * scale * (r @ hidden)
        return scale * np.tanh(new @ u) @ v

    def draw(self, axes, result):
        data = result.data
        axes.fill_between(
            data["angle"],
            data["mean"] - 2 * data["std"],
            data["mean"] + 2 * data["std"],
            color=BLUE,
            alpha=0.2,
            lw=0,
        )
        axes.plot(data["angle"], data["mean"], color=BLUE, label="forecast, ± 2 standard deviations")
        axes.errorbar(
            data["angle"],
            data["measured"],
            2 * data["measured std"],
            fmt="o",
            ms=3,
            color=ORANGE,
            label="trained networks",
        )
        axes.set(xlabel="angle on the circle", ylabel="output")
