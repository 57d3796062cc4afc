r"""The mean boundary of a random network: the (d - 1)-dimensional volume of the sets where its neurons are 0.

At infinite width a preactivation at $x$ is Gaussian with variance $K = b + s \lVert x\rVert^2$, and its derivative
along $u$, given that it is 0, has the variance $s\, (1 - \frac{s}{K} (u \cdot x)^2)$. The Kac-Rice formula gives
the volume within a ball,

$$\int_{\lVert x\rVert < R} \frac{\mathbb{E}[\lVert\nabla z\rVert \mid z = 0]}{\sqrt{2 \pi K}}\, dx, \qquad
\lVert\nabla z\rVert = \frac{\mathbb{E}_u |u \cdot \nabla z|}{\mathbb{E}_u |u_1|},$$

with $u$ uniform on the sphere. The experiment counts crossings along random lines, by the Cauchy-Crofton
formula.
"""

import numpy as np
from scipy.special import gammaln

from ..._base.check import positive, whole
from ..._base.keys import Key, generator
from ...models.networks.mlp import MLP
from ...statistics.measuring import Estimate
from .laws import drawn_layers
from .line import crossings_of
from .piecewise import piecewise_linear_mlp

_NODES = 60


def mean_boundary(net: MLP, radius: float = 1.0) -> np.ndarray:
    r"""The mean $(d - 1)$-dimensional volume of a neuron's boundary within a ball around 0, per hidden layer: (depth,).

    The mean is over initializations at infinite width; for the first layer it is exact at any width. In one dimension
    it is the number of kinks per neuron, in the plane the length of its lines. By the Kac-Rice formula it is

    $$\int_{|x| < R} \frac{\mathbb{E}[\,|\nabla z|\,;\, z = 0]}{\sqrt{2 \pi K(x)}}\, dx .$$

    **Arguments:** `net`, a piecewise linear `nk.MLP`; `radius` of the ball.
    """
    net = piecewise_linear_mlp(net, "mean_boundary")
    radius, d = float(positive(radius, "radius")), net.in_dim
    rho, rho_weights = _legendre(0.0, radius)
    cosine_squared, weights = _directions(d)
    weight_var, bias_var = float(net.weight_var), float(net.bias_var)
    power = 0.5 * (net.activation.right**2 + net.activation.left**2)
    scale, bias = weight_var / d, bias_var
    shell = np.exp(np.log(2.0) + 0.5 * d * np.log(np.pi) - gammaln(d / 2)) * rho ** (d - 1) * rho_weights
    volumes = []
    for _ in net.widths:
        variance = bias + scale * rho**2
        spread = np.sqrt(scale * (1 - (scale * rho**2 / variance)[:, None] * cosine_squared))
        slope = np.sqrt(2 / np.pi) * spread @ weights / mean_cosine(d)
        volumes.append(np.sum(shell * slope / np.sqrt(2 * np.pi * variance)))
        scale, bias = scale * weight_var * power, bias_var + bias * weight_var * power
    return np.array(volumes)


def measure_boundary(net: MLP, radius: float, size: int, key: Key) -> Estimate:
    """Measures `mean_boundary` in `size` random networks, each cut exactly along 8 random lines; (depth,).

    **Arguments:** `net`, `radius`: same as `mean_boundary`; `size`, number of networks, at least 2; `key`.
    """
    net = piecewise_linear_mlp(net, "measure_boundary")
    radius, d = float(positive(radius, "radius")), net.in_dim
    size, depth = whole(size, "size", 2), len(net.widths)
    rng = generator(key)
    counts = np.zeros((size, depth))
    for i in range(size):
        layers = drawn_layers(net, rng)
        for _ in range(8):
            start, end = _random_chord(rng, d, radius)
            counts[i] += crossings_of(layers, start, end).per_layer(depth) / 8
    shadow = np.exp(0.5 * (d - 1) * np.log(np.pi) - gammaln((d + 1) / 2)) * radius ** (d - 1)
    counts *= shadow / mean_cosine(d) / np.array(net.widths)
    return Estimate(mean=counts.mean(axis=0), sem=counts.std(axis=0, ddof=1) / np.sqrt(size), size=size)


def mean_cosine(d: int) -> float:
    """E|u_1| of a unit vector in d dimensions, uniform on the sphere."""
    return float(np.exp(gammaln(d / 2) - gammaln((d + 1) / 2)) / np.sqrt(np.pi))


def _legendre(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2


def _directions(d: int) -> tuple[np.ndarray, np.ndarray]:
    """cos^2 of the angle between a random direction and a given one: values and probabilities."""
    if d == 1:
        return np.ones(1), np.ones(1)
    angle, weights = _legendre(0.0, np.pi / 2)
    weights = weights * np.sin(angle) ** (d - 2)
    return np.cos(angle) ** 2, weights / weights.sum()


def _random_chord(rng: np.random.Generator, d: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of a line that meets the ball, uniform in direction and in place."""
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    across = rng.normal(size=d)
    across -= (across @ u) * u
    length = radius * rng.uniform() ** (1 / (d - 1)) if d > 1 else 0.0
    across = across * (length / np.linalg.norm(across)) if d > 1 else np.zeros(d)
    half = np.sqrt(radius**2 - length**2)
    return across - half * u, across + half * u
