r"""The exact evidence of data under a deep linear network.

The network is $z(x) = \theta \cdot x$ with $\theta = W^{(L+1)} \cdots W^{(1)}$, hidden widths $N_1, \ldots, N_L$, $N_0$
inputs and one output, and weights drawn from $\mathcal{N}(0, \sigma^2 / \text{fan-in})$ with $\sigma^2$ = `prior_var`.
Given $P \le N_0$ points without noise, let $\theta_*$ be the shortest $\theta$ that fits them,
$t = \lVert\theta_*\rVert^2$ and $c = \prod_{l=0}^{L} 2 \sigma^2 / N_l$. The density of the outputs $X \theta$ at $y$ is

$$Z = \det(X X^\top)^{-1/2}\, (\pi t)^{-P/2} \prod_l \Gamma(N_l/2)^{-1}\;
G(t/c;\, P/2, N_1/2, \ldots, N_L/2),$$

with Meijer's $G$ function. It depends on $y$ only through $t$, because the distribution of $\theta$ does not change
under rotations.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special as special

from ..._base.check import between, finite_result, inputs, positive, targets, whole, wholes
from ..._base.rooms import renamed
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..special.gamma_product import log_gamma_product

_DEPENDENT = 1e-10  # inverse condition number below which singular values decide


class Interpolant(NamedTuple):
    """What data tell a linear model: theta_* (n_0,), a basis of the row space of X (n_0, rank), ln det(X X^T)."""

    theta: np.ndarray
    basis: np.ndarray
    log_det: float

    @property
    def square(self) -> float:
        """t = |theta_*|^2."""
        return float(self.theta @ self.theta)


def least_interpolant(x: np.ndarray, y: np.ndarray) -> Interpolant:
    """The shortest least-squares solution; directions in which X vanishes to rounding are left out."""
    with one_thread(max(x.shape)):
        return _by_qr(x, y) or _by_singular_values(x, y)


def _by_qr(x: np.ndarray, y: np.ndarray) -> Interpolant | None:
    """In a sixth of the time of singular values; None if points may be dependent."""
    if len(x) > x.shape[1]:
        return None
    basis, r = scipy.linalg.qr(x.T, mode="economic", check_finite=False)
    if scipy.linalg.lapack.dtrcon(r)[0] < _DEPENDENT:
        return None
    theta = basis @ scipy.linalg.solve_triangular(r, y, trans=1, check_finite=False)
    return Interpolant(theta, basis, 2 * float(np.log(np.abs(np.diag(r))).sum()))


def _by_singular_values(x: np.ndarray, y: np.ndarray) -> Interpolant:
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    rank = int(np.sum(s > max(x.shape) * np.finfo(float).eps * s[0])) if s[0] > 0 else 0
    u, s, vt = u[:, :rank], s[:rank], vt[:rank]
    return Interpolant((u.T @ y / s) @ vt, vt.T, 2 * float(np.log(s).sum()))


def interpolation(x: ArrayLike, y: ArrayLike) -> Interpolant:
    """Checked data that every y can be fitted by; refuses more points than inputs, and dependent points."""
    x = inputs(x, "x")
    y = targets(y, len(x), x_name="x", out=1)[:, 0]
    if len(x) > x.shape[1]:
        raise ValueError(
            f"`x` must not have more points than features, or a linear network cannot fit them; got {x.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        found = least_interpolant(x, y)
    finite_result((found.square, found.log_det), "`y` over `x` is")
    if found.basis.shape[1] < len(x):
        raise ValueError(
            f"`x` has rank {found.basis.shape[1]}, less than its {len(x)} points: drop repeated or dependent rows."
        )
    return found


def checked_var(value: Any, name: str) -> Any:
    """A prior variance of which products over many layers are numbers."""
    return between(positive(value, name), name, 1e-100, 1e100)


def log_gain(in_dim: int, widths: Sequence[int], prior_var: float) -> float:
    """ln c = sum over l = 0 ... L of ln(2 prior_var / N_l)."""
    sizes = np.array([in_dim, *widths], dtype=np.float64)
    return float(np.sum(np.log(2 * prior_var / sizes)))


def log_evidence(data: Interpolant, widths: tuple[int, ...], prior_var: float) -> float:
    """ln Z; infinite at y = 0 if a layer is not wider than the number of points."""
    in_dim, points = data.basis.shape
    half = np.array(widths, dtype=np.float64) / 2
    gain = log_gain(in_dim, widths, prior_var)
    front = -0.5 * data.log_det - 0.5 * points * np.log(np.pi)
    if data.square == 0:
        if np.any(half <= points / 2):
            return np.inf
        rest = np.sum(special.gammaln(half - points / 2) - special.gammaln(half))
        return float(front - 0.5 * points * gain + rest)
    log_t = float(np.log(data.square))
    density = log_gamma_product(np.array(log_t - gain), np.array([points / 2, *half]))
    return float(front - 0.5 * points * log_t + special.gammaln(points / 2) + density.value)


@renamed(X="x")
def deep_linear_log_evidence(
    x: ArrayLike, y: ArrayLike, widths: Sequence[int], prior_var: float = 1.0
) -> float:
    r"""The zero-noise log evidence of a deep linear network: the log density of its random outputs at `x`, taken at
    `y`.

    **Arguments:** `x` (P, n_0), $P \le n_0$ independent points; `y` (P,); `widths` $N_1, \ldots, N_L$ of the hidden
    layers, () for none; `prior_var`, the variance of the weights times their fan-in.

    It is exact at every width. $L = 100$ and $P = 500$ take a millisecond in addition to a factorization of $X$. At
    $y = 0$ the density, and so the result, is infinite if some layer is not wider than $P$.
    """
    widths = wholes(widths, "widths")
    prior_var = checked_var(prior_var, "prior_var")
    return log_evidence(interpolation(x, y), widths, float(prior_var))


def effective_depth(points: int, widths: Sequence[int]) -> float:
    r"""The effective depth $\lambda = P \sum_l 1/N_l$ of a posterior with $P$ = `points` and hidden `widths` $N_l$.

    It measures how far depth moves the posterior away from the posterior of a linear model.
    """
    return whole(points, "points", 1) * float(sum(1.0 / n for n in wholes(widths, "widths")))


def most_probable_var(data: Interpolant, widths: tuple[int, ...]) -> float:
    """The prior variance of the largest evidence: the variance puts t/c where the density of ln G peaks."""
    in_dim, points = data.basis.shape
    shapes = np.array([points, *widths], dtype=np.float64) / 2
    mean, deviation = np.sum(special.digamma(shapes)), np.sqrt(np.sum(special.polygamma(1, shapes)))
    # A law with one peak has it within sqrt(3) deviations of its mean.
    reach = 2 * deviation
    peak = scipy.optimize.brentq(
        lambda log_z: float(log_gamma_product(np.array(log_z), shapes).slope),
        mean - reach,
        mean + reach,
        xtol=1e-13,
    )
    return float(np.exp((np.log(data.square) - peak - log_gain(in_dim, widths, 1.0)) / len(shapes)))


@renamed(X="x")
def best_prior_var(x: ArrayLike, y: ArrayLike, widths: Sequence[int]) -> float:
    r"""The `prior_var` that maximizes the evidence: where $\mathbb{E}[t/S] = P$ over the posterior of $S$.

    For many points it tends to $(n_0 t / P)^{1/(L+1)}$.

    **Arguments:** `x`, `y`, `widths`: same as `deep_linear_log_evidence`; `y` must not be 0.
    """
    data, widths = interpolation(x, y), wholes(widths, "widths")
    if data.square == 0:
        raise ValueError(
            "`y` must not be 0: the evidence grows as `prior_var` decreases, so no value is best."
        )
    return most_probable_var(data, widths)


def limiting_scale(nu0: float, points: int, widths: Sequence[int], prior_var: float = 1.0) -> float:
    r"""The limit $\nu$ of $n_0\, \mathbb{E}[S]$ for many points and inputs.

    It solves

    $$\nu = \sigma^{2 (L+1)} \prod_l \left(1 + \frac{P}{N_l} \left(\frac{\nu_0}{\nu} - 1\right)\right), \qquad
    \nu_0 = \frac{n_0 t}{P}.$$

    For wide layers at effective depth $\lambda$ and $\sigma^2 = 1$ it is
    $\nu = \exp(\lambda (\nu_0/\nu - 1))$: from 1, the scale of the prior, at $\lambda = 0$ to $\nu_0$, the scale of
    the data, at $\lambda = \infty$.

    **Arguments:** `nu0`, $\nu_0$ > 0; `points`, $P$; `widths`, $N_l$ of the hidden layers; `prior_var`, $\sigma^2$.
    """
    nu0 = float(positive(nu0, "nu0"))
    shares = whole(points, "points", 1) / np.array(wholes(widths, "widths"), dtype=np.float64)
    log_var = (len(shares) + 1) * np.log(float(checked_var(prior_var, "prior_var")))

    def short(log_nu):
        ahead = np.log(nu0) - log_nu
        inside = 1 + shares * np.expm1(min(ahead, 600.0))
        if not np.all(inside > 0):
            return np.inf
        return log_nu - log_var - np.sum(np.log(inside) + max(ahead - 600.0, 0.0))

    # The difference of the two sides increases, and changes its sign between the scales of prior and data.
    low, high = sorted((log_var, np.log(nu0)))
    return float(
        np.exp(scipy.optimize.brentq(lambda v: min(short(v), 1e300), low - 1e-9, high + 1e-9, xtol=1e-14))
    )
