"""Networks and their layers: what the public names take. A layer is called in a small network of sequences."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import nearkernel as nk

from ._good import KEY, Call, K, X, key

L = nk.layers
SEQUENCES = np.random.default_rng(1).normal(size=(2, 4, 2))
NETWORK = nk.Network(3, [L.Dense(4, bias_var=0.1), L.Activation("erf"), L.Dense(1)])
NETWORK_PARAMS = NETWORK.init(KEY)


def _used(*layers: Any) -> Any:
    """Outputs of a drawn network, and its tangent kernel, of sequences of length 4 with 2 channels."""
    net = nk.Network((4, 2), [*layers, L.Flatten(), L.Dense(1)])
    jax.eval_shape(net.init, KEY)  # fails where memory would, without any
    return net(net.init(KEY), SEQUENCES), K.NTK(net)(SEQUENCES)


def first(layer: Callable) -> Callable:
    """The layer at the beginning of a network, with these arguments."""
    return lambda **arguments: _used(layer(**arguments))


def later(layer: Callable) -> Callable:
    """The layer after a convolution and an activation."""
    return lambda **arguments: _used(L.Conv(2, 3), L.Activation("erf"), layer(**arguments))


width, weight_var, bias_var = ("whole", 2), ("positive", 1.0), ("positive", 0.1)
branch = ("layers", [L.Conv(2, 3)])
variances = dict(weight_var=weight_var, bias_var=bias_var, parametrization=("choice", "ntk"))
window = dict(filter=("sizes", (2,)), strides=("sizes", (1,)), padding=("choice", "SAME"))
filters = dict(width=width, **window, dilation=("sizes", (1,)), **variances)
pools = dict(**window, normalize_edges=("truth", False))

CALLS = [
    Call(
        "Network",
        lambda in_shape, layers: K.NTK(nk.Network(in_shape, layers))(X),
        dict(in_shape=("sizes", (3,)), layers=("layers", [L.Dense(4), L.Activation("erf"), L.Dense(1)])),
    ),
    Call("Network.init", NETWORK.init, dict(key=key)),
    Call(
        "Network.__call__",
        NETWORK.__call__,
        dict(params=("call params", NETWORK_PARAMS), x=("inputs", X), key=("optional key", KEY)),
    ),
    Call("Dense", first(L.Dense), dict(width=width, **variances)),
    Call("Conv", first(L.Conv), filters),
    Call("LocallyConnected", first(L.LocallyConnected), filters),
    Call(
        "Attention",
        later(L.Attention),
        dict(
            width=width,
            heads=("whole", 2),
            head_dim=("whole", 3),
            scaling=("choice", "linear"),
            mechanism=("choice", "softmax"),
            qk_var=("positive", 1.0),
            ov_var=("positive", 1.0),
            bias_var=bias_var,
            parametrization=("choice", "standard"),
        ),
    ),
    Call(
        "Activation",
        lambda function: _used(L.Conv(2, 3), L.Activation(function)),
        dict(function=("activation", "erf")),
    ),
    Call("AvgPool", later(L.AvgPool), pools),
    Call("SumPool", later(L.SumPool), pools),
    Call(
        "PositionEmbedding", later(L.PositionEmbedding), dict(var=("positive", 1.0), decay=("positive", 0.5))
    ),
    Call("LayerNorm", later(L.LayerNorm), dict(axes=("choice", "channel"), eps=("positive", 1e-6))),
    Call("Dropout", later(L.Dropout), dict(keep=("positive", 0.5))),
    Call("Residual", later(L.Residual), dict(layers=branch)),
    Call("Sum", later(L.Sum), dict(branches=("branches", [[L.Conv(2, 3)], []]))),
    Call("Concat", later(L.Concat), dict(branches=("branches", [[L.Conv(2, 3)], []]))),
    Call("Product", later(L.Product), dict(branches=("branches", [[L.Conv(2, 3)], []]))),
    Call("Repeat", later(L.Repeat), dict(layers=branch, count=("whole", 2))),
]
