"""What depth does to inference: deep linear networks, where everything is known exactly."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.deep_linear import CHECK, THEORY
from .parts.program import program

INPUTS = 30
DEPTHS = (0, 1, 2, 4, 7, 12, 20, 30)
VARIANCES = np.geomspace(0.1, 4.0, 31)
PLACES = np.linspace(-1.0, 2.0, 61)
CHECKED = slice(0, None, 3)  # variances and places at which networks are compared
_NORMALS, _AT_ONCE = 2e8, 3e6  # random numbers of a check, in all and at a time
FEWEST = 40  # networks that must share the weight


@dataclasses.dataclass(frozen=True)
class DeepLinear(Experiment):
    """A product of random matrices computes nothing that a single matrix could not, but its prior is different. Move
    the depth: the evidence rises to a flat peak, and away from the data the band of predictions shrinks or grows
    toward the scale that the data suggest. A network without hidden layers does so only if its prior variance is
    chosen well: see the peak in the second picture. The check draws real networks and weights each by how well it
    explains the data."""

    title = "Deep linear networks"
    menu = "Deep linear"
    formulas = (
        r"z(x) = W^{(L+1)} \cdots W^{(1)} x = \theta \cdot x, \quad W^{(l)}_{ij} \sim N(0, \sigma^2 / N_{l-1})",
        r"Z = \frac{1}{(\det X X^T)^{1/2} \, (\pi t)^{P/2}} \prod_{l=1}^{L} \frac{1}{\Gamma(N_l/2)} \;"
        r"G\left(\frac{t}{c}; \frac{P}{2}, \frac{N_1}{2}, \ldots, \frac{N_L}{2}\right)",
        r"t = |\theta_*|^2, \quad c = \prod_{l=0}^{L} \frac{2 \sigma^2}{N_l}",
        r"\theta = \theta_* + S^{1/2} \, \xi_\perp, \quad p(S \mid y) \propto p(S) \, S^{-P/2} e^{-t/2S}",
    )
    button = "Draw networks"
    movie = "depth"
    presets = (
        Preset("One layer", {"depth": 0}, "The scale of the prior is wrong and stays wrong."),
        Preset("Deep", {"depth": 20}, "Depth lets the data choose the scale, and the evidence rises."),
        Preset("Narrow", {"width": 2, "depth": 5}, "Few neurons give a prior with heavy tails."),
        Preset(
            "The right scale",
            {"prior_var": 0.16, "depth": 0},
            "A well chosen variance makes depth unnecessary.",
        ),
    )

    depth: int = setting(5, "Hidden layers.", low=0, high=DEPTHS[-1])
    width: int = setting(20, "Neurons in each hidden layer.", low=1, high=200, log=True)
    points: int = setting(10, f"Data points, each with {INPUTS} inputs and no noise.", low=1, high=INPUTS)
    prior_var: float = setting(1.0, "Variance of the weights, times fan-in.", low=0.1, high=4.0, log=True)
    signal: float = setting(
        0.4, "Length of the true weights; the prior expects about 1.", low=0.1, high=3.0, log=True
    )
    seed: int = setting(0, "Draws the data.", low=0, high=99)

    def theory(self) -> Answer:
        x, y, truth = self._data()
        layers, stats = (self.width,) * self.depth, nk.theory
        depths = sorted({*DEPTHS, self.depth})
        best = {n: _best(self.points, self.signal, self.seed, self.width, n) for n in depths}
        evidence = lambda n, v: stats.deep_linear_log_evidence(x, y, (self.width,) * n, v)
        here = stats.deep_linear_posterior(x, y, layers, self.prior_var)
        at_best = [best[n][1] for n in depths]
        top = max(at_best)
        chosen = lambda place: Curve("this network", [place], [here.log_evidence], "dots", 3)
        pictures = (
            Picture(
                "Evidence over depth",
                (
                    Curve(
                        "your prior variance",
                        depths,
                        [evidence(n, self.prior_var) for n in depths],
                        "line",
                        1,
                    ),
                    Curve("best prior variance", depths, at_best, "dashes", 2),
                    chosen(self.depth),
                ),
                "hidden layers",
                "ln Z",
                y_range=(top - 15, top + 2),
            ),
            Picture(
                "Evidence over the prior variance",
                (
                    Curve("your depth", VARIANCES, [evidence(self.depth, v) for v in VARIANCES], "line", 1),
                    Curve("best", [best[self.depth][0]], [best[self.depth][1]], "dots", 2),
                    chosen(self.prior_var),
                ),
                "prior variance",
                "ln Z",
                log_x=True,
                x_range=(0.095, 4.2),
                y_range=(top - 25, top + 3),
            ),
            self._predictions(x, y, truth, here),
        )
        return Answer(pictures, self._numbers(here, best[self.depth][0]))

    def _data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return data(self.points, self.signal, self.seed)

    def _predictions(self, x, y, truth, here) -> Picture:
        line = line_from(x[0], self.seed)
        flat = nk.theory.deep_linear_posterior(x, y, (), self.prior_var)
        curves = []
        for name, law, kind, series in (
            ("linear network", flat, "dashes", 0),
            ("this network", here, "line", 1),
        ):
            mean, std = law.mean(line), law.std(line)
            curves.append(Curve(name, PLACES, mean, kind, series, band=(mean - std, mean + std)))
        top = np.abs(line @ truth).max() + 2.5
        return Picture(
            "Predictions and their standard deviation",
            (*curves, Curve("truth", PLACES, line @ truth, "dashes", 3)),
            "from a data point (0) to a new one (1)",
            "output",
            y_range=(-top, top),
        )

    def _numbers(self, here, best: float) -> tuple[Number, ...]:
        layers, t = (self.width,) * self.depth, float(here.theta @ here.theta)
        own = INPUTS * t / self.points
        return (
            Number("ln Z", here.log_evidence, "log evidence: how probable the data are under the prior"),
            Number("best prior variance", best, "largest evidence at this depth and width"),
            Number(
                "effective depth",
                nk.theory.effective_depth(self.points, layers),
                "points times depth/width",
            ),
            Number(
                "scale",
                INPUTS * here.scale,
                "variance away from the data; 1 without hidden layers and prior variance 1",
            ),
            Number(
                "scale, many points",
                nk.theory.limiting_scale(own, self.points, layers, self.prior_var),
                "limit of the scale for many points and inputs",
            ),
            Number("scale of the data", own, "where depth moves the scale, if the prior variance is 1"),
        )

    def check(self, watch: Watch) -> Answer:
        theory = self.theory()
        if self.depth == 0:
            note = "Without hidden layers theory is exact: there is nothing to draw."
            return dataclasses.replace(theory, notes=(note,))
        count, batch = self._sizes()
        rng, scales = np.random.default_rng([self.seed, 2]), np.empty((0, self.depth))
        while (done := len(scales)) < count:
            tell = lambda layer, done=done: watch(done / count, f"layer {layer} of networks from {done + 1}")
            scales = np.concatenate(
                [scales, drawn(rng, min(batch, count - done), self.depth, self.width, tell)]
            )
            watch(len(scales) / count, f"{len(scales)} of {count} networks", self._compared(theory, scales))
        return self._compared(theory, scales)

    def _sizes(self) -> tuple[int, int]:
        """How many networks, and how many at a time."""
        each = self.width * (1 + max(0, self.depth - 1) * self.width)
        return int(np.clip(_NORMALS / each, 300, 30_000)), int(np.clip(_AT_ONCE / self.width**2, 1, 3000))

    def _compared(self, theory: Answer, scales: np.ndarray) -> Answer:
        x, y, _ = self._data()
        law = nk.theory.deep_linear_posterior(x, y, ())
        depths, variances = np.arange(1, self.depth + 1), VARIANCES[CHECKED]
        over_depth = np.transpose(
            [weighed(self.prior_var ** (n + 1) * scales[:, n - 1], x, y)[:2] for n in depths]
        )
        over_var = np.transpose([weighed(v ** (self.depth + 1) * scales[:, -1], x, y)[:2] for v in variances])
        own, line = self.prior_var ** (self.depth + 1) * scales[:, -1], line_from(x[0], self.seed)[CHECKED]
        weights = weighed(own, x, y)[2]
        scale, away = weights @ own, law.perp(line)
        upper, error = law.mean(line) + away * scale**0.5, (weights**2 @ (own - scale) ** 2 / scale) ** 0.5
        dots = (
            ("drawn networks", depths, over_depth[0], over_depth[1]),
            ("drawn networks", variances, over_var[0], over_var[1]),
            ("drawn networks, upper edge", PLACES[CHECKED], upper, 0.5 * away * error),
        )
        pictures = tuple(
            picture.plus(Curve(name, at, z, "dots", 4, sem=sem))
            for picture, (name, at, z, sem) in zip(theory.pictures, dots, strict=True)
        )
        known = np.isfinite(np.concatenate([over_depth[0], over_var[0]])).all()
        note = (
            f"Where fewer than about {FEWEST} of {len(scales)} networks explain the data, no point is drawn."
        )
        return Answer(pictures, theory.numbers, () if known else (note,))

    def python(self, checked: bool = False) -> str:
        count, batch = self._sizes()
        lines = THEORY + CHECK * (checked and self.depth > 0)
        return program(__name__, lines, count=count, batch=batch, **self.values())


def data(points: int, signal: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets, true weights; more points keep those that were there."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=INPUTS)
    truth *= signal / np.linalg.norm(truth)
    x = rng.normal(size=(INPUTS, INPUTS))[:points]
    return x, x @ truth, truth


def line_from(point: np.ndarray, seed: int) -> np.ndarray:
    """Places on a line from a point, at 0, to a new one, at 1."""
    new = np.random.default_rng([seed, 1]).normal(size=INPUTS)
    return point + PLACES[:, None] * (new - point)


def drawn(
    rng: np.random.Generator,
    size: int,
    depth: int,
    width: int,
    tell: Callable[[int], None] = lambda layer: None,
) -> np.ndarray:
    """S of networks of prior variance 1 with 1, 2, ... hidden layers, (size, depth).

    Given all layers but the first, the weights theta are Gaussian of variance S = |W^(L+1) ... W^(2)|^2 / inputs.
    """
    row, found = rng.normal(size=(size, 1, width)) / width**0.5, []
    for layer in range(depth):
        if layer:
            row = row @ (rng.normal(size=(size, width, width)) / width**0.5)
        found.append((row**2).sum(axis=(1, 2)) / INPUTS)
        tell(layer + 1)
    return np.stack(found, axis=1)


def weighed(s: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float, np.ndarray]:
    """ln of the mean density of the data over networks with these S, its standard error, and weights."""
    gram = x @ x.T
    t, log_det = y @ np.linalg.solve(gram, y), np.linalg.slogdet(gram)[1]
    logs = -0.5 * (log_det + len(y) * np.log(2 * np.pi * s) + t / s)
    shares = np.exp(logs - logs.max())
    mean, weights = shares.mean(), shares / shares.sum()
    few = np.nan if weights @ weights > 1 / FEWEST else 0.0  # one network alone explains the data
    return logs.max() + np.log(mean) + few, shares.std() / mean / len(s) ** 0.5 + few, weights + few


# It takes ten times as long as an evidence, and the others move while it stays.
@functools.lru_cache(maxsize=256)
def _best(points: int, signal: float, seed: int, width: int, depth: int) -> tuple[float, float]:
    """The best prior variance and its evidence."""
    x, y, _ = data(points, signal, seed)
    best = nk.theory.best_prior_var(x, y, (width,) * depth)
    return best, nk.theory.deep_linear_log_evidence(x, y, (width,) * depth, best)
