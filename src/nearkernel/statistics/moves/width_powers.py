"""The powers of the width with which layers move in the first step of training.

Of one layer: weights move by their rate, times the derivative by its outputs for gradient descent or times a sign for
Adam; outputs by their multiplier m and the sum over the fan-in of that. Moves of layers below come with it: as they are
in hidden layers, times width x last weights in the outputs. A layer of attention has several such matrices; its scores
move at most as far as its values (divided by the dimension of a head, they hardly move in the first step of gradient
descent, whose derivative by scores is a sum over that dimension with random signs).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...models.layers.base import AbstractLayer
from ...models.networks.maximal_update import MaximalUpdate, fans
from ...models.networks.network import AbstractNetwork

_MULTIPLIERS = {"ntk": 0.5, "standard": 0.0, "mean_field": 1.0}  # m falls with such a power of the fan-in


class _Passed(NamedTuple):
    layer: Any
    matrices: np.ndarray  # (matrices, 3): fan-in, fan-out and rate of each


def powers(model: Any, wider: Any, rates: Any, wider_rates: Any, adam: bool) -> np.ndarray:
    """(layers,) for a model and the same model of twice the width, with trees of learning-rate factors or None."""
    small, large = _passed(model, rates), _passed(wider, wider_rates)
    grown = [np.log2(b.matrices / a.matrices) for a, b in zip(small, large, strict=True)]
    last = -max(0.5, _multiplier(small[-1])) * grown[-1][0, 0]  # of the last weights
    last += 0.5 * np.log2(large[-1].layer.weight_var / small[-1].layer.weight_var)
    last -= 0.5 * isinstance(model, MaximalUpdate)
    found, most = [], -np.inf
    for each, matrices in zip(small, grown, strict=True):
        for before, after, rate in matrices:
            scale = rate + before * (1 - _multiplier(each))
            own = scale if adam else scale - before * _multiplier(each) + after * last
            most = max(own, most if after else most + 1 + last)
        found.append(most)
    return np.round(found, 9) + 0.0  # roots of rates are not exact


def _multiplier(passed: _Passed) -> float:
    return _MULTIPLIERS[getattr(passed.layer, "parametrization", "ntk")]


def _passed(model: Any, rates: Any) -> list[_Passed]:
    """Layers with parameters, their channels and factors, in the order in which they are computed."""
    net: AbstractNetwork = model.net if isinstance(model, MaximalUpdate) else model
    rates = jax.tree.map(lambda _: 1.0, net.parameter_shapes()) if rates is None else rates
    found: list[_Passed] = []

    def leaf(layer: AbstractLayer, own: Any, x: jax.Array) -> jax.Array:
        shape = layer.shape(x.shape[1:])
        if layer.has_params():
            shapes = jax.eval_shape(lambda key: layer.init(key, x.shape[1:]), jax.random.key(0))
            names = [name for name in shapes if name != "bias"]
            matrices = [[*fans(name, shapes[name].shape), float(own[name])] for name in names]
            found.append(_Passed(layer, np.array(matrices, float)))
        return jnp.zeros((1, *shape))

    jax.eval_shape(lambda x: net.layers.run(leaf, rates, x), jax.ShapeDtypeStruct((1, *net.in_shape), float))
    return found
