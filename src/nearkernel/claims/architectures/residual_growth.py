"""Residual branches without normalization."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical
from .._claim import generator
from .._drawing import pair

L = nk.layers


class ResidualGrowth(Claim):
    """Relu residual blocks let signals grow by 1 + C_W/2 each; the tangent kernel over the signal grows linearly."""

    source = "derived here: second moments of residual networks"
    formula = "K_l = (1 + C_W/2)^l K_0,   Theta_l / K_l = Theta_0 / K_0 + l C_W / (2 + C_W)"

    weight_var: float = setting(0.6, "Variance of the branches' weights, C_W.", low=0.1, high=2.0)
    blocks: int = setting(8, "Residual blocks.", low=2, high=30)
    networks: int = setting(400, "Networks that are drawn, of width 200.", low=50, high=5000, quick=100)

    def run(self, seed: int) -> Result:
        x = generator(seed, "inputs").normal(size=(1, 6))
        depths = np.arange(1, self.blocks + 1)
        start = 1 + self.weight_var / 2
        ratio, rows = [], []
        for depth in depths:
            nngp, ntk = (
                float(k[0, 0]) for k in nk.kernels.nngp_and_ntk(_network(int(depth), self.weight_var), x)
            )
            ratio.append(ntk / nngp)
        rows.append(
            exact("Theta/K after all blocks", 1 + depths[-1] / (1 + 2 / self.weight_var), ratio[-1], 1e-12)
        )
        rows.append(exact("K after all blocks", float(np.mean(x**2)) * start ** depths[-1], nngp, 1e-12))
        net = _network(self.blocks, self.weight_var, 200)
        drawn = nk.measure(lambda params: (net(params, x) ** 2).mean(), net, self.networks, seed)
        rows.append(statistical("K of drawn networks", nngp, drawn.mean, drawn.sem))
        theory = 1 + depths * self.weight_var / (2 + self.weight_var)
        return Result(tuple(rows), {"depth": depths, "theory": theory, "measured": np.array(ratio)})

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["depth"], data["theory"], data["measured"], np.zeros(len(data["depth"])))
        axes.set(xlabel="residual blocks", ylabel="Θ / K")


def _network(blocks: int, weight_var: float, width: int = 1) -> nk.Network:
    branch = L.Residual([L.Activation("relu"), L.Dense(width, weight_var)])
    return nk.Network(6, [L.Dense(width), L.Repeat([branch], int(blocks))])
