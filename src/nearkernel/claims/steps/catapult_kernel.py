"""How the tangent kernel moves in one large step."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._claim import generator
from .._drawing import ORANGE, pair


class CatapultKernel(Claim):
    """On one point the kernel of a quadratic model moves by lr c r^2 (lr ntk - 4 z/r), exactly, at any step size."""

    source = "graduate course: catapults"
    formula = "ntk' = ntk + lr c r^2 (lr ntk - 4 z/r),   r' = r (1 - lr ntk + c lr^2 z r),   c = |x|^2/(m d)"
    erratum = Erratum(
        "graduate course, line 1403",
        "4/r in place of 4 z/r, r = z - y",
        "the constant before it is |x|^2/(m d), with the m and d of line 1345",
        "kernel after 1 step, as in line 1403",
    )

    ratio: float = setting(2.5, "Learning rate times the kernel at initialization.", low=0.2, high=3.8)
    width: int = setting(60, "Neurons in the hidden layer, m.", low=10, high=400)
    target: float = setting(0.7, "The target y.", low=-2.0, high=2.0)

    def run(self, seed: int) -> Result:
        import jax
        import jax.numpy as jnp

        net, point = (
            nk.MLP(7, (self.width,), 1, "relu", weight_var=1.3),
            generator(seed, "input").normal(size=(1, 7)),
        )
        theta = net.init(jax.random.key(seed))
        model = nk.expand(net, theta, degree=2)
        with jax.enable_x64(True):
            z0 = float(net(theta, jnp.asarray(point))[0, 0])
        ntk0 = float(nk.kernels.EmpiricalNTK(net, theta)(point)[0, 0])
        c, lr, steps = 1.3**2 * float(np.sum(point**2)) / (self.width * 7), self.ratio / ntk0, 40
        keep = {"ntk": lambda p: nk.kernels.EmpiricalNTK(model, p)(jnp.asarray(point))[0, 0]}
        descent = nk.GradientDescent(lr, steps)
        found = nk.simulate(model, theta, point, [self.target], descent, nk.Record(keep, every=1)).history[
            "ntk"
        ]
        theory = nk.theory.catapult(z0, ntk0, self.target, c, lr, steps).ntk
        r = z0 - self.target
        printed = ntk0 + lr * c * r**2 * (lr * ntk0 - 4 / r)
        rows = (
            exact("kernel after 1 step", theory[1], found[1], 1e-10),
            exact("kernel after 10 steps", theory[10], found[10], 1e-9),
            exact("kernel after 40 steps", theory[40], found[40], 1e-8),
            refuted("kernel after 1 step, as in line 1403", printed, found[1], tolerance=1e-6),
        )
        data = {"step": np.arange(steps + 1), "theory": theory, "measured": found}
        return Result(rows, {**data, "line 1403": np.array([ntk0, printed])})

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["step"], data["theory"], data["measured"])
        axes.plot([0, 1], data["line 1403"], "x--", color=ORANGE, label="line 1403, first step")
        axes.set(xlabel="step", ylabel="tangent kernel")
