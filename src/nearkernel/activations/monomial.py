"""Powers of z: their Hermite series is finite, hence exact."""

import math

import equinox as eqx
import jax.numpy as jnp

from .._base.check import whole
from .._base.namespace import namespace
from .._base.types import Array
from .averages.angle import safe_sqrt
from .base import AbstractActivation, Moments, Rows


class Monomial(AbstractActivation):
    r"""$s(z) = z^p$ with $p$ = `degree`.

    $$\mathbb{E}[u^p v^p] = (q_1 q_2)^{p/2} \sum_k m_k^2\, c^k, \qquad m_k = \mathbb{E}[z^p h_k(z)]$$
    """

    degree: int = eqx.field(static=True)

    def __check_init__(self):
        whole(self.degree, "degree", 1, most=19)  # moments of z^20 are not exact in floating point

    def __call__(self, z: Array) -> Array:
        return z**self.degree

    @property
    def breaks(self) -> tuple[float, ...]:
        return ()

    @property
    def kinks(self) -> tuple[float, ...]:
        return ()

    def moments(self, q: Array) -> Moments:
        p, one = self.degree, namespace(q).ones_like(q)
        value, slope = q**p * _even_moment(p), p * p * q ** (p - 1) * _even_moment(p - 1)
        curvature = p * (p - 1) * (q ** (p - 1) * _even_moment(p - 1))
        return Moments(value=value, slope=one * slope, curvature=one * curvature)

    def mean(self, q: Array) -> Array | None:
        half = self.degree // 2
        return None if self.degree % 2 else q**half * _even_moment(half)

    def rows(self, q: Array) -> Rows:
        moments = self.moments(q)
        return {"q": q, "size": safe_sqrt(moments.value), "slope": moments.slope}

    def pair(self, rows1: Rows, rows2: Rows, gap: Array) -> tuple[Array, Array]:
        p, c = self.degree, 1.0 - gap
        correlation = _mehler(p, c) / _even_moment(p)
        root = safe_sqrt(rows1["q"]) * safe_sqrt(rows2["q"])
        return jnp.maximum(1.0 - correlation, 0.0), p * p * root ** (p - 1) * _mehler(p - 1, c)


def _even_moment(p: int) -> float:
    """E[z^{2p}] = (2p - 1)!!."""
    return float(math.prod(range(1, 2 * p, 2)))


def _mehler(p: int, c: Array) -> Array:
    """E[u^p v^p] of unit Gaussians with correlation c: a polynomial in c."""
    total = jnp.zeros_like(c)
    for k in range(p, -1, -1):
        weight = 0.0
        if (p - k) % 2 == 0:  # E[z^p h_k] = p! / (sqrt(k!) 2^j j!), j = (p - k)/2
            j = (p - k) // 2
            weight = (math.factorial(p) / (math.sqrt(math.factorial(k)) * 2**j * math.factorial(j))) ** 2
        total = total * c + weight
    return total
