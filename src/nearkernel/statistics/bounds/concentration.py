"""Bounds on the distance of a finite-width kernel from its mean, with explicit constants."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ..._base.check import between, positive, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.wide.network import NNGP
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ..exact.relu_ntk import relu_ntk


def matrix_chernoff(mean: float, largest: float, dim: int, probability: float = 0.05) -> float:
    r"""Upper bound on the largest eigenvalue of a sum of independent positive matrices (matrix Chernoff).

    $$P(\lambda_{\max} \ge (1 + \epsilon)\, \mu) \le
    d \left(\frac{e^{\epsilon}}{(1 + \epsilon)^{1 + \epsilon}}\right)^{\mu / L}$$

    **Arguments:** `mean`, $\mu$, the largest eigenvalue of the expected sum; `largest`, $L$, an upper bound on the
    eigenvalues of each summand; `dim`, $d$, the number of rows of the matrices; `probability` of failure.
    """
    ratio, logarithm = _checked(mean, "mean", largest, dim, probability)
    return float(mean * np.exp(1 + scipy.special.lambertw((ratio * logarithm - 1) / math.e).real))


def matrix_chernoff_below(mean: float, largest: float, dim: int, probability: float = 0.05) -> float:
    r"""Lower bound on the smallest eigenvalue of a sum of independent positive matrices (matrix Chernoff).

    $$P(\lambda_{\min} \le (1 - \epsilon)\, \mu) \le
    d \left(\frac{e^{-\epsilon}}{(1 - \epsilon)^{1 - \epsilon}}\right)^{\mu / L}$$

    It is 0 if the inequality gives no bound.

    **Arguments:** `mean`, $\mu$, the smallest eigenvalue of the expected sum; `largest`, `dim`, `probability`: same
    as `matrix_chernoff`.
    """
    ratio, logarithm = _checked(mean, "mean", largest, dim, probability)
    if ratio * logarithm >= 1:  # even e = 1 leaves more than `probability`
        return 0.0
    return float(mean * np.exp(1 + scipy.special.lambertw((ratio * logarithm - 1) / math.e, -1).real))


def matrix_bernstein(variance: float, largest: float, dim: int, probability: float = 0.05) -> float:
    r"""Upper bound on the norm of a sum of independent, centered, symmetric matrices (matrix Bernstein).

    $$P(\lVert\Sigma\rVert \ge t) \le 2 d \exp\!\left(-\frac{t^2}{2 v + 2 L t / 3}\right)$$

    **Arguments:** `variance`, $v$, the norm of the sum of the expected squares; `largest`, $L$, an upper bound on the
    norm of each summand; `dim`, $d$, the number of rows of the matrices; `probability` of failure.
    """
    _, logarithm = _checked(variance, "variance", largest, dim, probability)
    linear = largest * (logarithm + np.log(2.0)) / 3
    return float(linear + np.sqrt(linear**2 + 2 * variance * (logarithm + np.log(2.0))))


def _checked(first: Any, name: str, largest: Any, dim: Any, probability: Any) -> tuple[float, float]:
    for value, what in ((first, name), (largest, "largest"), (probability, "probability")):
        between(positive(value, what), what, 1e-100, 1e100)
    if probability >= 1:
        raise ValueError(f"`probability` must be below 1; got {probability}.")
    return float(largest) / float(first), float(np.log(whole(dim, "dim", 1) / probability))


class LargestEigenvalueResult(Result, eqx.Module):
    """Bounds on the largest eigenvalue of the tangent kernel matrix of n inputs, for ReLU networks of finite width.

    **Fields:** for the mean kernel over networks of these widths: `mean`, its largest eigenvalue; `row` (largest row
    sum), `frobenius` and `trace`, which are upper bounds. `trace` is exact; with two or more hidden layers the others
    have the relative error that `ReluNTKResult` states for its mean. For the kernel of one network, exceeded with
    probability at most `probability`: `markov`, `cantelli` (from mean and variance of the trace) and `chernoff` (the
    matrix inequality with one summand).
    """

    mean: float
    row: float
    frobenius: float
    trace: float
    markov: float
    cantelli: float
    chernoff: float
    probability: float


@in_float64
def largest_eigenvalue(
    net: AbstractNetwork, x: ArrayLike, probability: float = 0.05
) -> LargestEigenvalueResult:
    r"""Bounds the largest eigenvalue of the tangent kernel of a random network `net`.

    `row` is tight for similar inputs; `frobenius` is within a factor $\sqrt n$ of `mean`, `trace` within a factor $n$.
    `markov` needs only the mean. `chernoff` treats the kernel of a deep network as one summand (its layers are not
    independent) and is then weaker than `cantelli`, on which it is based; use it for sums over independent neurons,
    as `concentration` does.

    **Arguments:** `net`, a ReLU network with `bias_var` = 0; `x` (n, d); `probability` of failure.
    """
    law = relu_ntk(net, x)
    mean = float(np.linalg.eigvalsh(law.mean)[-1])
    trace, spread = float(np.trace(law.mean)), float(law.std.sum())  # the trace spreads by no more than this

    def cantelli(p: float) -> float:
        return trace + spread * float(np.sqrt((1 - p) / p))

    _checked(mean, "mean", trace, len(law.mean), probability)
    return LargestEigenvalueResult(
        mean=mean,
        row=float(np.abs(law.mean).sum(axis=1).max()),
        frobenius=float(np.linalg.norm(law.mean)),
        trace=trace,
        markov=trace / probability,
        cantelli=cantelli(probability),
        chernoff=matrix_chernoff(mean, cantelli(probability / 2), len(law.mean), probability / 2),
        probability=probability,
    )


class ConcentrationResult(Result, eqx.Module):
    r"""How close the readout kernel $G = \frac{C_W}{\text{width}} \sum_{\text{neurons}} s s^\top$ is to its
    expectation.

    **Fields:** `mean` (n, n), $\mathbb{E}[G]$; `deviation`, a bound on the norm of $G - \mathbb{E}[G]$, exceeded with
    probability at most `probability` (matrix Bernstein); `expected`, a bound on the expected norm; `largest` and
    `smallest`, bounds on the eigenvalues of $G$, each violated with probability at most `probability` (matrix
    Chernoff).
    """

    mean: np.ndarray
    deviation: float
    expected: float
    largest: float
    smallest: float
    probability: float


@in_float64
def concentration(net: AbstractNetwork, x: ArrayLike, probability: float = 0.05) -> ConcentrationResult:
    r"""Bounds the distance between the last-layer kernel of one network and its infinite-width limit.

    The neurons of the first hidden layer are independent, and a bounded activation bounds the contribution of each by
    $C_W n \sup(s^2) / \text{width}$, so the distance decreases as $\sqrt{n \log n / \text{width}}$.

    **Arguments:** `net` with one hidden layer and a bounded activation, e.g. "tanh", "erf", "sin"; `x` (n, d);
    `probability` of failure.
    """
    chain = chain_of(net, "concentration", mean_field=True)
    if len(chain.widths) != 1:
        raise ValueError("`net` must have one hidden layer: neurons of deeper layers are not independent.")
    x, last = chain.inputs(x), chain.stages[1]
    bound = supremum(last.activation)
    if np.isinf(bound):
        raise ValueError('`net` needs a bounded activation, e.g. "tanh", "erf" or "sin".')
    mean = np.asarray(NNGP(chain.flat())(x)) - last.bias_var
    share = last.weight_var * len(x) * bound**2 / last.fan_in
    lam = np.linalg.eigvalsh(mean)
    variance = share * float(lam[-1])  # E[X^2] <= share E[X] for a positive X <= share
    log = np.log(2 * len(x))
    return ConcentrationResult(
        mean=mean,
        deviation=matrix_bernstein(variance, share, len(x), probability),
        expected=float(np.sqrt(2 * variance * log) + share * log / 3),
        largest=matrix_chernoff(float(lam[-1]), share, len(x), probability),
        smallest=matrix_chernoff_below(float(lam[0]), share, len(x), probability) if lam[0] > 0 else 0.0,
        probability=probability,
    )


@in_float64
def supremum(function: Callable[[jax.Array], jax.Array]) -> float:
    """sup |function|, looked for on a fine grid; inf if it still grows at 1e6."""
    grid = np.concatenate([np.linspace(-40, 40, 80_001), [-1e4, 1e4], [-1e6, 1e6]])
    values = np.abs(np.asarray(jax.jit(function)(jnp.asarray(grid))))
    near, far = float(values[:-2].max()), float(values[-2:].max())
    return near if far <= 1.001 * near else float(np.inf)
