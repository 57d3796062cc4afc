"""The tangent kernel of a network that learns features."""

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GREEN


class KernelGrowth(Claim):
    """A linear network of one hidden layer that fits one point y ends with the kernel 2 sqrt(1 + gamma0^2 y^2)."""

    source = "mean-field theory of networks that learn features: deep linear networks"
    formula = "K^2 - 4 gamma0^2 f^2 is conserved by the flow, so K = 2 sqrt(1 + gamma0^2 y^2) at its end"

    target: float = setting(1.5, "The target y.", low=0.2, high=4.0)
    networks: int = setting(64, "Networks trained.", low=16, high=500, quick=24)
    width: int = setting(512, "Their width.", low=128, high=4096, quick=256)

    def run(self, seed: int) -> Result:
        x, y = np.ones((1, 4)), np.array([self.target])
        gammas, rows, found = np.array([0.3, 1.0, 2.0]), [], []
        for gamma in gammas:
            time = 6.0 * gamma**2
            net = nk.MLP(4, (64,), 1, "linear", parametrization="mean_field")
            law = nk.forecast(nk.Scaled(net, 1 / gamma), x, y, nk.GradientFlow(time), x)
            assert isinstance(law, nk.results.RichForecast)
            theory = 2 * np.sqrt(1 + (gamma * self.target) ** 2)
            rows.append(
                exact(f"kernel of the limit, richness {gamma:g}", theory, law.kernels().ntk[0, 0], 1e-4)
            )
            found.append((theory, *self._trained(seed, float(gamma), x, y)))
        theory, measured, error = np.array(found).T
        # Networks of width N add a mean of order 1/N to their spread of 1/sqrt(N).
        rows += [
            statistical(f"kernel of trained networks, richness {g:g}", one, two, off, 4 / self.width)
            for g, one, two, off in zip(gammas, theory, measured, error, strict=True)
        ]
        return Result(tuple(rows), {"richness": gammas, "theory": theory, "measured": measured, "sem": error})

    def _trained(self, seed: int, gamma: float, x, y) -> tuple[float, float]:
        net = nk.MLP(4, (self.width,), 1, "linear", parametrization="mean_field")
        model = nk.Scaled(net, 1 / gamma)
        steps = 1200
        descent = nk.GradientDescent(6.0 * gamma**2 / steps, steps)

        def one(key):
            params = model.init(key)
            run = nk.simulate(model, params, x, y, descent)
            first, last = run.params["params"]
            h = x @ first["weight"] / 2
            return (h**2).mean() + (last["weight"] ** 2).mean()

        key = jax.random.key(int(generator(seed, "networks").integers(2**31)))
        with jax.enable_x64(True):
            values = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(key, self.networks)))
        return float(values.mean()), sem(values)

    def draw(self, axes, result):
        data, line = result.data, np.linspace(0, 2.2, 60)
        axes.plot(line, 2 * np.sqrt(1 + (line * self.target) ** 2), color=GREEN, label="theory")
        axes.errorbar(
            data["richness"], data["measured"], data["sem"], fmt="o", color=BLUE, label="trained networks"
        )
        axes.set(xlabel="richness", ylabel="tangent kernel after training")
        axes.legend()
