r"""Scaling laws: how the error on infinite data falls with time and features, and the optimal use of compute.

With $p$ random features and infinite data, $E(t, p) = v^\top e^{-2 M t} v$ has one resolvent of the random matrix $M$.
With the poles of $e^{-2 \lambda t}$ as ridges $s_j$ with weights $w_j$,

$$p = \sum_i \frac{\lambda_i}{\lambda_i + \kappa_j} + \frac{p\, s_j}{\kappa_j}, \qquad
E = \text{noise} + \operatorname{Re} \sum_j w_j \sum_i \frac{v_i^2\, \kappa_j}{\lambda_i + \kappa_j}.$$
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import numpy as np
import scipy.optimize

from ..._base.check import numeric, positive, real_number, shown
from ..._base.result import Result
from ..._base.types import ArrayLike
from ...dynamics.algorithms.ridges import ridges_of_flow
from .effective_ridge import effective
from .task import KernelTask, SpectrumMoments

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ScalingExponentsResult(NamedTuple):
    r"""Scaling exponents of the error $E$ with the number of examples, features, time and compute.

    **Fields:** `samples`, $c$ in $E \sim n^{-c}$ without a ridge; `features`, $c$ in $E \sim p^{-c}$ with infinite
    data; `time`, $c$ in $E \sim t^{-c}$ with all features; `compute`, $c$ in $E \sim C^{-c}$ at the optimum;
    `best_features` and `best_time`, powers of $C = p t$.
    """

    samples: float
    features: float
    time: float
    compute: float
    best_features: float
    best_time: float


def scaling_exponents(decay: float, source: float) -> ScalingExponentsResult:
    r"""The scaling exponents of a power-law task, $\lambda_i = i^{-a}$ and $v_i^2 = i^{-b}$, for large sizes.

    With $a$ = `decay` > 1 and $b$ = `source` > 1, $E \sim n^{-\min(b - 1, 2 a)}$, $p^{-\min(b - 1, a)}$, $t^{-(b -
    1)/a}$. With $x$ and $y$ the last two exponents, the optimal use of $C = p t$ gives $E \sim C^{-x y/(x + y)}$ and
    $p \sim C^{y/(x + y)}$. At finite sizes exponents differ by up to 8 %.
    """
    for value, name in ((decay, "decay"), (source, "source")):
        if not real_number(value, name) > 1:
            raise ValueError(f"`{name}` must be greater than 1 for its sum to converge; got {value:g}.")
    a, b = float(decay), float(source)
    x, y = min(b - 1, a), (b - 1) / a
    return ScalingExponentsResult(min(b - 1, 2 * a), x, y, x * y / (x + y), y / (x + y), x / (x + y))


def population_law(task: KernelTask, times: ArrayLike, features: float = math.inf) -> np.ndarray:
    r"""The error (k,) after gradient flow on infinite data, with `features` random features of the kernel.

    **Arguments:** `task`; `times` (k,) > 0 of the gradient flow of the mean loss $\frac12 \mathbb{E} (z - y)^2$;
    `features`, by
    default infinitely many.
    """
    _require_task(task)
    p = positive(features, "features", finite=False)
    times = np.atleast_1d(numeric(times, "times"))
    if times.ndim != 1 or not times.size or times.min() <= 0:
        raise ValueError("`times` must be a vector of numbers greater than 0.")
    moments = SpectrumMoments(task)
    return np.array([_population(moments, task, float(t), p) for t in times])


def _population(moments: SpectrumMoments, task: KernelTask, time: float, p: float) -> float:
    ridges = ridges_of_flow(2 * time)
    if math.isinf(p):
        left = moments.at(ridges.strengths).a
    else:
        left = effective(moments, p * ridges.strengths + task.rest, p, math.inf).a
    return float((ridges.weights * left).sum().real)


class ComputeOptimalResult(Result, eqx.Module):
    r"""The optimal number of features $p$ at every budget $C = p t$ of features times time, with infinite data.

    **Fields:** `budgets`, `features`, `times`, `error`, each (k,); `slope`, $-d \ln E / d \ln C$ between the last two.
    """

    budgets: np.ndarray
    features: np.ndarray
    times: np.ndarray
    error: np.ndarray

    @property
    def slope(self) -> float:
        return float(-np.diff(np.log(self.error))[-1] / np.diff(np.log(self.budgets))[-1])

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the smallest error against the budget on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        return draw_lines(
            self.budgets, self.error, axes, xlabel="compute, features x time", ylabel="error", log="xy"
        )


def compute_optimal(task: KernelTask, budgets: ArrayLike) -> ComputeOptimalResult:
    """The compute-optimal number of features and training time: the smallest `population_law` at each budget.

    **Arguments:** `task`; `budgets` (k,), features times time.
    """
    _require_task(task)
    budgets = np.atleast_1d(numeric(budgets, "budgets"))
    if budgets.ndim != 1 or not budgets.size or budgets.min() <= 1:
        raise ValueError("`budgets` must be a vector of numbers greater than 1.")
    moments = SpectrumMoments(task)
    features, errors = [], []
    for budget in budgets:
        found = scipy.optimize.minimize_scalar(
            lambda u, c=budget: _population(moments, task, c / math.exp(u), math.exp(u)),
            bounds=(0.0, math.log(budget)),
            method="bounded",
            options={"xatol": 1e-3},
        )
        features.append(math.exp(found.x))
        errors.append(found.fun)
    return ComputeOptimalResult(budgets, np.array(features), budgets / np.array(features), np.array(errors))


def _require_task(task: Any) -> None:
    if not isinstance(task, KernelTask):
        raise TypeError(f"`task` must be an nk.forecasts.KernelTask; got {shown(task)}.")
