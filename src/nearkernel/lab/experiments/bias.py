"""Which of many solutions a diagonal network finds: from least L1 to least L2 norm."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.program import program

WEIGHTS = 24
ALPHAS = np.geomspace(1e-6, 10, 29)  # of the curves
STARTS = (3.0, 0.3, 0.03, 0.003)  # of trained networks, besides the one chosen
BETA = np.linspace(-2, 2, 161)


@dataclasses.dataclass(frozen=True)
class Bias(Experiment):
    """A diagonal network has 24 weights and fewer points to fit, so many choices of weights fit them all. Which one
    gradient flow finds depends on the scale alpha of the initialization. A large alpha gives the weights of least L2
    norm, like a kernel method. A small alpha gives nearly the weights of least L1 norm, most of them zero. Move alpha
    and watch the gray weights, which are zero in truth, vanish. Only the logarithm of alpha counts, so the way to the
    sparse solution is long."""

    title = "Implicit bias"
    menu = "Bias"
    formulas = (
        r"f(x) = \sum_i \beta_i x_i, \quad \beta_i = u_i^2 - v_i^2, \quad u_i(0) = v_i(0) = \alpha",
        r"\beta(\infty) = \operatorname{argmin}_{X \beta = y} \; \sum_i \alpha^2 q(\beta_i / \alpha^2)",
        r"q(z) = 2 + z \, \mathrm{arcsinh}(z / 2) - \sqrt{4 + z^2}",
    )
    button = "Train five networks"
    movie = "alpha"
    presets = (
        Preset(
            "Kernel", {"alpha": 5.0}, "Large initialization: the weights of least L2 norm, none of them zero."
        ),
        Preset(
            "Sparse", {"alpha": 1e-5}, "Small initialization: nearly least L1 norm, most weights are zero."
        ),
        Preset(
            "Few points",
            {"points": 6, "alpha": 1e-5},
            "With few points the sparse solution need not be the truth.",
        ),
        Preset("Between", {"alpha": 0.3}, "Neither norm is minimal: the potential lies between the two."),
    )

    alpha: float = setting(0.01, "Scale of the initialization.", low=1e-5, high=10.0, log=True)
    points: int = setting(14, "Number of points to fit.", low=3, high=20)
    nonzero: int = setting(3, "Number of nonzero weights in truth.", low=1, high=5)
    seed: int = setting(0, "Draws the points.", low=0, high=99)

    def theory(self) -> Answer:
        problem = problem_of(self.points, self.nonzero, self.seed)
        beta = nk.theory.implicit_minimizer(problem.x, problem.y, self.alpha)
        pictures = (
            self._path(problem),
            self._norms(problem),
            self._weights(problem, beta),
            self._potential(),
        )
        return Answer(pictures, self._numbers(problem, beta))

    def check(self, watch: Watch) -> Answer:
        watch(0.0, "compiling")
        problem, found = problem_of(self.points, self.nonzero, self.seed), []
        theory = shown = self.theory()
        for alpha in (self.alpha, *STARTS):
            found.append((alpha, trained(problem, alpha)))
            shown = self._compared(theory, found)
            watch(len(found) / 5, f"network {len(found)} of 5", shown)
        return shown

    def _compared(self, theory: Answer, found: list[tuple[float, np.ndarray]]) -> Answer:
        problem = problem_of(self.points, self.nonzero, self.seed)
        path, norms, weights, potential = theory.pictures
        alphas, betas = np.array([alpha for alpha, _ in found]), np.array([beta for _, beta in found])
        pictures = (
            path.plus(Curve("trained", np.repeat(alphas, WEIGHTS), betas.ravel(), "dots", 4)),
            norms.plus(
                Curve("L1, trained", alphas, problem.l1(betas), "dots", 1),
                Curve("L2, trained", alphas, problem.l2(betas), "dots", 2),
            ),
            weights.plus(Curve("trained", np.arange(WEIGHTS), betas[0], "dots", 4)),
            potential,
        )
        beta = nk.theory.implicit_minimizer(problem.x, problem.y, self.alpha)
        away, loss = np.abs(betas[0] - beta).max(), 0.5 * np.sum((problem.x @ betas[0] - problem.y) ** 2)
        measured = (
            Number("trained − theory", float(away), "largest difference of a weight, at this alpha"),
            Number("remaining loss", float(loss), "training stops after a fixed time"),
        )
        return Answer(pictures, theory.numbers + measured)

    def _path(self, problem: "Problem") -> Picture:
        others = problem.path[:, self.nonzero :]
        gap = np.full((1, others.shape[1]), np.nan)  # between one curve and the next
        x = np.concatenate([np.repeat(ALPHAS[:, None], others.shape[1], 1), gap]).T.ravel()
        low, high = float(problem.path.min()) - 0.1, float(problem.path.max()) + 0.1
        parts = [Curve("zero in truth", x, np.concatenate([others, gap]).T.ravel(), "line", 0)]
        parts += [
            Curve(f"weight {i}", ALPHAS, problem.path[:, i], "line", 1 + i) for i in range(self.nonzero)
        ]
        parts.append(Curve("this alpha", [self.alpha] * 2, [low, high], "dashes", 0))
        return Picture(
            "Weights at the end of training", tuple(parts), "alpha", "weight",
            log_x=True, x_range=(1e-6, 10), y_range=(low, high),
        )  # fmt: skip

    def _norms(self, problem: "Problem") -> Picture:
        l1, l2 = problem.l1(problem.path), problem.l2(problem.path)
        most = float(max(l1.max(), l2.max()))
        parts = (
            Curve("L1", ALPHAS, l1, "line", 1),
            Curve("L2", ALPHAS, l2, "line", 2),
            Curve("this alpha", [self.alpha] * 2, [1.0, most], "dashes", 0),
        )
        return Picture(
            "Norms of the solution", parts, "alpha", "norm / least norm",
            log_x=True, x_range=(1e-6, 10),
        )  # fmt: skip

    def _weights(self, problem: "Problem", beta: np.ndarray) -> Picture:
        which, most = np.arange(WEIGHTS), 0.1 + float(max(np.abs(problem.path).max(), 1.5))
        parts = (
            Curve("theory", which, beta, "bars", 1),
            Curve("least L1 norm", which, problem.sparse, "dots", 3),
            Curve("least L2 norm", which, problem.least, "dots", 2),
        )
        return Picture("Weights at this alpha", parts, "weight", "value", y_range=(-most, most))

    def _potential(self) -> Picture:
        at = [nk.theory.implicit_potential([beta], self.alpha) for beta in (*BETA, 1.0)]
        parts = (
            Curve("potential", BETA, np.array(at[:-1]) / at[-1], "line", 1),
            Curve("absolute value", BETA, np.abs(BETA), "dashes", 3),
            Curve("square", BETA, BETA**2, "dashes", 2),
        )
        return Picture(
            "What is minimized: potential of a weight",
            parts,
            "weight",
            "potential, scaled to 1 at 1",
            y_range=(0, 4),
        )

    def _numbers(self, problem: "Problem", beta: np.ndarray) -> tuple[Number, ...]:
        return (
            Number("L1 norm / least", float(problem.l1(beta)), "1 for the sparse solution"),
            Number("L2 norm / least", float(problem.l2(beta)), "1 for the kernel method"),
            Number(
                "distance from the truth",
                float(np.linalg.norm(beta - problem.truth)),
                "L2 norm of the difference of the weights",
            ),
        )

    def python(self, checked: bool = False) -> str:
        return program(__name__, _THEORY + _CHECK * checked, **self.values())


class Problem(NamedTuple):
    """Points, the weights that made them, and the solutions that do not depend on the chosen alpha."""

    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    sparse: np.ndarray
    least: np.ndarray
    path: np.ndarray

    def l1(self, beta: np.ndarray) -> np.ndarray:
        return np.abs(beta).sum(axis=-1) / np.abs(self.sparse).sum()

    def l2(self, beta: np.ndarray) -> np.ndarray:
        return np.linalg.norm(beta, axis=-1) / np.linalg.norm(self.least)


@functools.lru_cache(maxsize=32)
def problem_of(points: int, nonzero: int, seed: int) -> Problem:
    from scipy.optimize import linprog

    x = np.random.default_rng(seed).normal(size=(points, WEIGHTS))
    truth = np.zeros(WEIGHTS)
    truth[:nonzero] = np.linspace(1.5, 0.5, nonzero) * (-1.0) ** np.arange(nonzero)
    y = x @ truth
    halves = linprog(np.ones(2 * WEIGHTS), A_eq=np.hstack([x, -x]), b_eq=y).x  # both at least 0
    path = np.array([nk.theory.implicit_minimizer(x, y, alpha) for alpha in ALPHAS])
    return Problem(
        x, y, truth, halves[:WEIGHTS] - halves[WEIGHTS:], np.linalg.lstsq(x, y, rcond=None)[0], path
    )


def trained(problem: Problem, alpha: float) -> np.ndarray:
    """One network for all scales: its initial weights are passed, so that it is compiled once."""
    net, start = nk.theory.DiagonalNetwork(WEIGHTS), np.full(WEIGHTS, alpha)
    time = 2000 / float(np.linalg.norm(problem.x, 2)) ** 2 / max(alpha**2, 0.5)
    flow = nk.GradientFlow(time=time)
    run = nk.simulate(net, {"plus": start, "minus": start}, problem.x, problem.y, flow)
    return net.weights(run.params)


_THEORY = """
alpha, points, nonzero, seed = {alpha}, {points}, {nonzero}, {seed}
problem = problem_of(points, nonzero, seed)
path, l1, l2 = problem.path, problem.l1, problem.l2

_, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
gap = np.full((WEIGHTS - nonzero, 1), np.nan)  # between one curve and the next
others = np.hstack([path[:, nonzero:].T, gap]).ravel()
one.semilogx(np.tile(np.append(ALPHAS, np.nan), WEIGHTS - nonzero), others, color="grey", label="zero in truth")
for i in range(nonzero):
    one.semilogx(ALPHAS, path[:, i], label=f"weight {{i}}")
one.plot([alpha, alpha], [path.min() - 0.1, path.max() + 0.1], "--", color="grey", label="this alpha")
one.set(title="Weights at the end of training", xlabel="alpha")

two.semilogx(ALPHAS, l1(path), color="C0", label="L1")
two.semilogx(ALPHAS, l2(path), color="C1", label="L2")
two.plot([alpha, alpha], [1, max(l1(path).max(), l2(path).max())], "--", color="grey", label="this alpha")
two.set(title="Norms of the solution", xlabel="alpha")

theory = nk.theory.implicit_minimizer(problem.x, problem.y, alpha)
three.plot(theory, drawstyle="steps-mid", label="theory")
three.plot(problem.sparse, "o", label="least L1 norm")
three.plot(problem.least, "o", label="least L2 norm")
three.set(title="Weights at this alpha", xlabel="weight")

potential = np.array([nk.theory.implicit_potential([each], alpha) for each in BETA])
four.plot(BETA, potential / nk.theory.implicit_potential([1.0], alpha), label="potential")
four.plot(BETA, np.abs(BETA), "--", label="absolute value")
four.plot(BETA, BETA**2, "--", label="square")
four.set(title="What is minimized: potential of a weight", xlabel="weight")
"""
_CHECK = """
starts = np.array([alpha, *STARTS])
betas = np.array([trained(problem, each) for each in starts])
one.plot(np.repeat(starts, WEIGHTS), betas.ravel(), "o", ms=3, color="black", label="trained")
two.plot(starts, l1(betas), "o", color="C0", label="L1, trained")
two.plot(starts, l2(betas), "o", color="C1", label="L2, trained")
three.plot(betas[0], "kx", label="trained")
"""
