"""A network with the most linear pieces that its size allows."""

import numpy as np

from ..._base.check import whole
from ...models.networks.mlp import MLP


def sawtooth(levels: int) -> tuple[MLP, list[dict[str, np.ndarray]]]:
    r"""A ReLU network of $2 k$ neurons, $k$ = `levels`, with $2^k$ linear pieces on [0, 1]: the network and parameters.

    The tent $h(x) = 2\, \text{relu}(x) - 4\, \text{relu}(x - \frac12)$ maps [0, 1] onto itself twice, up and down.
    Applied $k$ times it has $2^{k-1}$ peaks, slopes of $\pm 2^k$, and bends at all multiples of $2^{-k}$, exact in
    floating point.
    """
    levels = whole(levels, "levels", 1, most=1000)
    net = MLP(1, (2,) * levels, 1, "relu", parametrization="standard")
    params = [{"weight": np.ones((1, 2)), "bias": np.array([0.0, -0.5])}]
    for _ in range(levels - 1):
        params.append({"weight": np.array([[2.0, 2.0], [-4.0, -4.0]]), "bias": np.array([0.0, -0.5])})
    return net, [*params, {"weight": np.array([[2.0], [-4.0]]), "bias": np.zeros(1)}]
