"""Large learning rates on one point: lazy, catapult, divergent."""

import dataclasses

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.program import program

_LOW, _HIGH = 1e-10, 1e6  # losses beyond are not drawn


@dataclasses.dataclass(frozen=True)
class Catapult(Experiment):
    """Gradient descent on one point. Below lr = 2/kernel the loss falls at once. Between 2/kernel and 4/kernel it
    first explodes, until the kernel has shrunk so far that the step is stable again. Above, it never recovers. Two
    numbers, output and kernel, describe a wide quadratic model completely; real relu networks follow them until
    neurons switch on or off."""

    title = "Catapult"
    formulas = (
        r"z_{t+1} = z_t \left(1 - \eta \Theta_t + \tfrac{\eta^2}{n} z_t^2 \right)",
        r"\Theta_{t+1} = \Theta_t + \tfrac{\eta}{n} z_t^2 (\eta \Theta_t - 4)",
    )
    button = "Train five networks"
    movie = "ratio"
    presets = (
        Preset("Lazy", {"ratio": 1.5}, "Below 2 the loss falls from the first step."),
        Preset("Catapult", {"ratio": 3.0}, "The loss explodes, the kernel shrinks, and then the loss falls."),
        Preset("Divergent", {"ratio": 4.2}, "Above 4 the kernel never shrinks enough."),
        Preset(
            "Wider, later",
            {"ratio": 3.0, "width": 20_000, "steps": 100},
            "In a wider network the loss must grow longer before the kernel shrinks.",
        ),
    )

    ratio: float = setting(2.6, "Learning rate times the kernel at initialization.", low=0.1, high=4.5)
    width: int = setting(1000, "Neurons in the hidden layer.", low=50, high=20_000, log=True)
    output: float = setting(0.8, "Output at initialization; the target is 0.", low=0.05, high=3.0)
    steps: int = setting(60, "Steps of gradient descent.", low=10, high=500, log=True)

    def theory(self) -> Answer:
        path = nk.theory.catapult(self.output, 1.0, 0.0, 1 / self.width, self.ratio, self.steps)
        return Answer(self._pictures(path.z, path.ntk), self._numbers(path.z, path.ntk))

    def check(self, watch: Watch) -> Answer:
        watch(0.0, "compiling")
        shown = self.theory()
        loss, ratio = shown.pictures
        for seed in range(5):
            z, kernel = trained(seed, self.width, self.output, self.ratio, self.steps)
            loss = loss.plus(self._network(_loss(z)))
            ratio = ratio.plus(self._network(self.ratio * kernel))
            shown = dataclasses.replace(shown, pictures=(loss, ratio))
            watch((seed + 1) / 5, f"network {seed + 1} of 5", shown)
        return shown

    def _curve(self, name: str, y: np.ndarray, kind: str, series: int) -> Curve:
        return Curve(name, np.arange(len(y)), y, kind, series)

    def _network(self, y: np.ndarray) -> Curve:
        return Curve("trained networks", np.arange(len(y)), y, "thin", 2, group=f"width {self.width}")

    def _pictures(self, z: np.ndarray, kernel: np.ndarray) -> tuple[Picture, ...]:
        shrunk = np.where(np.isfinite(kernel), self.ratio * kernel, np.nan)
        return (
            Picture(
                "Loss",
                (self._curve("theory", _loss(z), "line", 1),),
                "step",
                "loss",
                log_y=True,
                x_range=(0, self.steps),
                y_range=(_LOW, _HIGH),
            ),
            Picture(
                "Learning rate times the kernel",
                (
                    self._curve("theory", shrunk, "line", 1),
                    Curve("stable below 2", [0, self.steps], [2.0, 2.0], "dashes", 0),
                ),
                "step",
                "lr · kernel",
                x_range=(0, self.steps),
                y_range=(0, 5),
            ),
        )

    def _numbers(self, z: np.ndarray, kernel: np.ndarray) -> tuple[Number, ...]:
        losses = 0.5 * np.clip(z, -1e150, 1e150) ** 2
        return (
            Number("phase", nk.theory.phase_of(losses), "lazy, catapult or divergent"),
            Number("highest loss", float(losses.max()), "over all steps"),
            Number("lr · kernel after training", float(self.ratio * kernel[-1]), "below 2 the loss falls"),
        )

    def python(self, checked: bool = False) -> str:
        return program(__name__, _THEORY + _CHECK * checked, **self.values())


def trained(seed: int, width: int, output: float, ratio: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and kernels, relative to the first, of a network whose head is moved to the output asked for."""
    net, x = nk.MLP(in_dim=1, widths=(width,), activation="relu"), np.ones((1, 1))
    theta = net.init(jax.random.key(seed))
    # The output is features @ head.
    features = np.maximum(np.asarray(theta[0]["weight"]), 0) / width**0.5
    moved = features.T * (output - float(net(theta, x)[0, 0])) / (features**2).sum()
    theta[1] = {**theta[1], "weight": np.asarray(theta[1]["weight"]) + moved}
    kernel = float(nk.kernels.EmpiricalNTK(net, theta)(x)[0, 0])
    algorithm = nk.GradientDescent(ratio / kernel, steps=steps)
    run = nk.simulate(net, theta, x, np.zeros(1), algorithm, nk.Record(["outputs", "kernel"], every=1))
    outputs, kernels = (np.asarray(run.history[name]).reshape(-1) for name in ("outputs", "kernel"))
    return outputs, kernels / kernel


_THEORY = """
ratio, width, output, steps = {ratio}, {width}, {output}, {steps}
path = nk.theory.catapult(z=output, ntk=1.0, y=0.0, curvature=1 / width, lr=ratio, steps=steps)

_, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.semilogy(path.z**2 / 2, label="theory")
left.set(title="Loss", xlabel="step")
right.plot(ratio * path.ntk, label="theory")
right.plot([0, steps], [2, 2], "--", color="gray", label="stable below 2")
right.set(title="Learning rate times the kernel", xlabel="step")
"""
_CHECK = """
for seed in range(5):
    z, kernel = trained(seed, width, output, ratio, steps)
    left.semilogy(z**2 / 2, color="C1", lw=0.7, label="trained networks")
    right.plot(ratio * kernel, color="C1", lw=0.7, label="trained networks")
"""


def _loss(z: np.ndarray) -> np.ndarray:
    """1/2 z^2, cut where no axis could show it."""
    loss = 0.5 * np.clip(z, -1e150, 1e150) ** 2
    return np.where(loss < _HIGH, np.maximum(loss, 1e-16), np.nan)
