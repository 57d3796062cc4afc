"""The number of linear regions: upper bounds and means over initializations."""

from math import comb, prod
from typing import NamedTuple

import numpy as np

from ..._base.check import truth, whole
from ..._base.keys import Key, generator
from ..._base.types import ArrayLike
from ...models.networks.mlp import MLP
from ...statistics.measuring import Estimate
from .line import crossings_of
from .piecewise import Layers, piecewise_linear_mlp, two_points


def zaslavsky(planes: int, dim: int, central: bool = False) -> int:
    r"""The maximum number of regions into which $n$ hyperplanes divide a space: $\sum_{k \le d} \binom{n}{k}$.

    Hyperplanes in general position reach it.

    **Arguments:** `planes`, their number $n$; `dim` of the space, $d$; `central`: whether all pass through one point,
    as for neurons without biases: $2 \sum_{k < d} \binom{n - 1}{k}$.
    """
    n, d, central = whole(planes, "planes", 0), whole(dim, "dim", 1), truth(central, "central")
    if d >= n:  # every combination of sides occurs
        return 2**n
    if central:
        return 2 * sum(comb(n - 1, k) for k in range(d))
    return sum(comb(n, k) for k in range(d + 1))


class RegionBoundsResult(NamedTuple):
    r"""Upper bounds on the number of linear regions for all parameters, as integers.

    **Fields:** `layers`, $\prod_l \sum_{k \le d_l} \binom{n_l}{k}$ with $d_l = \min(n_0, \ldots, n_{l-1})$: every layer
    divides each region of the previous layer into at most `zaslavsky` regions; for one input $\prod_l (n_l + 1)$.
    `signs`, 3 to the number of neurons: every neuron is positive, zero or negative.
    """

    layers: int
    signs: int


def region_bounds(net: MLP) -> RegionBoundsResult:
    """Upper bounds on the number of linear regions of `net`, a piecewise linear `nk.MLP`, for all parameters."""
    net = piecewise_linear_mlp(net, "region_bounds")
    narrowest = [min(net.sizes[: l + 1]) for l in range(len(net.widths))]
    layers = prod(zaslavsky(n, d) for n, d in zip(net.widths, narrowest, strict=True))
    return RegionBoundsResult(layers, 3 ** sum(net.widths))


def mean_crossings(net: MLP, start: ArrayLike, end: ArrayLike) -> np.ndarray:
    r"""The mean number of sign changes per neuron between two points at infinite width, for each layer: (depth,).

    Over initializations a preactivation is a Gaussian process whose variance along the line is a parabola,
    $A t^2 + 2 B t + C$. By the Kac-Rice formula its expected number of zeros is
    $\frac1\pi \arctan\frac{A t + B}{\sqrt{A C - B^2}}$ from $t = 0$ to 1. This is at most 1 in every layer: on average
    the number of regions grows with the number of neurons, not exponentially. Corrections are of order depth/width;
    for the first layer it is exact at any width.

    **Arguments:** `net`, a piecewise linear `nk.MLP`; `start`, `end`, two points (d,), or numbers if d = 1.
    """
    net = piecewise_linear_mlp(net, "mean_crossings")
    start, end = two_points(start, end, net.in_dim)
    step = end - start
    weight_var, bias_var = float(net.weight_var), float(net.bias_var)
    power = 0.5 * (net.activation.right**2 + net.activation.left**2)
    scale, bias = weight_var / net.in_dim, bias_var
    counts = []
    for _ in net.widths:
        a, b = scale * step @ step, scale * start @ step
        # A C - B^2 without cancellation, also for lines that nearly pass through the origin.
        off = step * (start @ step) / (step @ step) - start
        root = np.sqrt(a * (bias + scale * off @ off))
        counts.append((np.arctan2(a + b, root) - np.arctan2(b, root)) / np.pi)
        scale, bias = scale * weight_var * power, bias_var + bias * weight_var * power
    return np.array(counts)


def measure_crossings(net: MLP, start: ArrayLike, end: ArrayLike, size: int, key: Key) -> Estimate:
    """Measures `mean_crossings` in `size` random networks with exact crossings; (depth,) with standard errors.

    **Arguments:** `net`, `start`, `end`: same as `mean_crossings`; `size`, number of networks, at least 2; `key`.
    Networks have the distribution of `net.init`, but are drawn with NumPy: a thousand small networks take less time
    than one compilation.
    """
    net = piecewise_linear_mlp(net, "measure_crossings")
    start, end = two_points(start, end, net.in_dim)
    size, depth = whole(size, "size", 2), len(net.widths)
    rng = generator(key)
    counts = np.empty((size, depth))
    for i in range(size):
        layers = drawn_layers(net, rng)
        counts[i] = crossings_of(layers, start, end).per_layer(depth)
    counts /= np.array(net.widths)
    return Estimate(mean=counts.mean(axis=0), sem=counts.std(axis=0, ddof=1) / np.sqrt(size), size=size)


def drawn_layers(net: MLP, rng: np.random.Generator) -> Layers:
    """A network of the law of `net.init`, drawn by NumPy."""
    shapes = list(zip(net.sizes[:-1], net.sizes[1:], strict=True))
    weights = [np.sqrt(float(net.weight_var) / fan_in) * rng.normal(size=(fan_in, n)) for fan_in, n in shapes]
    biases = [np.sqrt(float(net.bias_var)) * rng.normal(size=n) for _, n in shapes]
    return Layers(weights, biases, net.activation.right, net.activation.left)
