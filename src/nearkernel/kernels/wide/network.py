"""NNGP and NTK of networks: covariance and tangent kernel of one output in the limit of infinite width."""

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from ..._base.check import inputs
from ..._base.types import Array, ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import in_float64, is_traced, working_dtype
from ...models.containers.repeat import roomy
from ...models.layers.activation import Activation
from ...models.layers.base import AbstractLayer, Pair, Row, inverse
from ...models.layers.flatten import Flatten
from ...models.networks.network import AbstractNetwork, Network, require_wide
from ..base import AbstractKernel
from ..finiteness import require_finite
from ..tiles import Tiles, gaps, ready
from .vectors import Wide

if TYPE_CHECKING:
    from .positions import PositionWide

_KNOWN: "dict[tuple, Wide | PositionWide]" = {}  # limits of networks that are in use


def wide(net: AbstractNetwork, outputs: tuple[str, ...]) -> "Wide | PositionWide":
    """The kernels of the network's limit for concrete inputs, made once for a network."""
    key = id(net), outputs, working_dtype().name
    if key not in _KNOWN:
        limit, dtype = traced_wide(net, outputs), working_dtype()
        if is_traced(limit):  # a trace is on its way
            return limit
        if isinstance(limit, Wide):
            limit = Wide(roomy(limit.layers), limit.in_dim, outputs)
        _KNOWN[key] = jax.tree.map(lambda a: np.asarray(a, dtype) if eqx.is_inexact_array(a) else a, limit)
        weakref.finalize(net, _KNOWN.pop, key, None)
    return _KNOWN[key]


def traced_wide(net: AbstractNetwork, outputs: tuple[str, ...]) -> "Wide | PositionWide":
    """The same inside of a program that is traced, in its own precision."""
    require_wide(net, " and ".join({"nngp": "NNGP", "ntk": "NTK"}[name] for name in outputs))
    layers = net.limit()
    if len(net.in_shape) == 1:
        return Wide(layers, float(net.in_shape[0]), outputs)
    from .positions import PositionWide

    return PositionWide(layers, net.in_shape, outputs)


class _NetworkKernel(AbstractKernel):
    net: AbstractNetwork
    output: eqx.AbstractClassVar[str]

    def __check_init__(self):
        require_wide(self.net, type(self).__name__)

    def _wide(self) -> "Wide | PositionWide":
        return wide(self.net, (self.output,))

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return self._wide().matrix(x1, x2)

    def tiles(self, x: np.ndarray) -> Tiles:
        return self._wide().tiles(x)

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        return traced_wide(self.net, (self.output,)).traced(x1, x2)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return self._wide().diagonal(x)

    def input_dim(self) -> int | tuple[int, ...]:
        return self.net.in_shape if len(self.net.in_shape) > 1 else self.net.in_shape[0]


class NNGP(_NetworkKernel):
    r"""Covariance of one output of the infinitely wide `net` over initializations (its widths are ignored).

    $$K^1 = C_b + C_W \frac{x \cdot y}{d}, \qquad K^{l+1} = C_b + C_W\, \mathbb{E}[s(u)\, s(v)], \qquad
    (u, v) \sim \mathcal{N}(0, K^l)$$
    """

    output = "nngp"


class NTK(_NetworkKernel):
    r"""Tangent kernel of one output of the infinitely wide `net`, trained with `net.lr_factors()`.

    $$\Theta^1 = K^1, \qquad \Theta^{l+1} = K^{l+1} + C_W\, \mathbb{E}[s'(u)\, s'(v)]\, \Theta^l$$
    """

    output = "ntk"


@in_float64
def nngp_and_ntk(net: AbstractNetwork, x1: ArrayLike, x2: ArrayLike | None = None) -> tuple[Array, Array]:
    """Both kernels of `net` in one pass: (NNGP(net)(x1, x2), NTK(net)(x1, x2)); `x2` is `x1` by default."""
    if not isinstance(net, AbstractNetwork):
        require_wide(net, "nngp_and_ntk")
    if is_traced(net, x1, x2):
        return traced_wide(net, ("nngp", "ntk")).traced_both(x1, x2)
    x1 = inputs(x1, "x1" if x2 is not None else "x", net.in_shape)
    return both_kernels(net, x1, None if x2 is None else inputs(x2, "x2", net.in_shape))


def both_kernels(
    net: AbstractNetwork, x1: np.ndarray, x2: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """`nngp_and_ntk` of checked inputs."""
    nngp, ntk = wide(net, ("nngp", "ntk")).both(x1, x2)
    return require_finite(nngp, x1, x2, "NNGP(x1, x2)"), require_finite(ntk, x1, x2, "NTK(x1, x2)")


@in_float64
def layer_kernels(net: AbstractNetwork, x: ArrayLike) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(NNGP, NTK, 1 - correlation) of `net` after every layer with parameters, each (n, n), for `x` (n, *in_shape).

    If the outputs of a layer still have positions, the kernels are means over equal positions, as after `Flatten`.
    """
    require_wide(net, "layer_kernels")
    x = inputs(x, "x", net.in_shape)
    require_fits(
        8 * (3 * len(net.layers.layers) + 9) * len(x) ** 2,
        f"kernels of {len(x)} points in every layer",
        "use fewer points",
    )
    if len(net.in_shape) > 1 or len(net.layers.layers) > len(net.layers.limit(net.in_shape).layers):
        return _after_each(net, x)  # positions, or layers that are one in the limit
    states = zip(net.layers.layers, _states(net, x), strict=True)
    chosen = [(row, pair) for layer, (_, row, pair) in states if layer.has_params()]
    return [_whole(row, pair, x, f"layer_kernels(net, x)[{k}]") for k, (row, pair) in enumerate(chosen)]


def activation_averages(net: AbstractNetwork, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(E[s(u) s(v)], E[s'(u) s'(v)]) of every hidden layer, each (n, n), for checked inputs `x` (n, d)."""
    chosen = [
        (row, pair) for layer, row, pair in _states(net, x, slopes=True) if isinstance(layer, Activation)
    ]
    return [_whole(row, pair, x, "activation_averages(net, x)")[:2] for row, pair in chosen]


def _states(
    net: AbstractNetwork, x: np.ndarray, slopes: bool = False
) -> Iterator[tuple[AbstractLayer, Row, Pair]]:
    """Moments after each layer of a network of vectors; not grouped: each layer is looked at."""
    layers = net.layers.limit(net.in_shape)
    kernel, side, _ = ready(Wide(layers, float(net.in_shape[0]), ("nngp", "ntk")), x, None)
    norms, unit = np.linalg.norm(x, axis=1), np.asarray(side.unit)
    return kernel.states(norms, gaps(unit, unit, True), slopes)


def _whole(row: Row, pair: Pair, x: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Second moments, tangents and gaps as symmetric matrices with exact diagonals."""
    apart, tangent = (np.array(np.broadcast_to(a, (len(x), len(x)))) for a in pair)
    size = np.asarray(row.size)
    moments = size[:, None] * size[None, :] * (1.0 - apart)
    for matrix, exact in ((moments, size**2), (tangent, np.asarray(row.tangent)), (apart, 0.0)):
        matrix[...] = 0.5 * (matrix + matrix.T)
        np.fill_diagonal(matrix, exact)
        require_finite(matrix, x, None, what)
    return moments, tangent, apart


def _after_each(net: AbstractNetwork, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of networks that are cut after each layer with parameters."""
    kernels, shape, layers = [], net.in_shape, net.layers.layers
    for k, (layer, _) in enumerate(net.layers.shapes(net.in_shape)):
        shape = layer.shape(shape)
        if not layer.has_params():
            continue
        end = [] if len(shape) == 1 else [Flatten()]
        nngp, ntk = both_kernels(Network(net.in_shape, [*layers[: k + 1], *end]), x, None)
        sizes = np.sqrt(np.diagonal(nngp))
        kernels.append((nngp, ntk, 1.0 - nngp * inverse(sizes)[:, None] * inverse(sizes)))
    return kernels
