"""How the test error falls with the number of examples, from one kernel matrix, beside real fits."""

import dataclasses

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.datasets import POOL, pool
from .parts.program import program

SIZES = (10, 20, 40, 80, 160, POOL)
AHEAD = (POOL, 2 * POOL, 4 * POOL)
FITS, ROUNDS = 4, 5  # real fits at each size


@dataclasses.dataclass(frozen=True)
class LearningCurve(Experiment):
    """How many examples does a network need? From one kernel matrix of the available rows, theory computes the test
    error after training on 10, 20, 40, ... of them, without a test set and without training. The band is the
    uncertainty due to the limited number of rows; beyond them a power law extrapolates, with its interval. Then fit
    real subsets and test on the other rows. Move the ridge: without it, noise is fitted."""

    title = "Learning curve"
    menu = "Learning curve"
    formulas = (
        r"E(m) = \mathbb{E} \left[ (z_m(x) - y)^2 \right], \qquad E(m) \approx c \, m^{-\alpha}",
        r"z_{-i}(x_i) - y_i = - \frac{[(\Theta + \lambda)^{-1} y]_i}{[(\Theta + \lambda)^{-1}]_{ii}}",
    )
    button = f"Fit {FITS * ROUNDS} times at each size"
    movie = "ridge"
    presets = (
        Preset(
            "No ridge",
            {"ridge": 1e-4},
            "On noisy data the error is large: the noise in the targets is fitted.",
        ),
        Preset("Too much ridge", {"ridge": 1000.0}, "Nothing is learned until there are many rows."),
        Preset(
            "Digits",
            {"data": "digits", "ridge": 0.1},
            "Handwritten digits, 0 to 4 against 5 to 9: a steep curve.",
        ),
        Preset(
            "One relevant input",
            {"data": "wave", "ridge": 1.0},
            "Only one of five inputs matters, but the kernel does not know which.",
        ),
    )

    data: str = setting(
        "diabetes", "Data set; 240 rows of it are used.", choices=("diabetes", "digits", "wave")
    )
    ridge: float = setting(10.0, "Strength of the ridge.", low=1e-4, high=1e3, log=True)
    depth: int = setting(2, "Hidden layers.", low=1, high=4)
    activation: str = setting("relu", "Activation of the hidden layers.", choices=("relu", "erf", "gelu"))
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.5, high=4)
    bias_var: float = setting(0.1, "Variance of the biases.", low=0, high=2)

    def theory(self) -> Answer:
        curve = self._curve()
        ahead = curve.extrapolate(AHEAD)
        low, high = np.maximum(curve.error - curve.sem, 1e-9), curve.error + curve.sem
        theory = "from one kernel matrix"
        picture = Picture(
            "Test error",
            (
                Curve("theory", curve.sizes, curve.error, "line", 1, band=(low, high), group=theory),
                Curve(
                    "training error",
                    curve.sizes,
                    np.maximum(curve.train_error, 1e-9),
                    "dashes",
                    0,
                    group=theory,
                ),
                Curve(
                    "power law",
                    ahead.sizes,
                    ahead.error,
                    "dashes",
                    4,
                    band=(ahead.low, ahead.high),
                    group="beyond",
                ),
            ),
            "examples",
            "squared error",
            log_x=True,
            log_y=True,
            y_range=(0.02, 3.0),
        )
        power, doubt = curve.slope
        numbers = (
            Number("error with all rows", float(curve.error[-1]), "leave-one-out", float(curve.sem[-1])),
            Number(
                "slope", float(power), "power with which the error falls at the largest sizes", float(doubt)
            ),
            Number(
                "error with twice the rows",
                float(ahead.error[1]),
                f"{ahead.low[1]:.3g} to {ahead.high[1]:.3g}",
            ),
        )
        notes = () if ahead.trusted else (f"Do not trust the power law here: {ahead.reason}",)
        return Answer((picture,), numbers, (*curve.notes, *notes))

    def check(self, watch: Watch) -> Answer:
        theory = answer = self.theory()
        found: list[np.ndarray] = []
        for turn in range(ROUNDS):
            watch(turn / ROUNDS, f"fits {FITS * turn + 1} to {FITS * (turn + 1)} at each size", answer)
            found.append(self._curve(check=FITS, key=turn).trained.error[:-1])
            error, sizes = np.mean(found, axis=0), np.array(SIZES[:-1])
            sem = np.std(found, axis=0, ddof=1) / len(found) ** 0.5 if turn else None
            fits = Curve(
                "real fits", sizes, error, "dots", 2, sem=sem, group=f"{FITS * (turn + 1)} at each size"
            )
            answer = dataclasses.replace(theory, pictures=(theory.pictures[0].plus(fits),))
        return answer

    def _curve(self, **more):
        x, y = pool(self.data)
        widths = (256,) * self.depth
        net = nk.MLP(
            x.shape[1], widths, 1, self.activation, weight_var=self.weight_var, bias_var=self.bias_var
        )
        return nk.learning_curve(net, x, y, nk.Ridge(self.ridge), sizes=SIZES, **more)

    def python(self, checked: bool = False) -> str:
        return program(__name__, _THEORY + _CHECK * checked, **self.values())


_THEORY = """
x, y = pool({data!r})
widths = (256,) * {depth}
net = nk.MLP(x.shape[1], widths, 1, {activation!r}, weight_var={weight_var}, bias_var={bias_var})
algorithm = nk.Ridge({ridge})
curve = nk.learning_curve(net, x, y, algorithm, sizes=SIZES)
ahead = curve.extrapolate(AHEAD)

plt.loglog(curve.sizes, curve.error, label="theory")
plt.fill_between(curve.sizes, np.maximum(curve.error - curve.sem, 1e-9), curve.error + curve.sem, alpha=0.2)
plt.loglog(curve.sizes, np.maximum(curve.train_error, 1e-9), "--", color="gray", label="training error")
plt.loglog(ahead.sizes, ahead.error, "--", label="power law")
plt.fill_between(ahead.sizes, ahead.low, ahead.high, alpha=0.2)
plt.title("Test error")
plt.xlabel("examples")
plt.ylim(0.02, 3)
"""
_CHECK = """
found = []
for key in range(ROUNDS):
    fits = nk.learning_curve(net, x, y, algorithm, sizes=SIZES, check=FITS, key=key)
    found.append(fits.trained.error[:-1])
sem = np.std(found, axis=0, ddof=1) / len(found) ** 0.5
plt.errorbar(SIZES[:-1], np.mean(found, axis=0), sem, fmt="o", label="real fits")
"""
