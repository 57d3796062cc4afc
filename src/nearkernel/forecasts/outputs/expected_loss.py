r"""The loss of trained networks at new points, to order 1/n: its mean, by bias and variance, and its covariance.

With $t$ the targets, $c$ the mean at infinite width minus $t$, $m = \mathbb{E} f - t$, variances $v^0 + v^1/n$ and
means $\mu^0 + \mu^1/n$, and $L_b = \frac12 (f_b - t_b)^2$,

$$\mathbb{E}[L_b] = \frac{c_b^2 + v^0_b}{2} + \frac{c_b\, \mu^1_b + v^1_b/2}{n},$$

$$\operatorname{Cov}(L_b, L_c) = m_b m_c \kappa_{bc} + \tfrac12 (m_b \kappa_{bcc} + m_c \kappa_{bbc})
+ \tfrac14 \kappa_{bbcc} + \tfrac12 \kappa_{bc}^2 .$$

Third and fourth cumulants $\kappa$ are in the covariance only. The second line is exact for any distribution.
"""

from collections.abc import Mapping

import equinox as eqx
import numpy as np

from ..._base.result import Result


class ExpectedLoss(Result, eqx.Module):
    r"""The loss $\frac12 \sum (f - y)^2$ of trained networks at new points, over initializations, to order 1/width.

    **Fields:** `mean`, a number; `terms`, its parts (infinite width, correction); `bias` and `variance`, (m,) or (m,
    out) like the targets: half the squared bias and half the variance of each output, which add up to `mean`; `cov`,
    (m, m) or (m, out, m, out), the covariance of the losses of single outputs; `std`, the standard deviation of the
    whole loss over networks.
    """

    bias: np.ndarray
    variance: np.ndarray
    terms: tuple[float, float]
    cov: np.ndarray

    def _shown(self) -> Mapping[str, object]:
        return {
            "mean": self.mean,
            "std": self.std,
            "terms": self.terms,
            "bias": self.bias,
            "variance": self.variance,
        }

    @property
    def mean(self) -> float:
        return self.terms[0] + self.terms[1]

    @property
    def std(self) -> float:
        return float(np.sqrt(max(float(self.cov.sum()), 0.0)))


def expected_loss(
    mean: tuple[np.ndarray, np.ndarray],
    cov: tuple[np.ndarray, np.ndarray],
    third: np.ndarray,
    fourth: np.ndarray,
    y: np.ndarray,
) -> ExpectedLoss:
    """`mean` and `cov` by order, `third` [b, c] = k_bbc, `fourth` [b, c] = k_bbcc, for outputs in a row."""
    c, shape = (mean[0] - y).ravel(), y.shape
    var0, var1 = (np.diagonal(each) for each in cov)
    bias0, bias1 = c**2 / 2, c * mean[1].ravel()
    away, k = c + mean[1].ravel(), cov[0] + cov[1]
    skewed = away[:, None] * third.T / 2
    spread = np.outer(away, away) * k + skewed + skewed.T + fourth / 4 + k**2 / 2
    terms = float((bias0 + var0 / 2).sum()), float((bias1 + var1 / 2).sum())
    return ExpectedLoss(
        (bias0 + bias1).reshape(shape),
        ((var0 + var1) / 2).reshape(shape),
        terms,
        spread.reshape(*shape, *shape),
    )
