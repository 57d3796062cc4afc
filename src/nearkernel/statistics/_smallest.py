"""The smallest eigenvalue of a wide network's kernels, and what Hermite polynomials guarantee of it."""

from typing import Any

import equinox as eqx
import numpy as np

from .. import activations
from .._check import inputs
from .._precision import in_float64
from .._result import Result
from ..activations._series import series
from ..kernels import layer_kernels
from ..models import MLP

_TERMS = 256
_POWERS = np.unique(np.r_[0:9, np.geomspace(8, _TERMS - 1, 13).astype(int)])


class SmallestEigenvalue(Result, eqx.Module):
    """Smallest eigenvalues of the kernel matrices of n inputs at infinite width, and lower bounds on them.

    **Fields:** `nngp`, `ntk`: the eigenvalues; `nngp_bound`, `ntk_bound`: the Hermite bounds.
    """

    nngp: float
    ntk: float
    nngp_bound: float
    ntk_bound: float


@in_float64
def smallest_eigenvalue(net: MLP, x: Any) -> SmallestEigenvalue:
    r"""Smallest eigenvalues of NNGP and NTK at `x`, and bounds from Hermite polynomials.

    With a_k the Hermite coefficients of s and C the correlations that enter a layer, E[s s^T] = sum_k a_k^2 C^(k),
    C^(k) the entrywise power. All terms are positive, so for any inputs no two of which are parallel

        lambda_min(E[s s^T]) >= sum_k a_k^2 lambda_min(C^(k)),    and lambda_min(C^(k)) grows with k.

    For the NTK, Theta' = K' + C_W Theta * E[s' s'^T] entrywise. Its part C_W K * E[s' s'^T] = C_W sum_k k a_k^2 C^(k)
    is bounded alike; what layers below add is multiplied entrywise, which keeps the smallest diagonal entry's share.

    **Arguments:** `net`, an `nk.MLP` with at least one hidden layer; `x` (n, d).
    """
    if not isinstance(net, MLP) or not net.widths:
        raise ValueError("`net` must be an nk.MLP with a hidden layer.")
    x = inputs(x, "x", net.in_dim)
    weight_var, bias_var = float(net.weight_var), float(net.bias_var)
    layers = layer_kernels(MLP(net.in_dim, net.widths, 1, net.activation, weight_var, bias_var), x)
    below = 0.0  # bound on what all layers but the last contribute to the NTK
    for covariance, _, gap in layers[:-1]:
        variance = np.diagonal(covariance)
        last, own = _hermite_bounds(net.activation, variance, 1.0 - gap)
        slope = activations.moments(net.activation, variance).slope
        below = weight_var * (own + below * float(slope.min()))
    nngp, ntk = (float(np.linalg.eigvalsh(kernel)[0]) for kernel in layers[-1][:2])
    return SmallestEigenvalue(nngp, ntk, nngp_bound=weight_var * last, ntk_bound=weight_var * last + below)


def _hermite_bounds(
    activation: activations.AbstractActivation, q: np.ndarray, correlation: np.ndarray
) -> tuple[float, float]:
    """sum_k min_a a_k(q_a)^2 lambda_min(C^(k)), without and with a factor k.

    Between the powers looked at, the one before stands in; what rounding made negative is 0.
    """
    expansion = activation if isinstance(activation, activations.Series) else series(activation, "activation")
    coefficients = expansion.prepared(q)._with(_TERMS, 0.0).coefficients(q)
    least = [max(float(np.linalg.eigvalsh(correlation**k)[0]), 0.0) for k in _POWERS]
    steps = np.searchsorted(_POWERS, np.arange(_TERMS), side="right") - 1
    terms = (coefficients**2).min(axis=1) * np.asarray(least)[steps]
    return float(terms.sum()), float(np.arange(_TERMS) @ terms)
