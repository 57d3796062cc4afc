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

import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used

from ..._run.blas import one_thread
from ..._run.executor import AbstractJob, run
from ..._run.memory import require_fits
from ..._run.progress import reporter, task
from .drivers import Descent, Flow
from .memory import require_coordinates, threads_that_fit
from .problem import COORDINATES, Problem, Run

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
    with task("forecast", 1.0), one_thread(), np.errstate(over="ignore", invalid="ignore"):  # what diverges
        return _exact(problem) if problem.linear else _sampled(problem)


def _exact(problem: Problem) -> Limit:
    """In coordinates, as few as serve."""
    progress = Progress(problem.clouds.watch, 1)
    for size in COORDINATES:
        require_coordinates(problem, size)
        driver = problem.driver()
        make = lambda size=size: problem.system(problem.exact(size))
        run = problem.run(make, driver, progress.of(0))
        if run.failure != "directions":
            break
    check = None
    if isinstance(driver, Flow):
        check = problem.run(make, driver.halved(), progress.of(0), 2 * problem.clouds.every)
    return _Gathered(problem, driver, [run], check=check).limit()


def _sampled(problem: Problem) -> Limit:
    scrambles, driver, threads = problem.clouds.scrambles, problem.driver(), threads_that_fit(problem)
    checked = problem.layout.depth > 1 or isinstance(driver, Flow)
    anchors = scrambles if problem.anchored else 0
    progress = Progress(problem.clouds.watch, scrambles + anchors + checked)

    job = _Runs(problem, progress, (scrambles, anchors))
    first = job.ready()(("rich", 0, driver))
    if first.failure and not len(first.times):
        raise ValueError(
            f"{len(problem.both)} points are too many for clouds of {problem.neurons} neurons: "
            "use more neurons, `theory=nk.MeanField(neurons=...)`, or a larger `tol`."
        )
    again, finer = (driver.again(), driver.halved()) if isinstance(driver, Flow) else (driver, driver)
    jobs = [("rich", k, again) for k in range(1, scrambles)] + [("lazy", k, again) for k in range(anchors)]
    jobs += [("check", 0, finer)] * checked
    found = list(run(job, jobs, threads))
    rich, lazy = [first, *found[: scrambles - 1]], found[scrambles - 1 : scrambles - 1 + anchors]
    check = found[-1] if checked else None
    if not anchors:
        return _Gathered(problem, driver, rich, check=check).limit()
    exact = problem.run(problem.lazy_system, again, lambda share: None)
    return _Gathered(problem, driver, rich, lazy, exact, check).limit()


def drawn_outputs(problem: Problem, draws: int) -> np.ndarray:
    """(draws, m, out): outputs at new points of trained networks of width NARROW."""
    require_fits(
        (8 * problem.x_new.shape[0] * problem.y.shape[1] + 32) * draws,
        f"`draws` = {draws} networks",
        "draw fewer",
    )
    with task("forecast", 1.0), one_thread():
        progress = Progress(problem.clouds.watch, draws)
        return np.array(list(run(_Draws(problem, progress), range(draws))))


class _Progressing(AbstractJob[Any]):
    """Runs that tell how far they are, where there is somebody to hear it."""

    def __init__(self, problem: Problem, progress: "Progress | None"):
        self.problem, self.progress = problem, progress

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "progress": None}  # a worker's runs are heard of when they have come back

    def of(self, place: int) -> Callable[[float], None]:
        return (lambda share: None) if self.progress is None else self.progress.of(place)


class _Runs(_Progressing):
    """Runs (name, scramble, driver) of the clouds: "rich", "lazy", or to "check" the tolerance of a rich one."""

    def __init__(self, problem: Problem, progress: "Progress | None", counts: tuple[int, int]):
        super().__init__(problem, progress)
        self.counts = counts

    def ready(self) -> Callable[[tuple[str, int, Any]], Run]:
        problem, (scrambles, anchors) = self.problem, self.counts

        def one(asked: tuple[str, int, Any]) -> Run:
            name, scramble, how = asked
            tell = self.of(scramble + {"rich": 0, "lazy": scrambles, "check": scrambles + anchors}[name])
            tol = problem.tol / _SMALLER if name == "check" else problem.tol
            make = lambda: (problem.anchor if name == "lazy" else problem.system)(
                problem.sampled(scramble, tol)
            )
            every = problem.clouds.every * (2 if name == "check" and isinstance(how, Flow) else 1)
            found = problem.run(make, how, tell, every)
            tell(1.0)
            return found

        return one


class _Draws(_Progressing):
    """Outputs at new points of trained networks of width NARROW, by their numbers."""

    def ready(self) -> Callable[[int], np.ndarray]:
        problem = self.problem

        def one(draw: int) -> np.ndarray:
            make = lambda: problem.system(problem.drawn(NARROW, draw), problem.centered)
            run = problem.run(make, problem.driver(), self.of(draw), every=10**9)
            self.of(draw)(1.0)
            return np.full_like(run.new[0], np.nan) if run.failure else run.new[-1]

        return one


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
        self.driver, self.rich, self.lazy, self.exact, self.check = driver, rich, lazy, exact, check
        self.times = np.array(driver.times if isinstance(driver, Flow) else np.arange(problem.end + 1))
        if self.times[-1] < problem.end:  # a flow that failed
            self.times = np.append(self.times, problem.end)
        places = np.arange(len(self.times))
        self.kept = places[(places % problem.clouds.every == 0) | (places == places[-1])]

    def limit(self) -> Limit:
        shares = self._shares()
        along = np.interp(np.arange(len(self.times)), self.kept, shares)
        worst = min(self.rich, key=lambda run: len(run.times) if run.failure else np.inf)
        ranks = np.array([run.rank for run in self.rich if len(run.rank) == len(worst.rank)])
        return Limit(
            self.times, self.kept, *self._estimate("train", along), *self._estimate("new", shares),
            worst.failure, len(worst.times), tuple((int(q), int(p)) for q, p in ranks.max(axis=0)), worst.sharpness,
            self.check is None or not self.check.failure,
        )  # fmt: skip

    def _shares(self) -> np.ndarray:
        """The share of the anchor with the least scatter at every kept moment; none where a lazy network diverges."""
        if self.lazy is None:
            return np.zeros(len(self.kept))
        both, own = 0.0, 0.0
        for name, which in (("train", self.kept), ("new", np.arange(len(self.kept)))):
            around, other = (_scatter(runs, name, which) for runs in (self.rich, self.lazy))
            both, own = (
                total + (part * other).sum(axis=(0, 2, 3)) for total, part in ((both, around), (own, other))
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(np.clip(both / own, 0.0, 1.0), nan=0.0)

    def _estimate(self, name: str, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(mean, error), each (moments, points, out)."""
        length = len(shares)
        values = _stacked(self.rich, name, length)
        halved, own = (
            (2 * length - 1, 2) if isinstance(self.driver, Flow) and name == "train" else (length, 1)
        )
        check: Any = 0.0
        if self.check is not None and not self.check.failure:
            check = _moderated((_stacked([self.check], name, halved)[0, ::own] - values[0]) ** 2)
        if len(values) == 1:
            return values[0], np.sqrt(check + 0.0 * values[0])
        if self.exact is not None and self.lazy is not None:
            off = _stacked(self.lazy, name, length) - _stacked([self.exact], name, length)
            share = shares[:, None, None]
            values = values - np.where(share > 0, share * off, 0.0)
        # Two errors cover 95 % of cases, as for a Gaussian, though the variance comes from few scrambles.
        wide = scipy.stats.t.ppf(0.975, len(values) - 1) / scipy.stats.norm.ppf(0.975)
        error = wide**2 * _moderated(values.var(axis=0, ddof=1)) / len(values)
        return values.mean(axis=0), np.sqrt(error + check)


def _scatter(runs: Sequence[Run], name: str, which: np.ndarray) -> np.ndarray:
    """Around the mean of runs, at the moments `which`."""
    values = _stacked(runs, name, which[-1] + 1)[:, which]
    return values - values.mean(axis=0)


def _stacked(runs: Sequence[Run], name: str, length: int) -> np.ndarray:
    """(runs, length, points, out), NaN where one of them has failed."""
    parts = [getattr(run, name) for run in runs]
    found = np.full((len(parts), length, *parts[0].shape[1:]), np.nan)
    for place, part in enumerate(parts):
        found[place, : len(part)] = part[:length]
    return found


def _moderated(squares: np.ndarray) -> np.ndarray:
    """Half way to their mean over points and outputs: a few scrambles may agree by chance at one of them."""
    return 0.5 * (squares + squares.mean(axis=(1, 2), keepdims=True))


class Progress:
    """Tells `watch(share, left)` how much of several runs is done, and the seconds that are left."""

    def __init__(self, watch: Callable[[float, float], None] | None, runs: int):
        self._watch, self._shares = watch, [0.0] * runs
        self._report = reporter("forecast")
        self._lock, self._began = threading.Lock(), time.perf_counter()

    def of(self, run: int) -> Callable[[float], None]:
        def tell(share: float) -> None:
            with self._lock:
                self._shares[run] = share
                total = sum(self._shares) / len(self._shares)
                passed = time.perf_counter() - self._began
                self._report(total)
                if self._watch is not None:
                    self._watch(total, passed * (1.0 - total) / total if total else np.inf)

        return tell
