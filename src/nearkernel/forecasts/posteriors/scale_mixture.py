r"""Bayesian networks of finite width: a Gaussian process whose scale is random.

With the weights N(0, 1) of the NTK scaling and the readout integrated out, a network of one hidden layer of N neurons
is, up to the shape of its random kernel, a Gaussian process with the covariance S K, S ~ Gamma(N/2, rate N/2):

    p(S | y) ~ S^(N/2 - 1) e^(-N S/2) det(S K + T)^(-1/2) exp(-y^T (S K + T)^-1 y / 2),
    mean = E_S[S k (S K + T)^-1 y],    variance = E_S[S kk - S^2 k (S K + T)^-1 k^T] + Var_S[mean].

Deeper networks have one such scale for every hidden layer, inside the recursion of the kernel; where the activation is
homogeneous (relu, linear) and there are no biases, only their product matters, which has the law of a product of gamma
variables. For linear networks this is exact. Otherwise it holds the change of the kernel's size, not that of its shape.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special as special

from ...kernels.wide.network import NNGP
from ...models.networks.mlp import MLP
from ...statistics.special.gamma_product import log_gamma_product
from ...statistics.special.log_concave import log_concave

_REACH = 30.0  # of ln S on both sides of 0, where its peak is looked for
_INNER = 25  # scales of the first layer of two
_NEGLIGIBLE = 1e-10


class Mixture(NamedTuple):
    """Gaussian laws at m inputs, for each of k scales.

    **Fields:** `weights` (k,); `scales` (k, layers or 1); `means` and `variances` (k, m); `log_evidence`.
    """

    weights: np.ndarray
    scales: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    log_evidence: float


class Process:
    """y of a Gaussian process with covariance S K + b + T on P points, in a basis that serves every S."""

    def __init__(self, kernel: np.ndarray, points: int, y: np.ndarray, bias: float, noise: float):
        train, cross, new = kernel[:points, :points], kernel[points:, :points], np.diagonal(kernel)[points:]
        self.shift = noise
        if bias:
            rest = np.full_like(train, bias) + noise * np.eye(points)
            self.lam, basis = scipy.linalg.eigh(train, rest)  # basis^T rest basis = 1
            self.shift, self.log_det = 1.0, float(np.linalg.slogdet(rest)[1])
        else:
            self.lam, basis = scipy.linalg.eigh(train)
            self.log_det = 0.0
        self.lam = np.maximum(self.lam, 0.0 if self.shift else points * 1e-16 * self.lam[-1])
        self.y, self.cross, self.new = basis.T @ y, cross @ basis, new
        self.offset, self.bias = bias * basis.sum(axis=0), bias

    def log_likelihood(self, scale: np.ndarray) -> np.ndarray:
        """At every scale (k,)."""
        d = scale[:, None] * self.lam + self.shift
        fit = (self.y**2 / d).sum(axis=1) + np.log(d).sum(axis=1) + self.log_det
        return -0.5 * (fit + len(self.y) * math.log(2 * math.pi))

    def law(self, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (k, m) at every scale (k,)."""
        means, variances = [], []
        for s in scale:
            d = s * self.lam + self.shift
            seen = s * self.cross + self.offset
            means.append(seen @ (self.y / d))
            variances.append(np.maximum(s * self.new + self.bias - (seen**2 / d).sum(axis=1), 0.0))
        return np.array(means), np.array(variances)


def log_gamma_prior(u: np.ndarray, width: int) -> np.ndarray:
    """Log density of ln S for S ~ Gamma(width/2, rate width/2)."""
    half = width / 2
    with np.errstate(over="ignore"):
        return half * math.log(half) - special.gammaln(half) + half * (u - np.exp(np.minimum(u, 300.0)))


def mixture(net: MLP, widths: tuple[int, ...], x: np.ndarray, y: np.ndarray, noise: float) -> Mixture:
    """The law at all rows of `x` beyond the first len(y)."""
    if not widths:
        return _fixed(Process(_kernel(net, x, ()), len(y), y, 0.0, noise))
    bias = float(net.dense(len(net.widths)).bias_var)
    if len(widths) == 1 or is_homogeneous(net):
        return _over_scale(scaled_process(net, x, y, noise), widths)
    first = np.exp(_inner_nodes(net, widths, x, y, noise, bias))
    found = [
        (_over_scale(Process(_kernel(net, x, (s,)) - bias, len(y), y, bias, noise), widths[1:]), s)
        for s in first
    ]
    logs = np.array([each.log_evidence for each, _ in found]) + log_gamma_prior(np.log(first), widths[0])
    step = math.log(first[1] / first[0])
    outer = np.exp(logs - special.logsumexp(logs))
    return Mixture(
        np.concatenate([w * each.weights for w, (each, _) in zip(outer, found, strict=True)]),
        np.concatenate([np.column_stack([np.full(len(e.scales), s), e.scales]) for e, s in found]),
        np.concatenate([each.means for each, _ in found]),
        np.concatenate([each.variances for each, _ in found]),
        float(special.logsumexp(logs) + math.log(step)),
    )


def scaled_process(net: MLP, x: np.ndarray, y: np.ndarray, noise: float) -> Process:
    """Whose scale is that of all hidden layers together; `y` (P,), or (P, out)."""
    bias = float(net.dense(len(net.widths)).bias_var)
    return Process(_kernel(net, x, ()) - bias, len(y), y, bias, noise)


def _inner_nodes(net, widths, x, y, noise, bias) -> np.ndarray:
    """ln of the scale of the first layer: nodes that hold all of its weight."""
    points = len(y)

    def log_density(u: float) -> float:
        process = Process(_kernel(net, x[:points], (math.exp(u),)) - bias, points, y, bias, noise)
        return _over_scale(process, widths[1:]).log_evidence + float(log_gamma_prior(np.array(u), widths[0]))

    spread = math.sqrt(2 / widths[0])
    at = scipy.optimize.minimize_scalar(
        lambda u: -log_density(u), bracket=(-spread, spread), method="brent", options={"xtol": 0.02 * spread}
    ).x
    top = log_density(at)
    ends = []
    for side in (-1, 1):
        far = 3 * spread
        while log_density(at + side * far) > top + math.log(_NEGLIGIBLE) and far < 30 * spread:
            far *= 1.4
        ends.append(at + side * far)
    return np.linspace(ends[0], ends[1], _INNER)


def _kernel(net: MLP, x: np.ndarray, scales: tuple[float, ...]) -> np.ndarray:
    """The NNGP kernel with the weights after the first hidden layers scaled."""
    dense = [net.dense(layer) for layer in range(len(net.widths) + 1)]
    variances = np.array([float(each.weight_var) for each in dense])
    variances[1 : 1 + len(scales)] *= scales
    biases = tuple(float(each.bias_var) for each in dense)
    scaled = MLP(net.in_dim, net.widths, 1, net.activation, tuple(variances.tolist()), biases)
    return np.asarray(NNGP(scaled).entries(x, None), np.float64)


def _fixed(process: Process) -> Mixture:
    one = np.ones(1)
    means, variances = process.law(one)
    return Mixture(one, np.ones((1, 1)), means, variances, float(process.log_likelihood(one)[0]))


def _over_scale(process: Process, widths: tuple[int, ...]) -> Mixture:
    """The law of one scale, the product of those of all `widths`."""
    half = np.array(widths, float) / 2

    def log_prior(u: np.ndarray) -> np.ndarray:
        if len(widths) == 1:
            return log_gamma_prior(u, widths[0])
        return log_gamma_product(u + np.log(half).sum(), half).value

    log_density = lambda u: log_prior(u) + process.log_likelihood(np.exp(np.clip(u, -300.0, 300.0)))
    grid = np.linspace(-_REACH, _REACH, 1201)
    peak = grid[int(np.argmax(log_density(grid)))]
    law = log_concave(log_density, peak - 0.1, peak + 0.1)
    kept = law.weights > 1e-14
    weights, scales = law.weights[kept] / law.weights[kept].sum(), np.exp(law.nodes[kept])
    means, variances = process.law(scales)
    return Mixture(weights, scales[:, None], means, variances, law.log_mass)


def is_homogeneous(net: MLP) -> bool:
    """Whether scales of hidden layers act as their product: s(2 z) = 2 s(z), and no biases."""
    if any(net.dense(layer).bias_var for layer in range(len(net.widths) + 1)):
        return False
    z = jnp.linspace(-3.0, 3.0, 25)
    return all(bool(jnp.allclose(f(2 * z), 2 * f(z), atol=1e-6)) for f in net.activations)
