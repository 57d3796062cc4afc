r"""The exact posterior of deep linear networks that fit the data.

A priori, $\theta = \sqrt S\, \xi$ with $\xi \sim \mathcal{N}(0, 1)$ in $n_0$ dimensions and
$S = \frac{v}{n_0} \prod_l \frac{v}{N_l} \chi^2_{N_l}$, $v$ the prior variance. $P$ points without noise fix $\theta$ in
their span, $\theta_*$, and inform the rest only through $S$:

$$\theta = \theta_* + \sqrt S\, \xi_\perp, \qquad p(S \mid \text{data}) \propto p(S)\, S^{-P/2} e^{-t/(2 S)}, \qquad
t = \lVert\theta_*\rVert^2.$$

So $z(x) = \theta_* \cdot x + \lVert x_\perp\rVert \sqrt S\, \xi$: a Gaussian whose variance is itself random. The
distribution of $\ln S$ is log-concave.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
import scipy.optimize
import scipy.special as special

from ..._base.check import inputs, numeric, whole, wholes
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._base.rooms import renamed
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..special.gamma_product import log_gamma_product
from ..special.log_concave import LogConcave, log_concave
from .deep_linear import Interpolant, checked_var, interpolation, log_evidence, log_gain


class DeepLinearPosteriorResult(Result, eqx.Module):
    r"""The posterior of $\theta$ and of predictions $z(x) = \theta \cdot x$, given data without noise.

    **Fields:** `theta` (n_0,), the minimum-norm interpolant $\theta_*$, which is the mean; `basis` (n_0, P), an
    orthonormal basis of the span of the points; `log_scale`, the distribution of $\ln S$; `log_evidence`.
    """

    theta: np.ndarray
    basis: np.ndarray
    log_scale: LogConcave
    log_evidence: float

    @property
    def scale(self) -> float:
        r"""$\mathbb{E}[S]$, the variance of $\theta$ in every direction that the points do not span."""
        with np.errstate(over="ignore"):  # beyond 1e308 it is infinite
            return self.log_scale.mean(np.exp)

    @property
    def perp_square(self) -> float:
        r"""$\mathbb{E}\lVert\theta_\perp\rVert^2 = (n_0 - P)\, \mathbb{E}[S]$."""
        return (self.basis.shape[0] - self.basis.shape[1]) * self.scale

    def perp_length(self, q: ArrayLike) -> np.ndarray:
        r"""Quantiles of $\lVert\theta_\perp\rVert$, in the shape of `q`."""
        q, free = _probabilities(q), self.basis.shape[0] - self.basis.shape[1]
        if free == 0:
            return np.zeros(q.shape)
        chi = lambda p: np.sqrt(2 * special.gammaincinv(free / 2, p))
        below = lambda v: special.gammainc(free / 2, v * v / 2)
        return self._mixed(q, chi, below)

    def perp(self, x: ArrayLike) -> np.ndarray:
        r"""The distance $\lVert x_\perp\rVert$ (m,) of each row of `x` (m, n_0) from the span of the points."""
        x = inputs(x, "x", len(self.theta))
        rest = x - (x @ self.basis) @ self.basis.T
        rest -= (rest @ self.basis) @ self.basis.T  # twice: to the last digit
        lengths = np.linalg.norm(rest, axis=1)
        return np.where(lengths > 1e-13 * np.linalg.norm(x, axis=1), lengths, 0.0)

    def mean(self, x: ArrayLike) -> np.ndarray:
        r"""The mean prediction $\theta_* \cdot x$ at inputs `x` (m, d): (m,)."""
        return inputs(x, "x", len(self.theta)) @ self.theta

    def std(self, x: ArrayLike) -> np.ndarray:
        r"""The standard deviation $\lVert x_\perp\rVert \sqrt{\mathbb{E}[S]}$ of the prediction at `x` (m, d): (m,)."""
        return self.perp(x) * np.sqrt(self.scale)

    def quantile(self, x: ArrayLike, q: ArrayLike) -> np.ndarray:
        """Quantiles `q` in (0, 1) of the prediction at `x`: (m,), or (m, k) for k values of q."""
        q = _probabilities(q)
        unit = self._mixed(q, special.ndtri, special.ndtr)  # all predictions share it but for |x_perp|
        return self.mean(x).reshape(-1, *(1,) * q.ndim) + np.multiply.outer(self.perp(x), unit)

    def _mixed(self, q: np.ndarray, inverse: Any, below: Any) -> np.ndarray:
        """Quantiles of sqrt(S) v, v of the law with this inverse and this distribution function."""
        deviations = np.exp(self.log_scale.nodes / 2)
        found = []
        for p in q.ravel():
            ends = sorted(inverse(p) * deviations[[0, -1]])
            if ends[0] < ends[1]:
                short = lambda v, p=p: float(self.log_scale.weights @ below(v / deviations)) - p
                ends[0] = scipy.optimize.brentq(short, *ends, xtol=1e-300, rtol=1e-13)
            found.append(ends[0])
        return np.array(found).reshape(q.shape)

    def log_density(self, x: ArrayLike, values: Any) -> np.ndarray:
        """The log density of the prediction at each row of `x` (m, n_0), at `values` (m,)."""
        perp, values = self.perp(x), numeric(values, "values")
        if values.shape not in ((), perp.shape):
            raise ValueError(
                f"`values` must have shape {perp.shape}, one per row of `x`; got {values.shape}."
            )
        away = values - self.mean(x)
        if not perp.all():
            raise ValueError(
                "`x` must not have rows in the span of the data: predictions there are certain and have no density."
            )
        variance = perp[:, None] ** 2 * np.exp(self.log_scale.nodes)
        logs = -0.5 * (away[:, None] ** 2 / variance + np.log(2 * np.pi * variance))
        return special.logsumexp(logs, axis=1, b=self.log_scale.weights)

    def sample(self, size: int, key: Key) -> np.ndarray:
        r"""`size` draws of $\theta$ with `key`, (size, n_0)."""
        size = whole(size, "size", 1)
        require_fits(4 * 8 * size * len(self.theta), f"`size` = {size} draws", "draw fewer")
        rng = generator(key)
        xi = rng.normal(size=(size, len(self.theta)))
        xi -= (xi @ self.basis) @ self.basis.T
        if len(self.log_scale.nodes) == 1:
            log_scale = np.full(size, self.log_scale.nodes[0])
        else:
            log_scale = self.log_scale.quantile(rng.uniform(size=size))
        return self.theta + np.exp(log_scale / 2)[:, None] * xi


def _probabilities(q: ArrayLike) -> np.ndarray:
    q = numeric(q, "q")
    if np.any((q <= 0) | (q >= 1)) or q.ndim > 1:
        raise ValueError("`q` must be a number or a vector of numbers between 0 and 1, both excluded.")
    return q


@renamed(X="x")
def deep_linear_posterior(
    x: ArrayLike, y: ArrayLike, widths: Sequence[int], prior_var: float = 1.0
) -> DeepLinearPosteriorResult:
    r"""The exact posterior of a deep linear network, given data without noise.

    **Arguments:** `x` (P, n_0), $P \le n_0$ independent points; `y` (P,); `widths` $N_1, \ldots, N_L$ of the hidden
    layers, () for none; `prior_var`, the variance of the weights times their fan-in.
    """
    widths = wholes(widths, "widths")
    return posterior_of(interpolation(x, y), widths, float(checked_var(prior_var, "prior_var")))


def posterior_of(data: Interpolant, widths: tuple[int, ...], prior_var: float) -> DeepLinearPosteriorResult:
    evidence = log_evidence(data, widths, prior_var) if data.basis.size else 0.0
    return DeepLinearPosteriorResult(data.theta, data.basis, _law_of_scale(data, widths, prior_var), evidence)


def _law_of_scale(data: Interpolant, widths: tuple[int, ...], prior_var: float) -> LogConcave:
    in_dim, points = data.basis.shape
    half, t = np.array(widths, dtype=np.float64) / 2, data.square
    gain = log_gain(in_dim, widths, prior_var) - np.log(2.0)  # S = e^gain prod Gamma(N_l/2)
    if not widths:
        return LogConcave(np.array([gain]), np.ones(1), 0.0)
    if t == 0 and np.any(half <= points / 2):  # nothing holds S away from 0
        return LogConcave(np.array([-np.inf]), np.ones(1), np.inf)

    log_t = np.log(t / 2) if t > 0 else -np.inf

    def log_density(u):
        return (
            log_gamma_product(u - gain, half).value - 0.5 * points * u - np.exp(np.minimum(log_t - u, 700.0))
        )

    left = half if t > 0 or points == 0 else half - points / 2  # S^(-P/2) only lowers the shapes
    center = gain + np.sum(special.digamma(left))
    reach = 2 * np.sqrt(np.sum(special.polygamma(1, left)))
    ends = [center - reach, center + reach]
    if t > 0 and points:  # the peak is between that of the prior and that of the data
        ends.append(np.log(t / points))
    return log_concave(log_density, min(ends), max(ends))
