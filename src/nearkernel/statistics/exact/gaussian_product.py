r"""The exact distribution of the length of a vector multiplied by any number of random matrices.

For $\theta^\top = W^{(L+1)} W^{(L)} \cdots W^{(1)}$ with $W^{(l)}$ of shape $(N_l, N_{l-1})$, $N_{L+1} = 1$, and
entries of variance $v/N_{l-1}$, $v$ = `weight_var`,

$$\lVert\theta\rVert^2 = \prod_{l=0}^{L} \frac{v}{N_l}\, \chi^2_{N_l},$$

all independent, and the direction is uniform. A Gaussian matrix acts in the same way on every unit vector: each factor
rotates the vector at random and stretches it by a chi variable. For $v = 1$, $\ln \lVert\theta\rVert^2$ tends to a
normal distribution of variance $2 \sum_l 1/N_l$ and mean $-\sum_l 1/N_l$. If the width grows first,
$\lVert\theta\rVert = 1$; if the depth grows first, $\lVert\theta\rVert = 0$: only the ratio $\sum_l 1/N_l$ matters.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
import scipy.special as special

from ..._base.check import between, finite_number, finite_result, numeric, positive, whole, wholes
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._run.memory import require_fits
from ..special.gamma_product import log_gamma_product
from ..special.log_concave import LogConcave, log_concave
from .deep_linear import log_gain


class GaussianProductResult(Result, eqx.Module):
    r"""The distribution of $\lVert\theta\rVert^2$, with $\theta$ a product of Gaussian matrices.

    **Fields:** `sizes` (N_0, ..., N_L); `weight_var`, the variance of the entries times their fan-in.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    weight_var: float

    @property
    def _half(self) -> np.ndarray:
        return np.array(self.sizes, dtype=np.float64) / 2

    @property
    def _gain(self) -> float:
        return log_gain(self.sizes[0], self.sizes[1:], self.weight_var)

    @property
    def log_mean(self) -> float:
        r"""$\mathbb{E} \ln\lVert\theta\rVert^2 = \sum_l [\psi(N_l/2) + \ln(2 \sigma^2 / N_l)]$."""
        return float(self._gain + np.sum(special.digamma(self._half)))

    @property
    def log_var(self) -> float:
        r"""$\mathrm{Var} \ln\lVert\theta\rVert^2 = \sum_l \psi'(N_l/2)$, with $\psi'$ the trigamma function."""
        return float(np.sum(special.polygamma(1, self._half)))

    @property
    def normal(self) -> tuple[float, float]:
        r"""The normal limit (mean, variance) of $\ln\lVert\theta\rVert^2$ for wide layers at fixed $\sum_l 1/N_l$."""
        spread = float(np.sum(0.5 / self._half))
        return len(self.sizes) * float(np.log(self.weight_var)) - spread, 2 * spread

    def moment(self, k: float) -> float:
        r"""$\mathbb{E}\lVert\theta\rVert^{2k}$ for a number `k`, finite for $k > -\min(N_l)/2$."""
        k = finite_number(k, "k")
        if not np.all(self._half + k > 0):
            raise ValueError(
                f"`k` must be greater than {-self._half.min():g}, below which moments are infinite; got {k}."
            )
        log = k * self._gain + np.sum(special.gammaln(self._half + k) - special.gammaln(self._half))
        with np.errstate(over="ignore"):
            return float(finite_result(np.exp(log), "`k` is"))

    def pdf(self, log_value: Any) -> np.ndarray:
        r"""The density of $\ln\lVert\theta\rVert^2$ at `log_value`."""
        return np.exp(log_gamma_product(numeric(log_value, "log_value") - self._gain, self._half).value)

    def cdf(self, log_value: Any) -> np.ndarray:
        r"""The probability that $\ln\lVert\theta\rVert^2$ is at most `log_value`, to about 1e-9."""
        return self._law().cdf(numeric(log_value, "log_value"))

    def _law(self) -> LogConcave:
        reach = 2 * np.sqrt(self.log_var)
        density = lambda u: log_gamma_product(u - self._gain, self._half).value
        return log_concave(density, self.log_mean - reach, self.log_mean + reach)

    def sample(self, size: int, key: Key) -> np.ndarray:
        r"""`size` draws with `key` of $\lVert\theta\rVert^2$, without drawing a matrix."""
        rng = generator(key)
        size = whole(size, "size", 1)
        require_fits(4 * 8 * size, f"`size` = {size} draws", "draw fewer")
        log = np.zeros(size)
        for n in self.sizes:
            log = log + np.log(self.weight_var / n * rng.chisquare(n, size))
        return np.exp(log)


def gaussian_product(sizes: Sequence[int], weight_var: float = 1.0) -> GaussianProductResult:
    r"""The exact distribution of the length of $W^{(L+1)} \cdots W^{(1)}$, a deep linear network with one output.

    **Arguments:** `sizes` (N_0, ..., N_L), the number of inputs and the hidden widths; `weight_var`, the variance of
    the weights times their fan-in. For $L$ matrices $\lVert W^{(L)} \cdots W^{(1)} x\rVert^2 / \lVert x\rVert^2$ has
    the distribution for sizes $N_1 \ldots N_L$, times $N_L / N_0$.
    """
    checked = wholes(sizes, "sizes")
    if not checked:
        raise ValueError("`sizes` must not be empty: pass at least the number of inputs.")
    return GaussianProductResult(
        checked, float(between(positive(weight_var, "weight_var"), "weight_var", 1e-100, 1e100))
    )
