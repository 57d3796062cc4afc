"""A relu network as a sum over the paths from its inputs to its outputs."""

import numpy as np

from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...models.base import Params
from ...models.networks.chain import Chain, chain_of
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params


def homogeneous(net: AbstractNetwork, verb: str, what: str) -> tuple[Chain, PiecewiseLinear]:
    """`net` and its activation, if that is homogeneous (relu, leaky relu, abs, linear), on which `what` rests."""
    chain = chain_of(net, verb, mean_field=True)
    activation = chain.mlp().activation
    if not isinstance(activation, PiecewiseLinear):
        name = getattr(activation, "name", type(activation).__name__.lower())
        raise ValueError(f"{what} is known only for relu networks, but `net` has the activation {name}.")
    return chain, activation


def without_biases(net: AbstractNetwork, verb: str, what: str) -> tuple[Chain, PiecewiseLinear]:
    """The same, if also all biases are 0."""
    chain, activation = homogeneous(net, verb, what)
    biased = [stage.bias_var for stage in chain.stages if stage.bias_var]
    if biased:
        raise ValueError(
            f"`bias_var` must be 0: {what[0].lower()}{what[1:]} is known only without biases; got {biased[0]:g}."
        )
    return chain, activation


@in_float64
def path_sum(net: AbstractNetwork, params: Params, x: ArrayLike) -> np.ndarray:
    r"""The outputs of a ReLU network, summed path by path.

    $$z_q = \sum_{p \to i_1 \to \cdots \to i_L \to q} x_p W_{p i_1} d_{i_1} W_{i_1 i_2} \cdots d_{i_L} W_{i_L q}$$

    where $d_i$ is the slope of neuron $i$ at this input, 1 or 0 for ReLU. A path may also begin at a bias. The sum
    equals `net(params, x)`. The number of paths is the product of the widths, so use it only for tiny networks.

    **Arguments:** `net` with a ReLU-like activation; `params` of the net; `x` (n, d).

    **Returns:** (n, out).
    """
    chain, activation = homogeneous(net, "path_sum", "The sum over paths")
    own = chain.entries(checked_params(net, params))
    x = chain.inputs(x)
    count = int(np.prod([float(size) for size in chain.sizes]))
    require_fits(16 * count * len(x), f"a sum over {count} paths for {len(x)} inputs", "use a tiny network")
    layers = [stage.affine(entry) for stage, entry in zip(chain.stages, own, strict=True)]
    total, slopes = 0.0, _slopes(activation, layers, x)
    for start in range(len(layers) + 1):  # 0: at an input; l: at a bias of layer l
        paths = x if start == 0 else np.broadcast_to(layers[start - 1][1], slopes[start].shape)
        if not paths.any():
            continue
        for (weight, _), slope in zip(layers[start:], slopes[start:], strict=False):
            # Times the neurons where the path enters.
            through = paths * slope.reshape(len(x), *(1,) * (paths.ndim - 2), -1)
            paths = through[..., None] * weight
        total = total + paths.reshape(len(x), -1, chain.out_dim).sum(axis=1)
    return np.asarray(total)


def _slopes(activation: PiecewiseLinear, layers: list, x: np.ndarray) -> list[np.ndarray]:
    """What multiplies a path where it passes: 1 at the inputs and outputs, the slopes of the neurons between."""
    slopes, s = [np.ones_like(x)], x
    for weight, bias in layers:
        z = s @ weight + bias
        slopes.append(np.where(z > 0, activation.right, activation.left))
        s = slopes[-1] * z
    slopes[-1] = np.ones_like(slopes[-1])
    return slopes
