"""Residual branches that begin with layer normalization."""

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical, unlike
from .._claim import sem
from .._drawing import pair

L = nk.layers


class NormalizedResiduals(Claim):
    """With a norm before each branch, signals grow linearly with depth and gradients by a power of it."""

    source = "derived here: second moments of residual networks"
    formula = "K' = K + C_W/2,   chi_perp = 1 + C_W/(2 K): no exponential growth at any C_W"

    weight_var: float = setting(1.5, "Variance of the branches' weights, C_W.", low=0.1, high=4.0)
    blocks: int = setting(16, "Residual blocks.", low=4, high=60)
    networks: int = setting(60, "Networks that are drawn, of width 256.", low=20, high=1000, quick=20)

    def run(self, seed: int) -> Result:
        block = L.Residual([L.LayerNorm(), L.Activation("relu"), L.Dense(256, self.weight_var)])
        flow = nk.critical(block)
        kernel, gradient, _ = flow.run(self.blocks)
        depths, branch = np.arange(self.blocks + 1), self.weight_var / 2
        rows = [
            exact("K after all blocks", 1 + self.blocks * branch, kernel[-1], 1e-9),
            exact(
                "chi_perp in the last block",
                1 + self.weight_var / (2 * kernel[-2]),
                gradient[-1] / gradient[-2],
                1e-9,
            ),
            exact("chi_perp after infinitely many", 1.0, flow.chi_perp, 1e-9),
        ]
        net = nk.Network(256, [L.Repeat([block], self.blocks)])
        drawn = np.array([_drawn(net, key) for key in jax.random.split(jax.random.key(seed), self.networks)])
        signal, back = drawn.T
        rows += [
            statistical("signal of drawn networks", kernel[-1], signal.mean(), sem(signal), 0.01),
            statistical("squared gradient of drawn networks", gradient[-1], back.mean(), sem(back), 0.02),
            unlike(
                "gradient, if it grew as without norms",
                (1 + self.weight_var / 2) ** self.blocks,
                back.mean(),
                sem=sem(back),
            ),
        ]
        data = {"depth": depths, "kernel": kernel, "gradient": gradient}
        return Result(tuple(rows), data | {"measured": np.array([back.mean()]), "sem": np.array([sem(back)])})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["depth"], data["kernel"], label="signal, theory")
        pair(axes, data["depth"][-1:], data["gradient"][-1:], data["measured"], data["sem"])
        axes.plot(data["depth"], data["gradient"], label="squared gradient, theory")
        axes.set(xlabel="residual blocks", yscale="log")


def _drawn(net: nk.Network, key: jax.Array) -> tuple[float, float]:
    """Mean squares of outputs, and of what comes back to the inputs for a random direction of outputs."""
    with jax.enable_x64(True):
        params = net.init(key)
        x = jax.random.normal(jax.random.fold_in(key, 1), (1, 256))
        x = x / (x**2).mean() ** 0.5
        direction = jax.random.normal(jax.random.fold_in(key, 2), (1, 256))
        outputs, back = _pass(net, params, x, direction)
        return float((outputs**2).mean()), float((back**2).sum() / (direction**2).sum())


@jax.jit
def _pass(net, params, x, direction):
    outputs, pull = jax.vjp(lambda x: net(params, x), x)
    return outputs, pull(direction)[0]
