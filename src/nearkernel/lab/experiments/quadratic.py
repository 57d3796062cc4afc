"""A quadratic model: the simplest one whose kernel learns, solved order by order."""

import dataclasses

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Heat, Number, Picture, Preset, Watch
from .parts.program import program
from .parts.waves import GRID, WAVES, Known, known_of, outputs_of, phi, psi

_COARSE = GRID[::3]  # of the kernel
EPS = np.linspace(-0.6, 0.6, 61)
TRAINED = np.linspace(-0.6, 0.6, 7)  # where the test error is measured, besides the chosen eps
MOST_STEPS = 100_000


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
        runs: list[tuple[float, np.ndarray | None]] = []
        for eps in (self.eps, *TRAINED):
            runs.append((eps, self._trained(known, eps)))
            shown = self._compared(theory, known, runs)
            watch(len(runs) / (1 + len(TRAINED)), f"eps = {eps:.2g}", shown)
        return shown

    def _known(self) -> Known:
        return known_of(self.rate, self.bend, self.points, self.seed)

    def _trained(self, known: Known, eps: float) -> np.ndarray | None:
        """The weights (1, 60), or None if training does not end."""
        descent = nk.GradientDescent(self.rate / known.eigenvalues[0])
        model = nk.QuadraticModel(phi, psi, float(eps))
        run = nk.simulate(model, np.zeros((1, WAVES)), known.x, known.y, descent, max_steps=MOST_STEPS)
        return run.params if run.ok else None

    def _compared(self, theory: Answer, known: Known, runs: list[tuple[float, np.ndarray | None]]) -> Answer:
        prediction, loss, heat, eigenvalues = theory.pictures
        outputs = [outputs_of(weights, known.grid, eps) for eps, weights in runs]
        errors = [np.mean((z - known.truth) ** 2) for z in outputs]
        numbers, notes = theory.numbers, theory.notes
        if runs[0][1] is None:
            notes = (f"Training at this eps does not settle within {MOST_STEPS} steps.",)
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
        predicted, best = scale * found.predicted(EPS), found.best_eps
        here = scale * found.predicted([self.eps])
        parts = [Curve("to second order", EPS, predicted, "line", 1)]
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
        return program(__name__, _THEORY + _CHECK * checked, **self.values())


_THEORY = """
eps, rate, bend, points, seed = {eps}, {rate}, {bend}, {points}, {seed}
known = known_of(rate, bend, points, seed)
found = known.learning  # terms of the test outputs, without powers of eps
orders = np.cumsum([eps**k * term[:, 0] for k, term in enumerate(found.terms)], axis=0)
error = lambda eps: known.scale * found.predicted(eps)
print(f"eps* = {{found.best_eps:.4f}}, a minimum: {{found.is_minimum}}")

_, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
one.plot(GRID, known.truth, color="grey", label="truth")
for k, style in enumerate(("--", "-", "-")):
    one.plot(GRID, orders[k], style, label=f"order {{k}}")
one.plot(known.at, known.y, "ko", label="points")
one.set(title="Prediction", xlabel="x", ylim=(-2, 2))

two.plot(EPS, error(EPS), label="to second order")
two.plot([found.best_eps], error([found.best_eps]), "o", label="eps*")
two.plot([eps], error([eps]), "o", label="this eps")
two.set(title="Test error", xlabel="eps", xlim=(-0.62, 0.62))

three.pcolormesh(GRID[::3], GRID[::3], eps * known.drift, cmap="RdBu_r")
three.set(title="Change of the kernel by training", xlabel="x", ylabel="x'")

values = lambda matrix: np.linalg.eigvalsh(matrix)[::-1]
number, after = np.arange(1, points + 1), values(known.kernel + eps * known.kernel_drift)
four.semilogy(number, known.eigenvalues, "o", label="before")
four.semilogy(number, np.where(after > 0, after, np.nan), "o", label="after, order 1")
four.set(title="Eigenvalues of the kernel", xlabel="number")
"""
_CHECK = """
errors, several = [], [eps, *TRAINED]
for each in several:
    model, descent = nk.QuadraticModel(phi, psi, each), nk.GradientDescent(rate / known.eigenvalues[0])
    run = nk.simulate(model, np.zeros((1, WAVES)), known.x, known.y, descent, max_steps=MOST_STEPS)
    z = outputs_of(run.params if run.ok else None, known.grid, each)
    errors.append(np.mean((z - known.truth) ** 2))
    if len(errors) == 1 and run.ok:  # at the chosen eps
        one.plot(GRID, z, "k--", label="trained")
        four.semilogy(number, values(nk.kernels.EmpiricalNTK(model, run.params)(known.x)), "kx", label="trained")
two.plot(several, errors, "kx", label="trained")
"""
