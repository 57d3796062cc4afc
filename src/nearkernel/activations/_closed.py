"""Activations whose Gaussian averages are known in closed form."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._angle import angles, safe_sqrt, signed_arcsine, sine_minus_chord
from ._base import AbstractActivation, Moments, Rows


class PiecewiseLinear(AbstractActivation):
    r"""s(z) = `right` z for z > 0 and `left` z for z < 0: linear, relu, leaky relu, abs.

    Scale invariant, so the angle of the outputs depends on the angle of the inputs alone:
    gap' = w gap + (1 - w) gap_abs with gap_abs = gap - (2/pi)(sin phi - phi cos phi), all terms positive.
    """

    right: float
    left: float

    def __call__(self, z: jax.Array) -> jax.Array:
        return jnp.where(z > 0, self.right * z, self.left * z)

    def _power(self):
        return 0.5 * (self.right**2 + self.left**2)

    def moments(self, q: jax.Array) -> Moments:
        power = jnp.full_like(q, 1.0) * self._power()
        return Moments(value=q * power, slope=power, curvature=jnp.zeros_like(q))

    def rows(self, q: jax.Array) -> Rows:
        return {"size": safe_sqrt(q * self._power()), "slope": self.moments(q).slope}

    def pair(self, rows1: Rows, rows2: Rows, gap: jax.Array) -> tuple[jax.Array, jax.Array]:
        if isinstance(self.right, float) and self.right == self.left:
            return gap, jnp.full_like(gap, self.right**2)
        mean, half = 0.5 * (self.right + self.left), 0.5 * (self.right - self.left)
        cosine = 1.0 - gap
        fold = jnp.minimum(gap, 2.0 - gap)  # |u||v| does not see the sign
        phi = angles(cosine, fold)[1]
        gap_abs = fold - (2 / np.pi) * sine_minus_chord(phi, fold)
        slope_abs = jnp.where(cosine < 0, -1.0, 1.0) * (1.0 - (2 / np.pi) * phi)
        return (mean**2 * gap + half**2 * gap_abs) / self._power(), mean**2 + half**2 * slope_abs


class SmoothClosedForm(AbstractActivation):
    """A smooth s with E[s(u)s(v)] and E[s'(u)s'(v)] as formulas in q1, q2, c = 1 - gap."""

    @abc.abstractmethod
    def averages(self, q1, q2, gap) -> tuple[jax.Array, jax.Array]:
        """E[s(u) s(v)] and E[s'(u) s'(v)]."""

    @abc.abstractmethod
    def moments(self, q: jax.Array) -> Moments: ...

    def rows(self, q: jax.Array) -> Rows:
        moments = self.moments(q)
        return {"q": q, "size": safe_sqrt(moments.value), "slope": moments.slope}

    def pair(self, rows1: Rows, rows2: Rows, gap: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, slope = self.averages(rows1["q"], rows2["q"], gap)
        size = rows1["size"] * rows2["size"]
        return jnp.where(size > 0, jnp.maximum(1.0 - value / jnp.where(size > 0, size, 1.0), 0.0), 0.0), slope


def _covariance(q1, q2, gap):
    return safe_sqrt(q1) * safe_sqrt(q2) * (1.0 - gap)


def _determinant(scale: float, q1, q2, gap):
    """det(1 + scale * covariance) of the pair, a sum of positive terms."""
    return 1.0 + scale * (q1 + q2) + scale**2 * q1 * q2 * gap * (2.0 - gap)


class Erf(SmoothClosedForm):
    """s(z) = erf(z)."""

    def __call__(self, z: jax.Array) -> jax.Array:
        return jax.scipy.special.erf(z)

    def averages(self, q1, q2, gap):
        product = jnp.sqrt(1.0 + 2.0 * q1) * jnp.sqrt(1.0 + 2.0 * q2)
        value = (2 / np.pi) * signed_arcsine(2.0 * _covariance(q1, q2, gap) / product)
        return value, (4 / np.pi) / jnp.sqrt(_determinant(2.0, q1, q2, gap))

    def moments(self, q: jax.Array) -> Moments:
        value, slope = self.averages(q, q, jnp.zeros_like(q))
        curvature = -8 * q / (np.pi * (1 + 2 * q) * jnp.sqrt(1 + 4 * q))
        return Moments(value=value, slope=slope, curvature=curvature)


class Gelu(SmoothClosedForm):
    """s(z) = z Phi(z), with the normal distribution function Phi itself (no tanh fit)."""

    def __call__(self, z: jax.Array) -> jax.Array:
        return jax.nn.gelu(z, approximate=False)

    def averages(self, q1, q2, gap):
        k, inv1, inv2 = _covariance(q1, q2, gap), 1.0 / (1.0 + q1), 1.0 / (1.0 + q2)
        det = _determinant(1.0, q1, q2, gap)
        density = 1.0 / (2 * np.pi * jnp.sqrt(det))  # E[phi(u) phi(v)]
        both = 0.25 + signed_arcsine(k * jnp.sqrt(inv1) * jnp.sqrt(inv2)) / (2 * np.pi)  # E[Phi(u) Phi(v)]
        value = k * both + density * (q1 * q2 - k * k * (1.0 - inv1 - inv2))
        return value, both + density * k * (inv1 + inv2 + 1.0 / det)

    def moments(self, q: jax.Array) -> Moments:
        value, slope = self.averages(q, q, jnp.zeros_like(q))
        curvature = q * (2 + 3 * q - q * q) / (2 * np.pi * (1 + q) ** 2 * (1 + 2 * q) ** 1.5)
        return Moments(value=value, slope=slope, curvature=curvature)


class Gaussian(SmoothClosedForm):
    """s(z) = exp(-z^2)."""

    def __call__(self, z: jax.Array) -> jax.Array:
        return jnp.exp(-z * z)

    def averages(self, q1, q2, gap):
        det = _determinant(2.0, q1, q2, gap)
        value = 1.0 / jnp.sqrt(det)
        return value, 4.0 * _covariance(q1, q2, gap) * value / det

    def moments(self, q: jax.Array) -> Moments:
        value, slope = self.averages(q, q, jnp.zeros_like(q))
        return Moments(value=value, slope=slope, curvature=slope - 2.0 * value)


class Sine(SmoothClosedForm):
    """s(z) = sin(z), or cos(z) with `cosine=True`."""

    cosine: bool = eqx.field(static=True, default=False)

    def __call__(self, z: jax.Array) -> jax.Array:
        return jnp.cos(z) if self.cosine else jnp.sin(z)

    def averages(self, q1, q2, gap):
        root1, root2 = safe_sqrt(q1), safe_sqrt(q2)
        fold = jnp.minimum(gap, 2.0 - gap)
        k = root1 * root2 * (1.0 - fold)
        near = jnp.exp(-0.5 * ((root1 - root2) ** 2 + 2.0 * root1 * root2 * fold))  # E cos(u -+ v)
        of_cos = 0.5 * near * (1.0 + jnp.exp(-2.0 * k))
        of_sin = -0.5 * near * jnp.expm1(-2.0 * k) * jnp.where(gap > 1.0, -1.0, 1.0)
        return (of_cos, of_sin) if self.cosine else (of_sin, of_cos)

    def moments(self, q: jax.Array) -> Moments:
        value, slope = self.averages(q, q, jnp.zeros_like(q))
        return Moments(value=value, slope=slope, curvature=-value)
