"""A relu network as a sum over the paths from its inputs to its outputs."""

from typing import Any

import numpy as np

from ..._base.check import inputs
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...models.networks.mlp import MLP
from ...models.params import checked_params


def piecewise_linear(net: Any, what: str) -> PiecewiseLinear:
    """The activation of `net` if it is homogeneous (relu, leaky relu, abs, linear), on which `what` rests."""
    if not isinstance(net, MLP):
        raise TypeError(f"`net` must be an nk.MLP; got {type(net).__name__}.")
    if not isinstance(net.activation, PiecewiseLinear):
        name = getattr(net.activation, "name", type(net.activation).__name__.lower())
        raise ValueError(f"{what} is known only for relu networks, but `net` has the activation {name}.")
    return net.activation


@in_float64
def path_sum(net: MLP, params: Any, x: Any) -> np.ndarray:
    r"""The outputs of a ReLU network, summed path by path.

    $$z_q = \sum_{p \to i_1 \to \cdots \to i_L \to q} x_p W_{p i_1} d_{i_1} W_{i_1 i_2} \cdots d_{i_L} W_{i_L q}$$

    where $d_i$ is the slope of neuron $i$ at this input, 1 or 0 for ReLU. A path may also begin at a bias. The sum
    equals `net(params, x)`. The number of paths is the product of the widths, so use it only for tiny networks.

    **Arguments:** `net` with a ReLU-like activation; `params` of the net; `x` (n, d).

    **Returns:** (n, out).
    """
    activation = piecewise_linear(net, "The sum over paths")
    params = checked_params(net, params)
    x = inputs(x, "x", net.in_dim)
    count = int(np.prod([float(size) for size in net.sizes]))
    require_fits(16 * count * len(x), f"a sum over {count} paths for {len(x)} inputs", "use a tiny network")
    layers = [_in_numpy(net, layer, entry) for layer, entry in enumerate(params)]
    total, slopes = 0.0, _slopes(activation, layers, x)
    for start in range(len(layers) + 1):  # 0: at an input; l: at a bias of layer l
        paths = x if start == 0 else np.broadcast_to(layers[start - 1][1], slopes[start].shape)
        if not paths.any():
            continue
        for (weight, _), slope in zip(layers[start:], slopes[start:], strict=False):
            # Times the neurons where the path enters.
            through = paths * slope.reshape(len(x), *(1,) * (paths.ndim - 2), -1)
            paths = through[..., None] * weight
        total = total + paths.reshape(len(x), -1, net.out_dim).sum(axis=1)
    return np.asarray(total)


def _in_numpy(net: MLP, layer: int, entry: dict) -> tuple[np.ndarray, np.ndarray]:
    weight_scale, bias_scale = (float(scale) for scale in net.scales(layer))
    return weight_scale * np.asarray(entry["weight"]), bias_scale * np.asarray(entry["bias"])


def _slopes(activation: PiecewiseLinear, layers: list, x: np.ndarray) -> list[np.ndarray]:
    """What multiplies a path where it passes: 1 at the inputs and outputs, the slopes of the neurons between."""
    slopes, s = [np.ones_like(x)], x
    for weight, bias in layers:
        z = s @ weight + bias
        slopes.append(np.where(z > 0, activation.right, activation.left))
        s = slopes[-1] * z
    slopes[-1] = np.ones_like(slopes[-1])
    return slopes
