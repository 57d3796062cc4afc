"""`propagate`: the statistics of all layers of random networks, at infinite width and to order 1/n."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..._base.check import inputs, whole
from ..._base.result import Result
from ..._base.types import ArrayLike, Float, Num
from ..._run.precision import in_float64
from ...kernels.wide.network import layer_kernels
from ...models.networks.network import AbstractNetwork, require_wide
from .fluctuations import fluctuations

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Layer(Result, eqx.Module):
    """Averages over initializations of the outputs of one layer at infinite width; means over positions, if any.

    **Fields,** each (n, n) for n inputs: `kernel`, the covariance of a neuron; `ntk`, the tangent kernel of a neuron;
    `correlation`, the normalized kernel.
    """

    kernel: Float[np.ndarray, "n n"]
    ntk: Float[np.ndarray, "n n"]
    correlation: Float[np.ndarray, "n n"]


class Propagation(Result, eqx.Module):
    """All layers of a network: `found[l]` for l = 1, ..., number of layers with parameters; iterable in that order.

    **Fields:** `layers`, one `Layer` each or, with order=1, one `Fluctuations`.
    """

    layers: tuple[Any, ...]

    def __getitem__(self, layer: int) -> Any:
        if not 1 <= whole(layer, "layer", -(10**9)) <= len(self.layers):
            raise IndexError(f"`layer` must be from 1 to {len(self.layers)}; got {layer}.")
        return self.layers[layer - 1]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def _shown(self) -> Mapping[str, object]:
        return {"layers": len(self.layers), "inputs": len(self.layers[0].kernel), "last": self.layers[-1]}

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the variance of a neuron against the layer, one line per input, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        variances = np.array([np.diagonal(layer.kernel) for layer in self.layers])
        number = np.arange(1, len(variances) + 1)
        return draw_lines(number, variances, axes, xlabel="layer", ylabel="variance of a neuron", log="y")


@in_float64
def propagate(net: AbstractNetwork, x: Num[ArrayLike, " n *d"], order: int = 0) -> Propagation:
    r"""Statistics of every layer of `net` over initializations, for inputs `x` (n, *in_shape).

    $$K^{l+1} = C_b + C_W\, \mathbb{E}[s s], \qquad \Theta^{l+1} = K^{l+1} + C_W\, \mathbb{E}[s' s']\, \Theta^l$$

    at infinite width for fully connected layers (other layers have corresponding formulas). With `order=1` it adds
    the leading finite-width corrections: how much the outputs and the tangent kernel of a network differ from these
    averages, and how the kernel begins to change in training.

    **Arguments:** `net`; `x`; `order`, the highest power of 1/width: 0 or 1. Order 1 uses tensors of four inputs, so it
    is for one or two dozen inputs, and for networks of alternating `Dense` and `Activation`, such as `nk.MLP`, at
    their widths; with a smooth activation also in `Residual` blocks, such as `nk.ResMLP(..., norm=False)`.

    **Returns:** `found[l]`, a `Layer` (`kernel`, `ntk`, `correlation`) or a `Fluctuations`, which has more fields.
    """
    require_wide(net, "propagate")
    if whole(order, "order", 0) > 1:
        raise ValueError(f"`order` must be 0 or 1; got {order}.")
    x = inputs(x, "x", net.in_shape)
    if order == 0:
        return Propagation(tuple(Layer(k, t, 1.0 - gap) for k, t, gap in layer_kernels(net, x)))
    return Propagation(fluctuations(net, x))
