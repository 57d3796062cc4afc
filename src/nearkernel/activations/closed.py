"""Activations whose Gaussian averages are known in closed form."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.check import between, finite_number
from .._base.namespace import namespace
from .._base.types import Array
from .averages.angle import angle_and_chord, safe_sqrt, signed_arcsine
from .base import AbstractActivation, Moments, Rows

LARGEST_SLOPE = 1e75  # of which the fourth power is a number


class PiecewiseLinear(AbstractActivation):
    r"""$s(z)$ = `right` $z$ for $z > 0$ and `left` $z$ for $z < 0$: linear, ReLU, leaky ReLU, abs.

    With $\cos\varphi$ the correlation of $u$ and $v$, $m = (\text{right} + \text{left})/2$ and
    $h = (\text{right} - \text{left})/2$,

    $$\mathbb{E}[s s] = \sqrt{q_1 q_2} \left[m^2 \cos\varphi + h^2 \tfrac{2}{\pi} (\sin\varphi +
    (\tfrac{\pi}{2} - \varphi) \cos\varphi)\right], \qquad
    \mathbb{E}[s' s'] = m^2 + h^2 \left(1 - \tfrac{2 \varphi}{\pi}\right).$$

    It is scale invariant, so the angle of the outputs depends only on the angle of the inputs:
    $\text{gap}' = w\, \text{gap} + (1 - w)\, [\text{gap} - \tfrac{2}{\pi} (\sin\varphi - \varphi \cos\varphi)]$ with
    $w = m^2/(m^2 + h^2)$, all terms positive.
    """

    right: float = eqx.field(static=True)
    left: float = eqx.field(static=True)

    def __check_init__(self):
        for name in ("right", "left"):
            between(finite_number(getattr(self, name), name), name, -LARGEST_SLOPE, LARGEST_SLOPE)

    def __call__(self, z: Array) -> Array:
        return jnp.where(z > 0, self.right * z, self.left * z)

    @property
    def breaks(self) -> tuple[float, ...]:
        return () if self.right == self.left else (0.0,)

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.breaks

    def _power(self):
        return 0.5 * (self.right**2 + self.left**2)

    def moments(self, q: Array) -> Moments:
        xp = namespace(q)
        power = xp.full_like(q, 1.0) * self._power()
        return Moments(value=q * power, slope=power, curvature=xp.zeros_like(q))

    def rows(self, q: Array) -> Rows:
        return {"size": safe_sqrt(q * self._power()), "slope": self.moments(q).slope}

    def mean(self, q: Array) -> Array | None:
        return None if self.right == self.left else (self.right - self.left) * safe_sqrt(q / (2 * np.pi))

    def pair(self, rows1: Rows, rows2: Rows, gap: Array) -> tuple[Array, Array]:
        if self.right == self.left:
            return gap, jnp.full_like(gap, self.right**2)
        mean, half = 0.5 * (self.right + self.left), 0.5 * (self.right - self.left)
        fold = jnp.minimum(gap, 2.0 - gap)  # |u||v| does not see the sign
        phi, chord = angle_and_chord(fold)
        gap_abs = fold - (2 / np.pi) * chord
        slope_abs = jnp.where(gap > 1.0, -1.0, 1.0) * (1.0 - (2 / np.pi) * phi)
        return (mean**2 * gap + half**2 * gap_abs) / self._power(), mean**2 + half**2 * slope_abs


class SmoothClosedForm(AbstractActivation):
    """A smooth s with E[s(u)s(v)] and E[s'(u)s'(v)] as formulas in q1, q2 and the gap.

    What depends on one input alone is in its row: computed once, not once a pair.
    """

    @property
    def breaks(self) -> tuple[float, ...]:
        return ()

    @property
    def kinks(self) -> tuple[float, ...]:
        return ()

    @abc.abstractmethod
    def parts(self, q: Array) -> Rows:
        """The functions of one variance `q` that `averages` needs."""

    @abc.abstractmethod
    def averages(self, row1: Rows, row2: Rows, gap: Array) -> tuple[Array, Array]:
        """E[s(u) s(v)] and E[s'(u) s'(v)], from the `parts` of both, `row1` and `row2`, and `gap`."""

    @abc.abstractmethod
    def curvature(self, q: Array) -> Array:
        """E[s s''] at variance `q`."""

    def moments(self, q: Array) -> Moments:
        parts = self.parts(q)
        value, slope = self.averages(parts, parts, namespace(q).zeros_like(q))
        return Moments(value=value, slope=slope, curvature=self.curvature(q))

    def rows(self, q: Array) -> Rows:
        xp, parts = namespace(q), self.parts(q)
        value, slope = self.averages(parts, parts, xp.zeros_like(q))
        size = safe_sqrt(value)
        inverse = xp.where(size > 0, 1.0 / xp.where(size > 0, size, 1.0), 0.0)
        return {**parts, "size": size, "slope": slope, "inverse_size": inverse}

    def pair(self, rows1: Rows, rows2: Rows, gap: Array) -> tuple[Array, Array]:
        value, slope = self.averages(rows1, rows2, gap)
        return jnp.maximum(1.0 - value * (rows1["inverse_size"] * rows2["inverse_size"]), 0.0), slope


def _determinant(scale: float, row1: Rows, row2: Rows, gap: Array) -> Array:
    """det(1 + scale * covariance) of the pair, a sum of positive terms."""
    q1, q2 = row1["q"], row2["q"]
    return 1.0 + scale * (q1 + q2) + scale**2 * (q1 * q2) * gap * (2.0 - gap)


def _covariance(row1: Rows, row2: Rows, gap: Array) -> Array:
    return row1["root"] * row2["root"] * (1.0 - gap)


class Erf(SmoothClosedForm):
    r"""$s(z) = \mathrm{erf}(z)$. With $k = \mathbb{E}[u v]$,

    $$\mathbb{E}[s s] = \frac{2}{\pi} \arcsin \frac{2 k}{\sqrt{(1 + 2 q_1)(1 + 2 q_2)}}, \qquad
    \mathbb{E}[s' s'] = \frac{4}{\pi} \frac{1}{\sqrt{(1 + 2 q_1)(1 + 2 q_2) - 4 k^2}}.$$
    """

    def __call__(self, z: Array) -> Array:
        return jax.scipy.special.erf(z)

    def mean(self, q: Array) -> None:
        return None

    def parts(self, q: Array) -> Rows:
        return {"q": q, "sine": namespace(q).sqrt(2.0 * q / (1.0 + 2.0 * q))}

    def averages(self, row1: Rows, row2: Rows, gap: Array) -> tuple[Array, Array]:
        value = (2 / np.pi) * signed_arcsine(row1["sine"] * row2["sine"] * (1.0 - gap))
        return value, (4 / np.pi) / namespace(gap).sqrt(_determinant(2.0, row1, row2, gap))

    def curvature(self, q: Array) -> Array:
        return -8 * q / (np.pi * (1 + 2 * q) * namespace(q).sqrt(1 + 4 * q))


class Gelu(SmoothClosedForm):
    r"""$s(z) = z\, \Phi(z)$, with the exact normal distribution function $\Phi$ (not the tanh approximation).

    With $k = \mathbb{E}[u v]$, $D = (1 + q_1)(1 + q_2) - k^2$ and $r = 1/(1 + q_1) + 1/(1 + q_2)$,

    $$B = \mathbb{E}[\Phi \Phi] = \frac14 + \frac{1}{2 \pi} \arcsin \frac{k}{\sqrt{(1 + q_1)(1 + q_2)}},$$

    $$\mathbb{E}[s s] = k B + \frac{q_1 q_2 - k^2 (1 - r)}{2 \pi \sqrt D}, \qquad
    \mathbb{E}[s' s'] = B + \frac{k (r + 1/D)}{2 \pi \sqrt D}.$$
    """

    def __call__(self, z: Array) -> Array:
        return jax.nn.gelu(z, approximate=False)

    def mean(self, q: Array) -> Array:
        return q / namespace(q).sqrt(2 * np.pi * (1.0 + q))

    def parts(self, q: Array) -> Rows:
        inverse = 1.0 / (1.0 + q)
        return {"q": q, "root": safe_sqrt(q), "inverse": inverse, "sine": safe_sqrt(q * inverse)}

    def averages(self, row1: Rows, row2: Rows, gap: Array) -> tuple[Array, Array]:
        k, inverses = _covariance(row1, row2, gap), row1["inverse"] + row2["inverse"]
        det = _determinant(1.0, row1, row2, gap)
        root = 1.0 / namespace(det).sqrt(det)
        density = root / (2 * np.pi)  # E[phi(u) phi(v)]
        # E[Phi(u) Phi(v)]
        both = 0.25 + signed_arcsine(row1["sine"] * row2["sine"] * (1.0 - gap)) / (2 * np.pi)
        value = k * both + density * (row1["q"] * row2["q"] - k * k * (1.0 - inverses))
        return value, both + density * k * (inverses + root * root)

    def curvature(self, q: Array) -> Array:
        return q * (2 + 3 * q - q * q) / (2 * np.pi * (1 + q) ** 2 * (1 + 2 * q) ** 1.5)


class Gaussian(SmoothClosedForm):
    r"""$s(z) = e^{-z^2}$. With $k = \mathbb{E}[u v]$,

    $$\mathbb{E}[s s] = \frac{1}{\sqrt{(1 + 2 q_1)(1 + 2 q_2) - 4 k^2}}, \qquad
    \mathbb{E}[s' s'] = 4 k\, \mathbb{E}[s s]^3.$$
    """

    def __call__(self, z: Array) -> Array:
        return jnp.exp(-z * z)

    def mean(self, q: Array) -> Array:
        return 1.0 / namespace(q).sqrt(1.0 + 2.0 * q)

    def parts(self, q: Array) -> Rows:
        return {"q": q, "root": safe_sqrt(q)}

    def averages(self, row1: Rows, row2: Rows, gap: Array) -> tuple[Array, Array]:
        value = 1.0 / namespace(gap).sqrt(_determinant(2.0, row1, row2, gap))
        return value, 4.0 * _covariance(row1, row2, gap) * value**3

    def curvature(self, q: Array) -> Array:
        return (4 * q / (1 + 4 * q) - 2.0) / namespace(q).sqrt(1 + 4 * q)


class Sine(SmoothClosedForm):
    r"""$s(z) = \sin z$, or $\cos z$ with `cosine=True`. With $k = \mathbb{E}[u v]$,

    $$\mathbb{E}[\sin \sin] = e^{-(q_1 + q_2)/2} \sinh k, \qquad \mathbb{E}[\cos \cos] = e^{-(q_1 + q_2)/2} \cosh k,$$

    and each is $\mathbb{E}[s' s']$ of the other.
    """

    cosine: bool = eqx.field(static=True, default=False)

    def __call__(self, z: Array) -> Array:
        return jnp.cos(z) if self.cosine else jnp.sin(z)

    def mean(self, q: Array) -> Array | None:
        return namespace(q).exp(-0.5 * q) if self.cosine else None

    def parts(self, q: Array) -> Rows:
        return {"root": safe_sqrt(q)}

    def averages(self, row1: Rows, row2: Rows, gap: Array) -> tuple[Array, Array]:
        xp, root1, root2 = namespace(gap), row1["root"], row2["root"]
        fold = xp.minimum(gap, 2.0 - gap)
        k = root1 * root2 * (1.0 - fold)
        near = xp.exp(-0.5 * ((root1 - root2) ** 2 + 2.0 * (root1 * root2) * fold))  # E cos(u -+ v)
        far = xp.expm1(-2.0 * k)
        of_cos = near * (1.0 + 0.5 * far)
        of_sin = -0.5 * near * far * xp.where(gap > 1.0, -1.0, 1.0)
        return (of_cos, of_sin) if self.cosine else (of_sin, of_cos)

    def curvature(self, q: Array) -> Array:
        parts = self.parts(q)
        return -self.averages(parts, parts, namespace(q).zeros_like(q))[0]
