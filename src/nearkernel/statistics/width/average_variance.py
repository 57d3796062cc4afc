r"""How much the average of any function over a layer's neurons varies between networks, to order 1/n.

Given the previous layer, the neurons of a layer are independent with a random variance, $K$ plus a fluctuation of
variance $V/n_-$, where $n_-$ is the width of that layer. So for $O = \frac1n \sum_i f(z_i)$,

$$\operatorname{Var}[O] = \frac{\langle f^2\rangle - \langle f\rangle^2}{n}
+ \left(\frac{d\langle f\rangle}{dK}\right)^2 \frac{V}{n_-}, \qquad
\frac{d\langle f\rangle}{dK} = \frac{\langle f\, (z^2/K - 1)\rangle}{2 K},$$

with averages over $\mathcal{N}(0, K)$. Both terms vanish at large width; the first layer has only the first term.
"""

from collections.abc import Callable

import numpy as np

from ..._base.check import finite_result, numeric, shown, whole
from ..._base.types import ArrayLike
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from .propagation import propagate

_NODES = 200


def average_variance(net: AbstractNetwork, x: ArrayLike, function: Callable, layer: int = 1) -> float:
    r"""The variance over initializations of the mean of `function` over the neurons of a hidden layer, to order 1/n.

    $$\operatorname{Var}\Big[\frac1n \sum_i f(z_i)\Big]
    = \frac{\langle f^2\rangle - \langle f\rangle^2}{n} + \left(\frac{d\langle f\rangle}{dK}\right)^2 \frac{V}{n_-}$$

    with V the four-point vertex of the layer and $n_-$ the width of the previous layer.

    **Arguments:** `net`, an `nk.MLP`; `x` (1, d), one input; `function` of preactivations, (k,) -> (k,); `layer` = 1
    ... number of hidden layers.
    """
    chain = chain_of(net, "average_variance")
    x = chain.inputs(x)
    if len(x) != 1:
        raise ValueError(f"`x` must be one input, (1, d); got {len(x)} inputs.")
    if not callable(function):
        raise TypeError(f"`function` must be a function of preactivations; got {shown(function)}.")
    if whole(layer, "layer", 1) > len(chain.widths):
        raise ValueError(f"`layer` must be at most {len(chain.widths)}, the last hidden layer; got {layer}.")
    at = propagate(chain.flat(), x, order=1)[layer]
    variance = float(at.kernel[0, 0])
    spread = float(at.four_point[0, 0, 0, 0]) / float(at.width)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    values = finite_result(
        numeric(function(np.sqrt(variance) * nodes), "function"), "`function` of neurons is"
    )
    if values.shape != nodes.shape:
        raise ValueError(f"`function` must return one value per neuron, {nodes.shape}; got {values.shape}.")
    mean = weights @ values
    slope = weights @ (values * (nodes**2 - 1)) / (2 * variance)
    return float(weights @ (values - mean) ** 2 / chain.widths[layer - 1] + slope**2 * spread)
