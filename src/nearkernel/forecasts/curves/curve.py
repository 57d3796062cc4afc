"""`learning_curve`: how the error falls with the number of examples, from one kernel matrix."""

import functools
import math
from typing import Any

import numpy as np

from ..._base.check import inputs, refuse_unused, shown, targets, truth, whole
from ..._base.keys import Key, generator
from ..._base.types import ArrayLike, Num
from ..._run.precision import in_float64
from ..._run.progress import report, task
from ...dynamics.algorithms.ridges import Ridges
from ...dynamics.algorithms.spectral import GradientFlow, SpectralAlgorithm
from ...dynamics.linear.base import status_at
from ...dynamics.linear.factor import Spectrum, spectrum
from ...dynamics.linear.leave_one_out import LeaveOneOut, ridges_for
from ...kernels.base import AbstractKernel
from ...kernels.wide.network import NNGP, NTK
from ...models.networks.network import AbstractNetwork
from .random_features import checked_sizes
from .record import LearningCurveResult, Tail, TrainedCurve
from .subset_error import Pool

_LEAST = 8  # points
_SIZES = 12
_TAIL = 0.25 ** np.linspace(1, 0, 5)  # shares of n at which the slope is looked at
_SMALL = 40  # examples below which theory without a ridge is a few percent low


@in_float64
def learning_curve(
    problem: Any,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    sizes: ArrayLike | None = None,
    *,
    start: Any = None,
    average: bool = False,
    check: int = 0,
    key: Key | None = None,
) -> LearningCurveResult:
    r"""The expected test error after training on m examples, for every m up to n, from n given examples.

    $E(m)$ is the mean over data sets of m examples of the squared error at a new point, summed over outputs, including
    the noise of its target. Nothing is held out: training on m of n points acts like training on all n with a larger
    ridge, and leave-one-out estimates that error. At $m = n$ it is the leave-one-out error itself.

    **Arguments:**

    - `problem`: a kernel, or a network, whose `NTK` is used.
    - `x` (n, d), `y` (n,) or (n, out); the rows must be independent draws, in any order.
    - `algorithm`: `GradientFlow()` by default; or `Ridge` or `GradientDescent`, same as `nk.solve`. The loss is a sum
      over points, so more examples mean more training and a relatively weaker ridge; with `average` it is a mean.
    - `sizes`: integers from 1 to n; by default twelve, up to n.
    - `start`: the outputs at initialization: None for 0 (centered networks); "random" for a random network; or a
      kernel, their covariance. Training must remove them.
    - `check`: number of real fits at each size, on random subsets drawn with `key` (0 by default) and tested
      on the remaining rows.

    **Returns:** a `LearningCurveResult`: `sizes`, `error`, `sem`, `by_output`, `train_error`, `trained`,
    `error_rate`, `slope`, `notes`, `extrapolate(sizes)`, `with_features(count)`, `plot()`.
    """
    kernel, covariance = _kernels(problem, start)
    algorithm = GradientFlow() if algorithm is None else algorithm
    if not isinstance(algorithm, SpectralAlgorithm):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {shown(algorithm)}."
        )
    x = inputs(x, "x", kernel.input_dim())
    n = len(x)
    if n < _LEAST:
        raise ValueError(f"`x` must have at least {_LEAST} rows for a learning curve; got {n}.")
    columns = targets(y, n)
    chosen, average = _sizes(sizes, n), truth(average, "average")
    check = whole(check, "check", 0, most=1000)
    if not check:
        refuse_unused("without `check`", key=key)
    rng = generator(0 if key is None else key)
    matrix = np.asarray(kernel.entries(x, None), np.float64)
    factor = spectrum(matrix.copy() if check else matrix)
    if factor.rank == 0:
        raise ValueError("the kernel is zero on all of `x`, so nothing can be learned.")
    at_size = _Sized(algorithm, factor.lam_max, n, average)
    labels = columns if _are_classes(columns) else None
    pool = Pool(factor, columns)
    started = None if covariance is None else Pool(factor, _columns(covariance.entries(x, None)))

    @functools.cache
    def summands(m: int) -> tuple[np.ndarray, float]:
        total, train = pool.errors(at_size.ridges(m), m)
        if started is None:
            return total, train
        more, more_train = started.errors(at_size.ridges(m), m)
        return total + more.sum(axis=1, keepdims=True), train + columns.shape[1] * more_train

    found = [summands(int(m)) for m in chosen]
    tail_sizes = np.unique(np.maximum(np.rint(_TAIL * n).astype(int), 2))
    tail = Tail(tail_sizes, np.array([summands(int(m))[0].sum(axis=1) for m in tail_sizes]))
    trained = None
    if check:
        with task("learning curve"):
            trained = _trained(matrix, columns, labels, covariance, x, at_size, chosen, check, rng)
    rate = None
    if labels is not None and covariance is None:
        left = pool.left_out(pool.matched(at_size.ridges(n).strengths, n)) @ at_size.ridges(n).weights
        rate = LeaveOneOut(columns, left.real, None).error_rate()
    return LearningCurveResult(
        sizes=chosen,
        error=np.array([total.sum(axis=1).mean() for total, _ in found]),
        sem=np.array([total.sum(axis=1).std(ddof=1) for total, _ in found]) / math.sqrt(n),
        by_output=np.array([total.mean(axis=0) for total, _ in found]),
        train_error=np.array([max(train, 0.0) for _, train in found]),
        n=n,
        algorithm=algorithm,
        average=average,
        trained=trained,
        error_rate=rate,
        noise_floor=_noise_floor(x, columns),
        notes=_notes(x, at_size, chosen, factor),
        tail=tail,
        pool=pool,
        at_size=at_size,
    )


class _Sized:
    """The algorithm as it acts on the kernel matrix of m points."""

    def __init__(self, algorithm: SpectralAlgorithm, lam_max: float, n: int, average: bool):
        self.algorithm, self.lam_max, self.average = algorithm, lam_max, average
        status = status_at(algorithm, lam_max / n if average else lam_max)
        if not status.ok:
            raise ValueError(f"`algorithm` {status.message}: a learning curve needs stable training.")

    def ridges(self, m: int) -> Ridges:
        if not self.average:
            return ridges_for(self.algorithm, self.lam_max, "`algorithm`: a learning curve")
        most = min(self.lam_max / m, self.algorithm.limit() * (1 - 1e-9))
        found = ridges_for(self.algorithm, most, "`algorithm`: a learning curve")
        return Ridges(found.strengths * m, found.weights)

    def fitted(self, matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Coefficients of real fits with the kernel matrix (m, m)."""
        m = len(matrix) if self.average else 1
        return spectrum(matrix / m).apply(self.algorithm, right) / m


def _kernels(problem: Any, start: Any) -> tuple[AbstractKernel, AbstractKernel | None]:
    if isinstance(problem, AbstractNetwork):
        kernel: Any = NTK(problem)
    elif isinstance(problem, AbstractKernel):
        kernel = problem
    else:
        raise TypeError(
            f"`problem` must be a kernel or a network, e.g. nk.MLP(10, (256,)); got {shown(problem)}."
        )
    if start is None or isinstance(start, AbstractKernel):
        return kernel, start
    if isinstance(start, str) and start == "random" and isinstance(problem, AbstractNetwork):
        return kernel, NNGP(problem)
    raise TypeError(
        "`start` must be None (initial outputs 0), 'random' (for a network) or a kernel, their initial covariance; "
        f"got {shown(start)}."
    )


def _sizes(sizes: ArrayLike | None, n: int) -> np.ndarray:
    if sizes is None:
        return np.unique(np.rint(np.geomspace(min(max(n / 32, 4), n / 2), n, _SIZES)).astype(int))
    array = checked_sizes(sizes)
    if array.max() > n:
        raise ValueError(
            f"`sizes` must be at most the number of rows, {n}; got {array.max()}: use .extrapolate(sizes) for more."
        )
    return np.unique(array)


def _columns(covariance: np.ndarray) -> np.ndarray:
    """Columns whose outer products add up to a covariance matrix."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def _are_classes(y: np.ndarray) -> bool:
    """One-hot rows, centered or not, or one column of two signs."""
    if y.shape[1] == 1:
        return len(np.unique(y)) == 2 and y.min() < 0 < y.max()
    steps = y - y.min(axis=0)
    return bool(np.all((steps > 0).sum(axis=1) == 1)) and len(np.unique(np.round(steps, 9))) == 2


def _trained(matrix, columns, labels, covariance, x, at_size, sizes, check, rng) -> TrainedCurve:
    """Real fits on random subsets, tested on the rows that were left out."""
    n = len(x)
    error, spread, rate = (np.full(len(sizes), np.nan) for _ in range(3))
    start = None if covariance is None else _columns(covariance.entries(x, None))
    for i, m in enumerate(sizes):
        if n - m < max(n // 20, 2):
            continue
        errors, rates = [], []
        for k in range(check):
            report("learning curve", i * check + k, total=len(sizes) * check)
            order = rng.permutation(n)
            rows, rest = order[:m], order[m:]
            right = columns[rows] if start is None else np.concatenate([columns[rows], start[rows]], axis=1)
            fitted = matrix[np.ix_(rest, rows)] @ at_size.fitted(matrix[np.ix_(rows, rows)], right)
            out = columns.shape[1]
            squares = ((fitted[:, :out] - columns[rest]) ** 2).sum(axis=1)
            if start is not None:
                squares += out * ((fitted[:, out:] - start[rest]) ** 2).sum(axis=1)
            errors.append(squares.mean())
            rates.append(LeaveOneOut(columns[rest], fitted[:, :out] - columns[rest], None).error_rate())
        error[i] = np.mean(errors)
        spread[i] = np.std(errors, ddof=1) if check > 1 else np.nan
        rate[i] = np.mean(rates)
    return TrainedCurve(sizes, error, spread, None if labels is None else rate, check)


def _noise_floor(x: np.ndarray, y: np.ndarray) -> float | None:
    """The variance of targets at equal inputs; only repeated rows can tell noise from what is not learned yet."""
    _, index, count = np.unique(x.reshape(len(x), -1), axis=0, return_inverse=True, return_counts=True)
    index = index.ravel()
    repeated = (count > 1).sum()
    if repeated < 10:
        return None
    means = np.stack([np.bincount(index, column) for column in y.T], axis=1) / count[:, None]
    return float(((y - means[index]) ** 2).sum() / (count - 1).sum())


def _notes(x: np.ndarray, at_size: _Sized, sizes: np.ndarray, factor: Spectrum) -> tuple[str, ...]:
    notes = []
    repeated = len(x) - len(np.unique(x.reshape(len(x), -1), axis=0))
    if repeated:
        notes.append(
            f"{repeated} rows of x are repeated: a left-out row is still in the data, so the curve is too low"
        )
    if at_size.algorithm.shift() == 0 and sizes[0] < _SMALL:
        notes.append(f"without a ridge, the curve may be 3 to 10 % too low below {_SMALL} examples")
    if at_size.algorithm.shift() == 0 and factor.rank < len(x):
        notes.append(
            f"the kernel has rank {factor.rank}: near this number of examples the error at convergence is unbounded"
        )
    return tuple(notes)
