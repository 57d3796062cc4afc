"""A width above which training cannot fail."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._drawing import BLUE, GREEN, Figure


class CertainConvergence(Claim):
    """Above a width of order 1/lambda_0^2 the loss is certain to fall at least as exp(-lambda_0 t/2)."""

    source = "graduate course: convergence of wide networks"
    formula = (
        "n >= 32 sup(s'')^2 sum_a (|x_a|^2/d)^2 L/lambda_0^2, readouts +-1:  L(t) <= L(0) exp(-lambda_0 t/2)"
    )

    width: int = setting(2500, "Neurons in the hidden layer.", low=2200, high=8000)
    steps: int = setting(
        400, "Steps of gradient descent, small enough to be a flow.", low=50, high=2000, quick=200
    )

    def run(self, seed: int) -> Result:
        import jax

        x, y = 1.8 * np.eye(4) + 0.1, np.array([1.0, -1.0, 1.0, 0.5])
        net = nk.MLP(4, (self.width,), 1, "tanh", weight_var=1.0)
        params = net.init(jax.random.key(seed))
        params[1]["weight"] = np.sign(params[1]["weight"])
        found = nk.theory.convergence_guarantee(net, params, x, y)
        run = nk.simulate(
            net, params, x, y, nk.GradientDescent(0.02, self.steps), lr_factors=found.lr_factors
        )
        time, loss = 0.02 * run.history["time"], run.history["loss"]
        later = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, run.params, found.lr_factors)(x))[0]
        rows = (
            at_least("width over its threshold", 1.0, self.width / found.threshold),
            at_most("loss over its bound, at the worst time", 1.0, np.max(loss[1:] / found.bound(time[1:]))),
            at_least(
                "smallest eigenvalue at the end, over a quarter of the first", 1.0, 4 * later / found.smallest
            ),
        )
        return Result(rows, {"time": time, "loss": loss, "bound": found.bound(time)})

    figure = Figure("time", "loss", log="y")
    figure.line("bound", GREEN, "--")
    figure.line("loss", BLUE, "-", "trained")
