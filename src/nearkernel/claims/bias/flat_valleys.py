"""SGD in a valley of a network's loss: towards where it is flat and quiet."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator, sem
from .._drawing import BLUE, ORANGE, Figure


class FlatValleys(Claim):
    """In a valley of a network's loss, SGD lowers the trace of the Hessian and of the noise; descent stays."""

    source = "graduate course: SGD, fluctuation and dissipation"
    formula = "every input with two labels y +- s: at the minimum C ~ s^2 H stays; tr H and tr C fall in time under SGD"

    steps: int = setting(40_000, "Steps of SGD in the valley.", low=5000, high=400_000, quick=15_000)
    runs: int = setting(5, "Networks.", low=3, high=30, quick=3)

    def run(self, seed: int) -> Result:
        import jax
        import jax.numpy as jnp

        rng = generator(seed, "data")
        points = np.linspace(-1, 1, 5)
        x = np.concatenate([points, points])[:, None]
        y = np.sin(3 * x[:, 0]) + 0.5 * np.where(np.arange(10) < 5, 1.0, -1.0)
        net = nk.MLP(1, (20,), 1, "tanh", weight_var=1.0, bias_var=1.0, parametrization="standard")

        def trace(params):
            """Of the Gauss-Newton part, which is the Hessian where the mean residual of an input is 0."""
            gradients = jax.vmap(lambda row: jax.grad(lambda p: net(p, row[None])[0, 0])(params))(
                jnp.asarray(x)
            )
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradients))

        def told(params):
            with jax.enable_x64(True):
                return float(trace(params))

        found = np.empty((self.runs, 4))
        for run in range(self.runs):
            params = net.init(jax.random.key(seed * 100 + int(rng.integers(1000))))
            lr, settle = 0.006, nk.GradientDescent(0.01, 6000)
            bottom = nk.simulate(net, params, x, y, settle, nk.Record(every=6000), lr_factors=1.0).params
            noise = lambda p: np.trace(nk.theory.gradient_moment(net, p, x, y, 1))
            still = nk.simulate(net, bottom, x, y, settle, nk.Record(every=6000), lr_factors=1.0).params
            record = nk.Record({"trace": trace}, every=self.steps // 50)
            walk = nk.simulate(
                net, bottom, x, y, nk.SGD(lr, 1, self.steps), record, lr_factors=1.0, key=jax.random.key(run)
            )
            traces = np.asarray(walk.history["trace"])
            found[run] = traces[-10:].mean() / traces[0], told(still) / traces[0], 0.0, 0.0
            rested = nk.simulate(net, walk.params, x, y, settle, nk.Record(every=6000), lr_factors=1.0).params
            found[run, 2] = noise(rested) / noise(bottom)
            found[run, 3] = told(rested) / traces[0]
        sgd, descent, quiet, flat = found.T
        rows = (
            at_most("trace of the Hessian under SGD, last over first", 0.9, sgd.mean(), sem(sgd)),
            at_least("trace of the Hessian under descent, last over first", 0.97, descent.mean()),
            at_most(
                "trace of the Hessian at the bottom below, after over before SGD", 0.9, flat.mean(), sem(flat)
            ),
            at_most(
                "trace of the noise at the bottom below, after over before SGD", 0.9, quiet.mean(), sem(quiet)
            ),
        )
        times = np.asarray(walk.history["time"], float)
        return Result(
            rows, {"step": times, "trace": traces / traces[0], "descent": np.full(len(times), descent.mean())}
        )

    figure = Figure("step", "trace of the Hessian / first", xlabel="step in the valley", ylim=(0, None))
    figure.line("trace", BLUE, "-", "SGD")
    figure.line("descent", ORANGE, "--", "gradient descent")
    figure.level(1, lw=0.6, ls="-")
