"""Train networks for real, predict each order by order, and compare: over the lazy scale and over the width."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable

import jax
import numpy as np

from .._base.status import StatusKind
from ..dynamics.algorithms.regime import regime
from ..dynamics.algorithms.spectral import GradientDescent
from ..dynamics.simulation.simulate import simulate
from ..dynamics.solving import solve
from ..kernels.empirical.ntk import EmpiricalNTK
from ..models.expansion.taylor import expand
from ..models.networks.mlp import MLP
from ..models.networks.scaled import Scaled
from .forecasting import forecast
from .mean_field.theory import MeanField

ORDERS = (0, 1, 2)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is trained, and on how much."""

    points: int = 60
    test_points: int = 60
    dim: int = 10
    depth: int = 2
    width: int = 256
    activation: str = "tanh"
    alphas: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0)
    widths: tuple[int, ...] = (64, 256, 1024)
    alpha: float = 8.0  # of the sweep over widths
    seeds: int = 1
    seed: int = 0  # the first of them
    tol: float = 1e-6  # of the residual at which training counts as over
    max_steps: int = 200_000
    rich: bool = False  # whether to compute the rich limit of each network too


@dataclasses.dataclass(frozen=True)
class Rung:
    """One network: the distance of each order from the trained one on test inputs, relative to its outputs."""

    sweep: str  # "alpha" or "width"
    alpha: float
    width: int
    seed: int
    errors: tuple[float, ...]
    correction: float  # |z^I| / |z^F|
    seconds: tuple[float, ...]  # to predict, an order
    training_seconds: float
    steps: int
    residual: float  # left after training, relative to the start
    status: str  # how training ended
    converged: bool
    rich: float | None = None  # distance of the rich limit
    regime: str = ""  # "lazy", "nearly lazy" or "rich"

    @property
    def richness(self) -> float:
        return 1.0 / (self.alpha * self.width**0.5)


def cases(settings: Settings) -> list[tuple[str, float, int, int]]:
    over_alpha = [("alpha", alpha, settings.width) for alpha in settings.alphas]
    over_width = [("width", settings.alpha, width) for width in settings.widths]
    seeds = range(settings.seed, settings.seed + settings.seeds)
    return [(*case, seed) for seed in seeds for case in (*over_alpha, *over_width)]


def data(settings: Settings, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian inputs and a smooth target of one direction, with a product of two features that kernels find hard."""
    draw = np.random.default_rng([seed, 1]).normal
    x, x_new = draw(size=(settings.points, settings.dim)), draw(size=(settings.test_points, settings.dim))
    direction = draw(size=settings.dim) / settings.dim**0.5
    return x, x_new, np.sin(1.5 * x @ direction) + 0.3 * x[:, 0] * x[:, -1]


def climb(settings: Settings, case: tuple[str, float, int, int], say: Callable[[str], None]) -> Rung:
    """Train one network and predict it."""
    sweep, alpha, width, seed = case
    x, x_new, y = data(settings, seed)
    net = MLP(settings.dim, (width,) * settings.depth, activation=settings.activation)
    model = Scaled(net, alpha)
    params = model.at(net.init(jax.random.key(seed)))
    kernel = EmpiricalNTK(model, params)(x)
    algorithm = GradientDescent(lr=1 / float(np.linalg.eigvalsh(kernel)[-1]))
    where = f"alpha {alpha:g}, width {width}, seed {seed}"

    say(f"{where}: training")
    start = time.perf_counter()
    run = simulate(model, params, x, y, algorithm, tol=settings.tol, max_steps=settings.max_steps)
    training = time.perf_counter() - start
    if run.status == StatusKind.diverged:
        raise ValueError(
            f"{where}: training {run.status}; leave out this alpha and width, or give larger ones."
        )
    trained = np.asarray(model(run.params, x_new))[:, 0]
    # Both stop at the same step, so that what is compared is the theory alone.
    algorithm = algorithm.at(run.steps)

    expanded = expand(model, params, degree=3)
    errors, seconds, correction = [], [], 0.0
    for order in ORDERS:
        say(f"{where}: order {order}")
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table shows |z^I|/|z^F| itself
            found = solve(expanded, x, y, algorithm, order).predict(x_new)
        seconds.append(time.perf_counter() - start)
        errors.append(float(np.linalg.norm(found.mean - trained) / np.linalg.norm(trained)))
        correction = found.correction if found.correction is not None else 0.0
    rich = None
    if settings.rich:
        say(f"{where}: rich limit")
        found_mean = _rich_limit(model, x, y, algorithm, x_new)
        rich = float(np.linalg.norm(found_mean - trained) / np.linalg.norm(trained))
    left = float(np.sqrt(run.history["loss"][-1] / run.history["loss"][0]))
    return Rung(
        sweep, alpha, width, seed, tuple(errors), correction, tuple(seconds), training, run.steps, left,
        str(run.status), run.ok, rich, regime(model, y, correction).name,
    )  # fmt: skip


def _rich_limit(model: Scaled, x, y, algorithm: GradientDescent, x_new) -> np.ndarray:
    """Of infinitely wide networks of the same richness."""
    theory = MeanField(neurons=4096, scrambles=2, look=4, every=int(max(1, algorithm.steps)))
    law = forecast(model, x, y, algorithm, x_new, theory=theory)
    if not law.ok:
        raise ValueError(f"the rich limit of richness {law.richness:.3g}: {law.status}.")
    return law.mean


def slopes(rungs: list[Rung], sweep: str) -> list[float] | None:
    """Log-log slope of each order's error over the last three values of the sweep; None for fewer than two."""
    rows = means(rungs, sweep)[-3:]
    if len(rows) < 2:
        return None
    at = np.log([value for value, _ in rows])
    return [
        float(np.polyfit(at, np.log([errors[k] for _, errors in rows]), 1)[0]) for k in range(len(ORDERS))
    ]


def means(rungs: list[Rung], sweep: str) -> list[tuple[float, np.ndarray]]:
    """Errors of each order over the seeds (geometric means), by alpha or width."""
    chosen = [rung for rung in rungs if rung.sweep == sweep]
    values = sorted({getattr(rung, sweep) for rung in chosen})
    logs = [
        np.mean([np.log(rung.errors) for rung in chosen if getattr(rung, sweep) == value], axis=0)
        for value in values
    ]
    return [(float(value), np.exp(log)) for value, log in zip(values, logs, strict=True)]
