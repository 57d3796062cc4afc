r"""How far each order moves the parameters: w_0 (the linear theory), w_1, w_2.

At the end of training, with $b_k$ and $h_k$ what curvature adds to outputs and gradient (`curved` of
`models/expansion/derivatives.py`), all rules but one have the form

$$w_k = v_k - f^\top K^{-1} (b_k + f v_k),$$

which fits the data at every order. For direct optimization $v_k = 0$, for the minimum norm $w = f^E(w)^\top n$ it is
$H[n_{k-1}]\, w_0 + \ldots$, and for gradient descent and flow it is minus the accumulated forces. Where the data cannot
be fitted, or are not meant to be (ridge $s$), the minimum is unique and the same for all algorithms:
$(f^\top f + s)\, w_k = -(f^\top b_k + h_k)$.
"""

import math
from typing import NamedTuple

import numpy as np

from ...models.expansion.derivatives import AbstractDerivatives
from ..algorithms.spectral import DirectOptimization, GradientDescent, GradientFlow, Ridge, SpectralAlgorithm
from ..linear.factor import AbstractFactor, Cholesky, RationalFactor, Spectrum
from .clock import AbstractClock, FlowClock, StepClock
from .rank_one_sum import accumulated_pairs
from .time_stepping import orders_in_time

_REFINEMENTS = 3
_FITTED = 1e-7  # of the residual at the start: what is left of a fit to working accuracy


class Unbounded(ValueError):
    """Raised if the requested order grows without bound in time."""


class Moved(NamedTuple):
    """`weights`: w_0, w_1, ... (P,); `rank`: terms of the rational sum, 0 where none was needed."""

    weights: list[np.ndarray]
    rank: int = 0


def moved_weights(
    derivatives: AbstractDerivatives,
    factor: AbstractFactor,
    residual: np.ndarray,
    algorithm: SpectralAlgorithm,
    order: int,
) -> Moved:
    """Orders 0 .. `order` for one right-hand side: the residual (m,) at initialization."""
    if factor.rank == 0:  # no feature is seen by the data, so nothing pushes
        return Moved(weights=[np.zeros(derivatives.size)] * (order + 1))
    if not math.isinf(algorithm.end()):
        assert isinstance(factor, Spectrum)
        clock = _finite_clock(algorithm, factor)
        return Moved(weights=orders_in_time(derivatives, factor, residual, clock, order).weights)
    if _minimum_is_unique(derivatives, factor, algorithm):
        return Moved(weights=_unique_minimum(derivatives, factor, residual, algorithm, order))
    if isinstance(algorithm, Ridge):
        return Moved(weights=_least_moved(derivatives, factor, residual, algorithm, order))
    if isinstance(algorithm, DirectOptimization):
        return Moved(weights=_fitted(derivatives, factor, residual, [0.0] * order))
    return _trained(derivatives, factor, residual, algorithm, order)


def _finite_clock(algorithm: SpectralAlgorithm, factor: Spectrum) -> AbstractClock:
    """The clock of a finite time; where the data are fitted, nothing moves long after the end, and it stops there."""
    assert isinstance(algorithm, GradientDescent | GradientFlow)
    clock = clock_of(algorithm, factor)
    if factor.rank == len(factor.vectors):
        late = 2 * clock_of(algorithm.at(math.inf), factor).end
        if clock.end > late:
            return clock_of(algorithm.at(late), factor)
    return clock


def clock_of(algorithm: SpectralAlgorithm, factor: Spectrum) -> AbstractClock:
    if isinstance(algorithm, GradientDescent):
        return StepClock(factor.lam, algorithm.lr, algorithm.steps)
    assert isinstance(algorithm, GradientFlow)
    return FlowClock(factor.lam, algorithm.time)


def _minimum_is_unique(
    derivatives: AbstractDerivatives, factor: AbstractFactor, algorithm: SpectralAlgorithm
) -> bool:
    if isinstance(algorithm, Ridge) and algorithm.strength > 0:
        return derivatives.size < derivatives.outputs  # else `_least_moved` finds it with fewer digits lost
    if factor.rank == derivatives.outputs:
        return False
    return factor.rank == derivatives.size or isinstance(algorithm, DirectOptimization)


def _inverse(factor: AbstractFactor, right: np.ndarray) -> np.ndarray:
    """K^-1 right, the pseudo-inverse if K is singular."""
    assert isinstance(factor, Cholesky | RationalFactor)
    return factor.solve(right)


def _unique_minimum(
    derivatives: AbstractDerivatives,
    factor: AbstractFactor,
    residual: np.ndarray,
    algorithm: SpectralAlgorithm,
    order: int,
) -> list[np.ndarray]:
    """Minimizer of the loss plus ridge; without ridge, in the span of the features (all of it if they are few)."""
    ridge = algorithm.strength if isinstance(algorithm, Ridge) else 0.0
    w = [-derivatives.pull(factor.apply(algorithm, residual[:, None]).T)]
    r = [residual + derivatives.push(w[0])]
    for k in range(1, order + 1):
        b, h = derivatives.curved(k, r, w)
        if ridge:
            right = -(h + derivatives.pull(b))
            solved = np.zeros_like(right)
            for _ in range(_REFINEMENTS):  # a weak ridge loses digits: what is left over is solved for again
                left = right - ridge * solved - derivatives.pull(derivatives.push(solved))
                seen = derivatives.pull(factor.apply(algorithm, derivatives.push(left).T).T)
                solved = solved + (left - seen) / ridge
            w.append(solved)
        else:
            twice = _inverse(factor, _inverse(factor, derivatives.push(h).T))
            w.append(-derivatives.pull(_inverse(factor, b.T).T + twice.T))
        r.append(derivatives.push(w[k]) + b)
    return [each[0] for each in w]


def _fitted(
    derivatives: AbstractDerivatives, factor: AbstractFactor, residual: np.ndarray, own: list
) -> list[np.ndarray]:
    """w_k = v_k - f^T K^-1 (b_k + f v_k) with v_k = `own`[k - 1]."""
    w = [-derivatives.pull(_inverse(factor, residual[:, None]).T)]
    for k, v in enumerate(own, start=1):
        b = derivatives.curve(k, w)
        free = np.broadcast_to(v, w[0].shape)
        right = b + derivatives.push(free)
        if k < len(own):
            _require_fit(derivatives, factor, right, k)
        w.append(free - derivatives.pull(_inverse(factor, right.T).T))
    return [each[0] for each in w]


def _least_moved(
    derivatives: AbstractDerivatives,
    factor: AbstractFactor,
    residual: np.ndarray,
    algorithm: Ridge,
    order: int,
) -> list[np.ndarray]:
    """Of all parameters that fit, those that moved least; with a ridge, the best of both.

    w = f^E(w)^T n for some n (with a ridge, -n is the residual divided by it), solved order by order.
    """
    _require_fit(derivatives, factor, residual[None], 0)
    n = [-factor.apply(algorithm, residual[:, None]).T]
    w = [derivatives.pull(n[0])]
    for k in range(1, order + 1):
        b, v = derivatives.curved(k, n, w)
        right = b + derivatives.push(v)
        if k < order:
            _require_fit(derivatives, factor, right, k)
        n.append(-factor.apply(algorithm, right.T).T)
        w.append(v + derivatives.pull(n[k]))
    return [each[0] for each in w]


def _trained(
    derivatives: AbstractDerivatives,
    factor: AbstractFactor,
    residual: np.ndarray,
    algorithm: SpectralAlgorithm,
    order: int,
) -> Moved:
    """Gradient descent or flow to its end."""
    assert isinstance(factor, RationalFactor)
    _require_fit(derivatives, factor, residual[None], 0)
    lr = algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0
    if order == 1:
        left, right = accumulated_pairs(factor, residual, lr)
        own = [derivatives.bend_pull_sum(left, derivatives.pull(right))]
        return Moved(weights=_fitted(derivatives, factor, residual, own), rank=len(left))
    assert isinstance(factor, Spectrum)
    inside = residual if factor.rank == len(residual) else factor.leave(factor.enter(residual))
    trained = orders_in_time(derivatives, factor, inside, clock_of(algorithm, factor), order)
    return Moved(weights=_fitted(derivatives, factor, residual, [-g for g in trained.forced[1:]]))


def _require_fit(
    derivatives: AbstractDerivatives, factor: AbstractFactor, right: np.ndarray, order: int
) -> None:
    """Training goes on forever along directions that no data see, as long as a residual remains to push it."""
    if factor.rank == derivatives.outputs:
        return
    assert isinstance(factor, Spectrum)
    outside = right - factor.leave(factor.enter(right.T)).T
    if np.linalg.norm(outside) > _FITTED * np.linalg.norm(right) and _bends_the_model(derivatives, outside):
        raise Unbounded(
            f"order {order + 1} grows without bound in time: the kernel of {derivatives.outputs} outputs has rank "
            f"{factor.rank}, so a residual remains and drives the other {derivatives.size - factor.rank} of "
            f"{derivatives.size} parameter directions forever; solve at a finite time, or with Ridge(strength > 0)."
        )


def _bends_the_model(derivatives: AbstractDerivatives, residual: np.ndarray) -> bool:
    """Whether a residual (1, m) that stays bends the model at all: that of one point with two targets does not."""
    rng = np.random.default_rng(0)
    other = rng.normal(size=residual.shape)
    other *= np.linalg.norm(residual) / np.linalg.norm(other)
    w = rng.normal(size=(2, 1, derivatives.size))
    of_it, of_any = (derivatives.curved(2, (r, np.zeros_like(r)), tuple(w))[1] for r in (residual, other))
    return bool(np.linalg.norm(of_it) > _FITTED * np.linalg.norm(of_any))
