"""A quadratic model: the simplest one whose kernel learns, solved order by order."""

import dataclasses
from typing import Any

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Heat, Number, Picture, Preset, Watch
from .parts.waves import GRID, WAVES, Known, known_of, outputs_of, phi, psi

_COARSE = GRID[::3]  # of the kernel
_EPS = np.linspace(-0.6, 0.6, 61)
_TRAINED = np.linspace(-0.6, 0.6, 7)  # where the test error is measured, besides the chosen eps
_MOST_STEPS = 100_000


@dataclasses.dataclass(frozen=True)
class Quadratic(Experiment):
    """A model of 60 random waves g(x) learns from a few points. With eps = 0 it is a kernel machine. With another
    eps, what it has learned at −x bends its output at x, so its kernel changes during training. Order 0 ignores that;
    orders 1 and 2 predict it without training. The true function is bent as well: the test error is smallest at an
    eps near that bend, and eps* predicts where. At a high learning rate training cannot settle once the kernel has
    grown too large."""

    title = "Quadratic model"
    menu = "Quadratic"
    formulas = (
        r"z(x) = g(x) + \tfrac{\epsilon}{2} \, g(-x)^2, \qquad g(x) = \sum_j W_j \phi_j(x)",
        r"z = z^F + \epsilon z^I + \epsilon^2 z^{II} + \dots",
        r"\epsilon^* = - \frac{\sum (z^F - y) z^I}{\sum (z^I)^2 + 2 (z^F - y) z^{II}}",
    )
    button = "Train the model"
    movie = "eps"
    presets = (
        Preset(
            "A kernel machine", {"eps": 0.0}, "With eps = 0 all orders agree, and the kernel stays fixed."
        ),
        Preset(
            "Bent like the truth",
            {"eps": 0.25, "bend": 0.25},
            "The test error is smallest near the bend of the true function.",
        ),
        Preset(
            "Too much", {"eps": 0.6, "bend": 0.0}, "The true function is not bent: learning features hurts."
        ),
        Preset("High rate", {"rate": 1.8}, "Near the limit of stability the kernel may grow too large."),
    )

    eps: float = setting(0.4, "Strength of feature learning.", low=-0.6, high=0.6)
    rate: float = setting(
        1.0, "Learning rate times the largest eigenvalue of the kernel at initialization.", low=0.1, high=1.9
    )
    bend: float = setting(0.4, "eps of the true function.", low=0.0, high=0.6)
    points: int = setting(8, "Number of training points.", low=3, high=9)
    seed: int = setting(0, "Draws the waves and the points.", low=0, high=99)

    def theory(self) -> Answer:
        known = self._known()
        start, moved = known.start, self.eps * known.drift
        eigenvalues = np.linalg.eigvalsh(known.kernel + self.eps * known.kernel_drift)[::-1]
        pictures = (
            self._prediction(known),
            self._loss(known),
            Picture(
                "Change of the kernel by training", (Heat("order 1", _COARSE, _COARSE, moved, True),),
                "x", "x'", square=True,
            ),
            self._eigenvalues(known, eigenvalues),
        )  # fmt: skip
        found = known.learning
        z_f, z_i, _ = found.terms
        after = self.rate * float(eigenvalues[0] / known.eigenvalues[0])
        numbers = (
            Number(
                "eps*",
                found.best_eps,
                "smallest test error" if found.is_minimum else "largest test error: a maximum",
            ),
            Number(
                "slope of the test error",
                known.scale * found.slope,
                "at eps = 0; negative if learning features helps",
            ),
            Number(
                "correction",
                abs(self.eps) * float(np.linalg.norm(z_i) / np.linalg.norm(z_f)),
                "size of order 1 over order 0; the expansion is good below 0.1",
            ),
            Number(
                "change of the kernel",
                float(np.linalg.norm(moved) / np.linalg.norm(start)),
                "relative to its norm, order 1",
            ),
            Number(
                "lr · kernel after training",
                after,
                "largest eigenvalue, order 1; above 2 training cannot settle",
            ),
        )
        return Answer(pictures, numbers)

    def check(self, watch: Watch) -> Answer:
        watch(0.0, "compiling")
        known, theory = self._known(), self.theory()
        shown = theory
        runs: list[tuple[float, Any]] = []
        for eps in (self.eps, *_TRAINED):
            runs.append((eps, self._trained(known, eps)))
            shown = self._compared(theory, known, runs)
            watch(len(runs) / (1 + len(_TRAINED)), f"eps = {eps:.2g}", shown)
        return shown

    def _known(self) -> Known:
        return known_of(self.rate, self.bend, self.points, self.seed)

    def _trained(self, known: Known, eps: float) -> np.ndarray | None:
        """The weights (1, 60), or None if training does not end."""
        descent = nk.GradientDescent(self.rate / known.eigenvalues[0])
        model = nk.QuadraticModel(phi, psi, float(eps))
        run = nk.simulate(model, np.zeros((1, WAVES)), known.x, known.y, descent, max_steps=_MOST_STEPS)
        return run.params if run.ok else None

    def _compared(self, theory: Answer, known: Known, runs: list[tuple[float, Any]]) -> Answer:
        prediction, loss, heat, eigenvalues = theory.pictures
        outputs = [outputs_of(weights, known.grid, eps) for eps, weights in runs]
        errors = [np.mean((z - known.truth) ** 2) for z in outputs]
        numbers, notes = theory.numbers, theory.notes
        if runs[0][1] is None:
            notes = (f"Training at this eps does not settle within {_MOST_STEPS} steps.",)
        else:
            prediction = prediction.plus(Curve("trained", GRID, outputs[0], "dashes", 4))
            rows = known.x[:, :WAVES] + self.eps * np.asarray(psi(known.x, runs[0][1][0]))
            exact = np.linalg.eigvalsh(rows @ rows.T)[::-1]
            eigenvalues = eigenvalues.plus(Curve("trained", 1 + np.arange(len(exact)), exact, "dots", 4))
            numbers += tuple(
                Number(
                    f"error of order {k}",
                    float(np.abs(z - outputs[0]).max()),
                    "largest difference from the trained model",
                )
                for k, z in enumerate(self._orders(known))
            )
        loss = loss.plus(Curve("trained", [eps for eps, _ in runs], errors, "dots", 4))
        return Answer((prediction, loss, heat, eigenvalues), numbers, notes)

    def _orders(self, known: Known) -> np.ndarray:
        """Predictions to order 0, 1 and 2, (3, grid)."""
        return np.cumsum([self.eps**k * term[:, 0] for k, term in enumerate(known.learning.terms)], axis=0)

    def _prediction(self, known: Known) -> Picture:
        orders = self._orders(known)
        parts = (
            Curve("truth", GRID, known.truth, "line", 0),
            Curve("order 0", GRID, orders[0], "dashes", 1),
            Curve("order 1", GRID, orders[1], "line", 2),
            Curve("order 2", GRID, orders[2], "line", 3),
            Curve("points", known.at, known.y, "dots", 0),
        )
        return Picture("Prediction", parts, "x", "z", x_range=(-3, 3), y_range=(-2, 2))

    def _loss(self, known: Known) -> Picture:
        found, scale = known.learning, known.scale
        predicted, best = scale * found.predicted(_EPS), found.best_eps
        here = scale * found.predicted([self.eps])
        parts = [Curve("to second order", _EPS, predicted, "line", 1)]
        if abs(best) <= 0.6:
            parts.append(Curve("eps*", [best], scale * found.predicted([best]), "dots", 3))
        parts.append(Curve("this eps", [self.eps], here, "dots", 2))
        high = 1.1 * float(max(predicted.max(), 1e-3))
        return Picture(
            "Test error", tuple(parts), "eps", "mean squared error",
            x_range=(-0.62, 0.62), y_range=(min(0.0, float(predicted.min())) - 0.03 * high, high),
        )  # fmt: skip

    def _eigenvalues(self, known: Known, after: np.ndarray) -> Picture:
        which = 1 + np.arange(self.points)
        parts = (
            Curve("before", which, known.eigenvalues, "dots", 1),
            Curve("after, order 1", which, np.where(after > 0, after, np.nan), "dots", 2),
        )
        return Picture("Eigenvalues of the kernel", parts, "index", "eigenvalue", log_y=True)

    def python(self, checked: bool = False) -> str:
        return _THEORY.format(**self.values()) + (_CHECK if checked else "") + _END


_THEORY = """\
import matplotlib.pyplot as plt
import numpy as np
import nearkernel as nk

eps, rate, bend, points, seed = {eps}, {rate}, {bend}, {points}, {seed}
rng, grid = np.random.default_rng(seed), np.linspace(-3, 3, 121)
speed, phase = 1.6 * rng.normal(size=60), rng.uniform(0, 2 * np.pi, 60)
at = np.linspace(-2.7, 2.7, points) + rng.uniform(-0.8, 0.8, points) / points
wave = lambda t: np.cos(np.outer(t, speed) + phase) * (2 / 60) ** 0.5
truth = lambda t: np.sin(2 * t + 1) + bend / 2 * np.sin(1 - 2 * t) ** 2
x, x_new = (np.hstack([wave(t), wave(-t)]) for t in (at, grid))  # a row: the waves at x and at -x
y, y_new = truth(at), truth(grid)

phi = lambda x: x[:, :60]
psi = lambda x, u: x[:, 60:] * (x[:, 60:] @ u)[:, None]
model, kernel = nk.QuadraticModel(phi, psi, eps), nk.kernels.FeatureKernel(phi)
descent = nk.GradientDescent(rate / np.linalg.eigvalsh(kernel(x))[-1])
solution = nk.solve(model, x, y, descent, order=2)
found = solution.feature_learning(x_new, y_new)  # terms of the test outputs, without powers of eps
orders = np.cumsum([eps**k * term[:, 0] for k, term in enumerate(found.terms)], axis=0)
error = lambda eps: 2 / 121 * found.predicted(eps)
values = lambda matrix: np.linalg.eigvalsh(matrix)[::-1]
print(f"eps* = {{found.best_eps:.4f}}, a minimum: {{found.is_minimum}}")

_, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
one.plot(grid, y_new, color="gray", label="truth")
for k, style in enumerate(("--", "-", "-")):
    one.plot(grid, orders[k], style, label=f"order {{k}}")
one.plot(at, y, "ko", label="points")
one.set(title="Prediction", xlabel="x", ylim=(-2, 2))

range_of_eps = np.linspace(-0.6, 0.6, 61)
two.plot(range_of_eps, error(range_of_eps), label="to second order")
two.plot([found.best_eps], error([found.best_eps]), "o", label="eps*")
two.plot([eps], error([eps]), "o", label="this eps")
two.set(title="Test error", xlabel="eps", xlim=(-0.62, 0.62))

moved = solution.effective_kernel(x_new[::3]) - kernel(x_new[::3])
three.pcolormesh(grid[::3], grid[::3], moved, cmap="RdBu_r")
three.set(title="Change of the kernel by training", xlabel="x", ylabel="x'")

number, after = np.arange(1, points + 1), values(solution.effective_kernel(x))
four.semilogy(number, values(kernel(x)), "o", label="before")
four.semilogy(number, np.where(after > 0, after, np.nan), "o", label="after, order 1")
four.set(title="Eigenvalues of the kernel", xlabel="number")
"""
_CHECK = """
errors, several = [], [eps, *np.linspace(-0.6, 0.6, 7)]
for each in several:
    other = nk.QuadraticModel(phi, psi, each)
    run = nk.simulate(other, np.zeros((1, 60)), x, y, descent, max_steps=100_000)
    z = np.asarray(other(run.params, x_new))[:, 0] if run.ok else np.full(121, np.nan)
    errors.append(np.mean((z - y_new) ** 2))
    if len(errors) == 1 and run.ok:  # at the chosen eps
        one.plot(grid, z, "k--", label="trained")
        four.semilogy(number, values(nk.kernels.EmpiricalNTK(other, run.params)(x)), "kx", label="trained")
two.plot(several, errors, "kx", label="trained")
"""
_END = """
one.legend(), two.legend(), four.legend()
plt.show()
"""
