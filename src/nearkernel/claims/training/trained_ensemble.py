"""Many networks, trained from many starts: how their answers differ."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE, Figure


class TrainedEnsemble(Claim):
    """Trained wide networks scatter with K_BB - R K_AB - K_BA R^T + R K_AA R^T, not with the NTK in a posterior."""

    source = "notes on random features and Gaussian processes: trained networks"
    formula = "mean R y,  covariance K_BB - R K_AB - K_BA R^T + R K_AA R^T,  R = Theta_BA g(Theta_AA)"

    width: int = setting(512, "Neurons in the hidden layer.", low=128, high=2048, quick=256)
    networks: int = setting(1000, "Networks that are trained.", low=50, high=5000, quick=300)
    steps: int = setting(100, "Steps of gradient descent.", low=10, high=1000, quick=60)

    def run(self, seed: int) -> Result:
        import jax

        x = generator(seed, "inputs").normal(size=(4, 3))
        new = np.linspace(-1.5, 1.5, 5)[:, None] * np.array([[1.0, -0.5, 0.7]])
        y = np.sin(2 * x[:, 0])
        net = nk.MLP(3, (self.width,), 1, "erf", weight_var=1.6, bias_var=0.2)
        top = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]
        descent = nk.GradientDescent(1.0 / top, self.steps)
        forecast = nk.forecast(net, x, y, descent, new)
        process = np.diagonal(nk.posterior(nk.kernels.NTK(net), x, y, new).cov)

        def observable(theta):
            z = net(nk.simulate(net, theta, x, y, descent).params, new)[:, 0]
            return {"mean": z, "variance": (z - forecast.mean) ** 2}

        found = nk.measure(observable, net, self.networks, jax.random.key(seed))
        theory, variance, error = np.diagonal(forecast.cov), found.mean["variance"], found.sem["variance"]
        rows = [
            # At order 1/width the finite network is neither: 2 % allow for that.
            statistical(f"variance at new input {i}", theory[i], variance[i], error[i], 0.02)
            for i in (0, 2, 4)
        ]
        rows += [
            statistical(
                "mean at new input 0", forecast.mean[0], found.mean["mean"][0], found.sem["mean"][0], 0.02
            ),
            unlike(
                "variance at new input 4, if it were a posterior of the NTK",
                process[4],
                variance[4],
                sem=error[4],
            ),
        ]
        data = {"theory": theory, "measured": variance, "sem": error}
        return Result(tuple(rows), {"at": np.linspace(-1.5, 1.5, 5), **data, "posterior of the NTK": process})

    figure = Figure("at", "variance after training", xlabel="place on a line", ylim=(0, None))
    figure.line("theory", BLUE, "-", "forecast")
    figure.bars("measured", "sem", GRAY, label="trained networks", capsize=2)
    figure.line("posterior of the NTK", ORANGE, "--")
