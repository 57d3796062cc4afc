r"""The distribution of the input gradient of a random ReLU network, exact at any width.

For every input and all symmetric biases, a neuron is active with probability 1/2, independently of the sizes of the
weights. So with $k_l \sim \text{Binomial}(n_l, \frac12)$ neurons on in layer $l$, the sum over $m$
coordinates $p$ is

$$\sum_p \left(\frac{\partial z}{\partial x_p}\right)^2
= \frac{C_W}{n_0}\, \chi^2_m \prod_l \frac{C_W}{n_l}\, \chi^2_{k_l}$$

with all factors independent.
"""

import functools
import math
from typing import Any

import equinox as eqx
import numpy as np
import scipy.special as special

from ..._base.check import numeric, whole
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...models.networks.network import AbstractNetwork
from .relu_paths import homogeneous


class InputGradientResult(Result, eqx.Module):
    r"""The distribution of $g = \sum_p (\partial z/\partial x_p)^2$ over $m$ inputs $p$, for one output of a random
    ReLU network.

    **Fields:** `coordinates` $m$; `in_dim`; `widths` $n_1, \ldots, n_L$; `gain`, the factor in front of the product of
    $\chi^2_m / n_0$ and $\chi^2_{k_l} / n_l$; `second_moment` $\mathbb{E}[g]$ and `fourth_moment` $\mathbb{E}[g^2]$, of
    second and fourth degree in the gradient; `beta`, $5 \sum_l 1/n_l$; `dead`, the probability of $g = 0$; `log_mean`
    and `log_var` of $\ln g$ if $g > 0$.
    """

    coordinates: int = eqx.field(static=True)
    in_dim: int = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    gain: float

    @property
    def second_moment(self) -> float:
        return self.gain * self.coordinates / self.in_dim / 2.0 ** len(self.widths)

    @property
    def fourth_moment(self) -> float:
        r"""$\mathbb{E}[g^2] = \mathbb{E}[g]^2 (1 + 2/m) \prod_l (1 + 5/n_l)$."""
        n = np.array(self.widths, dtype=np.float64)
        return float(self.second_moment**2 * (1 + 2 / self.coordinates) * np.prod(1 + 5 / n))

    @property
    def beta(self) -> float:
        return float(sum(5.0 / n for n in self.widths))

    @property
    def dead(self) -> float:
        return float(-np.expm1(sum(np.log1p(-(2.0**-n)) for n in self.widths)))

    @property
    def normal(self) -> tuple[float, float]:
        r"""Mean and variance of the normal limit of $\ln g$: variance $v = \beta + 2/m$, mean $\ln \mathbb{E}[g] -
        v/2$.

        It needs wide layers and many coordinates: at $m = 1$ there is an additional $\ln \chi^2_1$, which is not
        normal at any width.
        """
        variance = self.beta + 2.0 / self.coordinates
        return float(np.log(self.second_moment) - variance / 2), variance

    @property
    def log_mean(self) -> float:
        layers = sum(_log_chi(n)[0] - np.log(n) for n in self.widths)
        m = self.coordinates
        # E[ln chi^2_m] = digamma(m/2) + ln 2.
        return float(np.log(self.gain / self.in_dim) + special.digamma(m / 2) + np.log(2.0) + layers)

    @property
    def log_var(self) -> float:
        return float(special.polygamma(1, self.coordinates / 2) + sum(_log_chi(n)[1] for n in self.widths))

    def cdf(self, log_value: Any) -> np.ndarray:
        r"""The probability of $\ln g \le$ `log_value`, from the characteristic function; to about 1e-10."""
        t, phi = self._characteristic()
        y = numeric(log_value, "log_value") - self.log_mean
        alive = 0.5 - _waves(y, t, phi / (np.arange(len(t)) + 0.5)).imag / np.pi
        return self.dead + (1 - self.dead) * np.clip(alive, 0.0, 1.0)

    def pdf(self, log_value: Any) -> np.ndarray:
        r"""The density of $\ln g$ at `log_value`; its integral is 1 - `dead`."""
        t, phi = self._characteristic()
        y = numeric(log_value, "log_value") - self.log_mean
        alive = _waves(y, t, phi).real * (t[1] - t[0]) / np.pi
        return np.where(np.abs(y) < np.pi / (t[1] - t[0]), (1 - self.dead) * np.maximum(alive, 0.0), 0.0)

    def _characteristic(self) -> tuple[np.ndarray, np.ndarray]:
        """Times t (between grid points, which keeps t = 0 out) and E[exp(i t (ln g - log_mean)) given g > 0]."""
        deviation = np.sqrt(self.log_var)
        fewest = min([self.coordinates, *(int(_odds(n)[0][0]) for n in self.widths)])
        # The left tail of ln chi^2_k falls like exp(k y/2) only.
        step = 2 * np.pi / (24 * deviation + 120 / fewest)
        t = step * (np.arange(int((25 + 8 / deviation) / step)) + 0.5)
        phi = _log_gamma_ratio(np.array([self.coordinates / 2]), t)[0]
        phi = phi * np.exp(1j * t * (np.log(2 * self.gain / self.in_dim) - self.log_mean))
        for n, times in zip(*np.unique(self.widths, return_counts=True), strict=True):
            k, odds = _odds(int(n))
            ratio = odds @ _log_gamma_ratio(k / 2, t)
            phi = phi * (np.exp(1j * t * np.log(2 / n)) * ratio) ** times
        return t, phi

    @in_float64
    def sample(self, size: int, key: Key) -> np.ndarray:
        """`size` draws of g with `key`, without drawing a network."""
        rng = generator(key)
        size = whole(size, "size", 1)
        require_fits(4 * 8 * size, f"`size` = {size} draws", "draw fewer")
        g = self.gain * rng.chisquare(self.coordinates, size) / self.in_dim
        for n in self.widths:
            on = rng.binomial(n, 0.5, size)
            g = g * np.where(on > 0, rng.chisquare(np.maximum(on, 1)), 0.0) / n
        return g


def input_gradient(net: AbstractNetwork, coordinates: int | None = None) -> InputGradientResult:
    """The exact distribution over initializations of the squared input gradient of one output of a ReLU network
    `net`.

    It is the same at every nonzero input and for every `bias_var`.

    **Arguments:** `net`, an `nk.MLP` with activation "relu"; `coordinates`, the number of inputs over which squares
    are summed: 1 for one partial derivative, all (the default) for the squared length of the gradient.

    **Returns:** an `InputGradientResult`, with moments, the distribution function and draws.
    """
    chain, activation = homogeneous(net, "input_gradient", "The law of the input gradient")
    if activation.left != 0:
        raise ValueError(
            "The law of the input gradient is known only for relu, but the activation of `net` is not zero for z < 0."
        )
    m = chain.in_dim if coordinates is None else whole(coordinates, "coordinates", 1)
    if m > chain.in_dim:
        raise ValueError(
            f"`coordinates` must be at most {chain.in_dim}, the number of inputs of `net`; got {m}."
        )
    gain = math.prod(stage.gain for stage in chain.stages) * activation.right ** (2 * len(chain.widths))
    return InputGradientResult(m, chain.in_dim, chain.widths, gain)


@functools.lru_cache(maxsize=256)
def _odds(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers k >= 1 of neurons on, out of n, and P(k | at least one is), all that are not negligible."""
    k = np.arange(max(1, int(n / 2 - 5 * np.sqrt(n))), min(n, int(n / 2 + 5 * np.sqrt(n)) + 1) + 1)
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1) - n * np.log(2.0)
    return k, np.exp(log) / -np.expm1(-n * np.log(2.0))


@functools.lru_cache(maxsize=256)
def _log_chi(n: int) -> tuple[float, float]:
    """Mean and variance of ln chi^2_k, k as in `_odds`."""
    k, odds = _odds(n)
    means = special.digamma(k / 2) + np.log(2.0)
    mean = odds @ means
    return float(mean), float(odds @ (special.polygamma(1, k / 2) + (means - mean) ** 2))


def _waves(y: np.ndarray, t: np.ndarray, amplitudes: np.ndarray) -> np.ndarray:
    """sum over t of amplitude exp(-i t y), a few values at a time; y within half a period, where all mass is."""
    reach = np.pi / (t[1] - t[0])
    parts = np.array_split(np.clip(y, -reach, reach).ravel(), y.size * len(t) // 1_000_000 + 1)
    found = [np.exp(-1j * np.multiply.outer(part, t)) @ amplitudes for part in parts]
    return np.concatenate(found).reshape(y.shape)


def _log_gamma_ratio(a: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Gamma(a + i t) / Gamma(a), (len(a), len(t))."""
    return np.exp(special.loggamma(a[:, None] + 1j * t) - special.loggamma(a)[:, None])
