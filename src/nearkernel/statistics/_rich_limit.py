r"""The limit from several runs: scrambles, the anchor, and what the tolerance leaves out.

The anchor is a control variate. The same neurons at vanishing richness are a kernel machine with the cloud's own
kernel; what it predicts otherwise than the exact kernel is the part of the sampling error that is known:

    f = f_cloud - beta (lazy_cloud - lazy_exact),   beta in [0, 1] with the least scatter over scrambles.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import scipy.stats

from .._blas import one_thread
from .._memory import available_bytes, cores, require_fits
from .._threads import in_order
from ..dynamics._drive import Descent, Flow
from ._rich_problem import Problem, Run

_FEW_COORDINATES, _MOST_COORDINATES = 128, 8192
_GROWTH = 3  # directions later, over those at initialization
NARROW = 256  # neurons of the last hidden layer of drawn networks
_SMALLER = 3.0  # times: the tolerance of a run that checks it


@dataclasses.dataclass(frozen=True)
class Limit:
    """Outputs at all moments, with errors: `train` (T, n, out), and `new` (kept, m, out) at the moments `kept`.

    NaN from a failure on; `failure` is "", "diverged" or "directions", at step `failed`. `checked`: whether errors know
    of the tolerance.
    """

    times: np.ndarray
    kept: np.ndarray
    train: np.ndarray
    train_error: np.ndarray
    new: np.ndarray
    new_error: np.ndarray
    failure: str
    failed: int
    rank: tuple[tuple[int, int], ...]
    sharpness: tuple[float, int]
    checked: bool


def limit_of(problem: Problem) -> Limit:
    """From as many runs as `problem.clouds` says; of a deep linear network from one, which is exact."""
    with one_thread():
        return _exact(problem) if problem.linear else _sampled(problem)


def _exact(problem: Problem) -> Limit:
    """In coordinates, as many as it needs."""
    progress, size, driver = Progress(problem.clouds.watch, 1), _FEW_COORDINATES, problem.driver()
    while True:
        make = lambda size=size: problem.system(problem.exact(size))
        run = problem.run(make, driver, progress.of(0))
        if run.failure != "directions" or size >= _MOST_COORDINATES:
            break
        size, driver = 4 * size, problem.driver()
    return _Gathered(problem, driver, [run]).limit()


def _sampled(problem: Problem) -> Limit:
    scrambles, driver, threads = problem.clouds.scrambles, problem.driver(), _threads(problem)
    checked = problem.layout.depth > 1 or isinstance(driver, Flow)
    progress = Progress(problem.clouds.watch, 2 * scrambles + checked)

    def job(name: str, scramble: int, how: Any) -> Run:
        place = scramble + {"rich": 0, "lazy": scrambles, "check": 2 * scrambles}[name]
        tol = problem.tol / _SMALLER if name == "check" else problem.tol
        make = lambda: problem.system(problem.sampled(scramble, tol, lazy=name == "lazy"))
        with jax.enable_x64(True):  # thread-local: each task opens its own
            every = problem.clouds.every * (2 if name == "check" and isinstance(how, Flow) else 1)
            found = problem.run(make, how, progress.of(place), every)
        progress.of(place)(1.0)
        return found

    first = job("rich", 0, driver)
    if first.failure and not len(first.times):
        raise ValueError(
            f"{len(problem.both)} points are too many for clouds of {problem.neurons} neurons: "
            "give `clouds=nk.statistics.Clouds(neurons=...)` more, or a larger `tol`."
        )
    again, finer = (driver.again(), driver.halved()) if isinstance(driver, Flow) else (driver, driver)
    jobs = [("rich", k, again) for k in range(1, scrambles)] + [("lazy", k, again) for k in range(scrambles)]
    jobs += [("check", 0, finer)] * checked
    found = list(in_order(lambda args: job(*args), jobs, threads))
    exact = problem.run(problem.lazy_system, again, lambda share: None)
    rich, lazy = [first, *found[: scrambles - 1]], found[scrambles - 1 : 2 * scrambles - 1]
    return _Gathered(problem, driver, rich, lazy, exact, *found[2 * scrambles - 1 :]).limit()


def drawn_outputs(problem: Problem, draws: int) -> np.ndarray:
    """(draws, m, out): outputs at new points of trained networks of width NARROW."""

    def one(draw: int) -> np.ndarray:
        make = lambda: problem.system(problem.drawn(NARROW, draw), problem.centred)
        with jax.enable_x64(True):
            run = problem.run(make, problem.driver(), progress.of(draw), every=10**9)
        progress.of(draw)(1.0)
        return np.full_like(run.new[0], np.nan) if run.failure else run.new[-1]

    progress = Progress(problem.clouds.watch, draws)
    with one_thread():
        return np.array(list(in_order(one, range(draws), cores())))


class _Gathered:
    """Runs of one training, up to the first step at which one of them failed."""

    def __init__(
        self,
        problem: Problem,
        driver: Descent | Flow,
        rich: list[Run],
        lazy: list[Run] | None = None,
        exact: Run | None = None,
        check: Run | None = None,
    ):
        self.rich, self.lazy, self.exact, self.check = rich, lazy, exact, check
        self.times = np.array(driver.times if isinstance(driver, Flow) else np.arange(problem.end + 1))
        if self.times[-1] < problem.end:  # a flow that failed
            self.times = np.append(self.times, problem.end)
        places = np.arange(len(self.times))
        self.kept = places[(places % problem.clouds.every == 0) | (places == places[-1])]

    def limit(self) -> Limit:
        train, new = (
            self._estimate(name, len(places)) for name, places in (("train", self.times), ("new", self.kept))
        )
        worst = min(self.rich, key=lambda run: len(run.times) if run.failure else np.inf)
        ranks = np.array([run.rank for run in self.rich if len(run.rank) == len(worst.rank)])
        return Limit(
            self.times, self.kept, *train, *new, worst.failure, len(worst.times),
            tuple((int(q), int(p)) for q, p in ranks.max(axis=0)), worst.sharpness,
            self.check is None or not self.check.failure,
        )  # fmt: skip

    def _estimate(self, name: str, length: int) -> tuple[np.ndarray, np.ndarray]:
        """(mean, error), each (length, points, out)."""
        values = _stacked(self.rich, name, length)
        if self.exact is None or self.lazy is None:
            return values[0], np.where(np.isnan(values[0]), np.nan, 0.0)
        values = _anchored(values, _stacked(self.lazy, name, length), _stacked([self.exact], name, length)[0])
        # Two errors cover 95 % of cases, as for a Gaussian, though the variance comes from few scrambles.
        wide = scipy.stats.t.ppf(0.975, len(values) - 1) / scipy.stats.norm.ppf(0.975)
        error = wide**2 * _moderated(values.var(axis=0, ddof=1)) / len(values)
        if self.check is not None and not self.check.failure:
            finer = _stacked([self.check], name, length)[0]
            raw = _stacked(self.rich[:1], name, length)[0]
            error = error + _moderated((finer - raw) ** 2)
        return values.mean(axis=0), np.sqrt(error)


def _stacked(runs: Sequence[Run], name: str, length: int) -> np.ndarray:
    """(runs, length, points, out), NaN where one of them has failed."""
    parts = [getattr(run, name) for run in runs]
    found = np.full((len(parts), length, *parts[0].shape[1:]), np.nan)
    for place, part in enumerate(parts):
        found[place, : len(part)] = part[:length]
    return found


def _anchored(rich: np.ndarray, lazy: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """At every moment the share of the anchor with the least scatter; none where a lazy network diverges."""
    around, other = rich - rich.mean(axis=0), lazy - lazy.mean(axis=0)
    both, own = ((other * part).sum(axis=(0, 2, 3), keepdims=True) for part in (around, other))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(np.where(own > 0, both / own, 0.0), 0.0, 1.0)
        return rich - np.where(np.isfinite(share) & (share > 0), share * (lazy - exact), 0.0)


def _moderated(squares: np.ndarray) -> np.ndarray:
    """Half way to their mean over points and outputs: a few scrambles may agree by chance at one of them."""
    return 0.5 * (squares + squares.mean(axis=(1, 2), keepdims=True))


def _threads(problem: Problem) -> int:
    """How many runs at a time fit into memory; refuses if not one does."""
    points, depth = min(len(problem.both), 1024), problem.layout.depth
    item = np.dtype(problem.clouds.dtype).itemsize
    field = item * problem.neurons
    one = field * (6 * depth * points + _GROWTH * 7 * (depth - 1) * (points + len(problem.x)))
    require_fits(
        one, f"clouds of {problem.neurons} neurons at {points} points", "use fewer neurons or points"
    )
    return min(cores(), max(1, available_bytes() // (2 * one)))


class Progress:
    """Tells `watch(share, left)` how much of several runs is done, and the seconds that are left."""

    def __init__(self, watch: Callable[[float, float], None] | None, runs: int):
        self._watch, self._shares = watch, [0.0] * runs
        self._lock, self._began = threading.Lock(), time.perf_counter()

    def of(self, run: int) -> Callable[[float], None]:
        def tell(share: float) -> None:
            if self._watch is None:
                return
            with self._lock:
                self._shares[run] = share
                total = sum(self._shares) / len(self._shares)
                passed = time.perf_counter() - self._began
                self._watch(total, passed * (1.0 - total) / total if total else np.inf)

        return tell
