r"""What theory promises of one gradient step, and what it denies, up to constants and logarithms.

A target of degree $p$ in $r$ directions, with the normalized condition number $\kappa = \lVert H^+\rVert/\sqrt r$ of
its mean Hessian, is learned from $n \ge d^2 \kappa^2 r$ points by $m$ neurons with an excess risk (in absolute values)
of

$$\sqrt{\frac{d\, r^p \kappa^{2p}}{n}} + \sqrt{\frac{r^p \kappa^{2p}}{m}} + n^{-1/4}$$

by a head of norm $r^p \kappa^{2p}/\sqrt m$. If the mean Hessian vanishes, learners that only see correlations need, for
$q$ queries, a tolerance of at most $(\log(q d)/d)^{p/4}$: with tolerances of $1/\sqrt n$, as averages over $n$ points
have, some $d^{p/2}$ points.
"""

import equinox as eqx
import numpy as np

from ..._base.check import positive, real_number, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ...models.target_directions import MultiIndexPolynomial


class OneStepBoundResult(Result, eqx.Module):
    r"""Rates of one gradient step, without constants and logarithms.

    **Fields:** `condition`, $\kappa$; `points`, the smallest n; `dims`, the smallest d; `risk` = `data` + `neurons` +
    `descent`, the bound on the excess risk with its three terms; `head`, the bound on the norm of the readout.
    """

    condition: float
    points: float
    dims: float
    data: float
    neurons: float
    descent: float
    head: float

    @property
    def risk(self) -> float:
        return self.data + self.neurons + self.descent


class QueryBoundResult(Result, eqx.Module):
    r"""`tolerance`, the largest $\tau$ that correlational queries may have; `points`, $1/\tau^2$, which reach it."""

    tolerance: float
    points: float


def one_step_bound(target: MultiIndexPolynomial, points: int, width: int) -> OneStepBoundResult:
    r"""The bound on the risk after one gradient step, without constants and logarithms.

    For a target of degree p in r directions with normalized condition number $\kappa$ of its mean Hessian,

    $$\sqrt{\frac{d\, r^p \kappa^{2p}}{n}} + \sqrt{\frac{r^p \kappa^{2p}}{m}} + n^{-1/4},
    \qquad \lVert a\rVert \le \frac{r^p \kappa^{2p}}{\sqrt m}, \qquad n \ge d^2 \kappa^2 r .$$

    **Arguments:** `target`, whose mean Hessian must have full rank r; `points` n; `width` m.
    """
    if not isinstance(target, MultiIndexPolynomial):
        raise TypeError(f"`target` must be an nk.theory.MultiIndexPolynomial; got {type(target).__name__}.")
    n, m = whole(points, "points", 1), whole(width, "width", 1)
    (r, d), p = target.directions.shape, target.degree
    sizes = np.sort(np.abs(np.linalg.eigvalsh(target.hessian)))[::-1][:r]
    if sizes[-1] <= 1e-12 * max(sizes[0], 1e-300):
        raise ValueError(
            "`target` must have a mean Hessian of full rank; see nk.theory.query_bound for others."
        )
    kappa = 1 / (sizes[-1] * np.sqrt(r))
    many = float(r) ** p * kappa ** (2 * p)
    return OneStepBoundResult(
        condition=float(kappa),
        points=float(d**2 * kappa**2 * r),
        dims=float(kappa * r**1.5),
        data=float(np.sqrt(d * many / n)),
        neurons=float(np.sqrt(many / m)),
        descent=float(n**-0.25),
        head=float(many / np.sqrt(m)),
    )


def query_bound(dim: int, degree: int, queries: ArrayLike = 1.0) -> QueryBoundResult:
    r"""The largest tolerance $(\log(q d)/d)^{p/4}$ of q correlational queries, for polynomials without a mean Hessian.

    **Arguments:** `dim` d of the inputs; `degree` p of the polynomials; `queries` q >= 1.
    """
    d, p = whole(dim, "dim", 1), whole(degree, "degree", 0)
    q = real_number(queries, "queries")
    if not q >= 1:
        raise ValueError(f"`queries` must be at least 1; got {q:g}.")
    positive(q, "queries")
    tolerance = (np.log(q * d) / d) ** (p / 4) if p else 1.0
    return QueryBoundResult(float(tolerance), float(tolerance**-2.0) if tolerance > 0 else np.inf)
