"""The smallest eigenvalue of a wide network's kernels, and lower bounds from Hermite polynomials."""

import equinox as eqx
import numpy as np

from ... import activations
from ..._base.check import inputs
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.averages.series import Series, series
from ...activations.base import moments
from ...kernels.wide.network import both_kernels, layer_kernels
from ...models.containers.sequential import Sequential
from ...models.layers.activation import Activation
from ...models.layers.base import inverse
from ...models.layers.dense import Dense
from ...models.networks.chain import chain_or_none
from ...models.networks.network import AbstractNetwork, Network, leaves, require_wide

_TERMS = 256
_POWERS = np.unique(np.r_[0:9, np.geomspace(8, _TERMS - 1, 13).astype(int)])


class SmallestEigenvalueResult(Result, eqx.Module):
    """Smallest eigenvalues of the kernel matrices of n inputs at infinite width, and lower bounds on them.

    **Fields:** `nngp`, `ntk`: the eigenvalues; `nngp_bound`, `ntk_bound`: the Hermite bounds.
    """

    nngp: float
    ntk: float
    nngp_bound: float
    ntk_bound: float


@in_float64
def smallest_eigenvalue(net: AbstractNetwork, x: ArrayLike) -> SmallestEigenvalueResult:
    r"""The smallest eigenvalues of NNGP and NTK at `x`, and lower bounds from Hermite polynomials.

    With $a_k$ the Hermite coefficients of $s$ and $C$ the correlations before a layer,
    $\mathbb{E}[s s^\top] = \sum_k a_k^2 C^{(k)}$, where $C^{(k)}$ is the entrywise power. All terms are positive, so
    if no two inputs are parallel,

    $$\lambda_{\min}(\mathbb{E}[s s^\top]) \ge \sum_k a_k^2\, \lambda_{\min}(C^{(k)}),$$

    and $\lambda_{\min}(C^{(k)})$ grows with $k$. For the NTK, $\Theta' = K' + C_W\, \Theta * \mathbb{E}[s' s'^\top]$
    entrywise. Its part $C_W K * \mathbb{E}[s' s'^\top] = C_W \sum_k k\, a_k^2 C^{(k)}$ is bounded in the same way;
    the contribution of lower layers is multiplied entrywise and bounded by its smallest diagonal entry.

    **Arguments:** `net`, any network with a hidden layer; `x` (n, *in_shape). Bounds need a network that ends in
    `Activation` and `Dense`; the NTK bound includes all layers if `Dense` and `Activation` alternate, as in an
    `nk.MLP`, and only the last one otherwise. Unknown bounds are 0.
    """
    require_wide(net, "smallest_eigenvalue")
    if sum(layer.has_params() for layer in leaves(net.layers)) < 2:
        raise ValueError("`net` must have a hidden layer.")
    x, chain = inputs(x, "x", net.in_shape), chain_or_none(net)
    if chain:  # the kernels are those of the scaling in which outputs are random
        net, x = chain.flat(), x.reshape(len(x), -1)
    nngp, ntk = (float(np.linalg.eigvalsh(kernel)[0]) for kernel in both_kernels(net, x, None))
    if chain is None:
        last = _last_bound(net, x)
        return SmallestEigenvalueResult(nngp, ntk, nngp_bound=last, ntk_bound=last)
    below = last = 0.0  # what all layers but the last contribute to the NTK, and what the last does
    for stage, (covariance, _, gap) in zip(chain.stages[1:], layer_kernels(net, x)[:-1], strict=True):
        variance = np.diagonal(covariance)
        last, with_slopes = _hermite_bounds(stage.activation, variance, 1.0 - gap)
        slope = moments(stage.activation, variance).slope
        below = stage.weight_var * (with_slopes + below * float(slope.min()))
        last = stage.weight_var * last
    return SmallestEigenvalueResult(nngp, ntk, nngp_bound=last, ntk_bound=last + below)


def _last_bound(net: AbstractNetwork, x: np.ndarray) -> float:
    """Of the NNGP of a network that ends in an activation of Gaussian vectors and a dense layer; 0 of any other."""
    *below, function, last = net.layers.layers
    if not (isinstance(last, Dense) and isinstance(function, Activation) and net.readout()):
        return 0.0
    if Sequential(below).after("inputs") != "gaussian":
        return 0.0
    covariance = both_kernels(Network(net.in_shape, below), x, None)[0]
    variance = np.diagonal(covariance)
    correlation = covariance * np.outer(*[inverse(np.sqrt(variance))] * 2)
    np.fill_diagonal(correlation, 1.0)
    return float(last.weight_var) * _hermite_bounds(function.function, variance, correlation)[0]


def _hermite_bounds(
    activation: activations.AbstractActivation, q: np.ndarray, correlation: np.ndarray
) -> tuple[float, float]:
    """sum_k min_a a_k(q_a)^2 lambda_min(C^(k)), without and with a factor k.

    Between the powers looked at, the one before stands in; what rounding made negative is 0.
    """
    expansion = activation if isinstance(activation, Series) else series(activation, "activation")
    coefficients = expansion.prepared(q).with_terms(_TERMS, 0.0).coefficients(q)
    least = [max(float(np.linalg.eigvalsh(correlation**k)[0]), 0.0) for k in _POWERS]
    steps = np.searchsorted(_POWERS, np.arange(_TERMS), side="right") - 1
    terms = (coefficients**2).min(axis=1) * np.asarray(least)[steps]
    return float(terms.sum()), float(np.arange(_TERMS) @ terms)
