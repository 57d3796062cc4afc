"""One number that says how strongly a network learns features."""

import itertools

import numpy as np

from ..base import AbstractModel
from ..layers.activation import Activation
from ..layers.dense import Dense
from ..layers.flatten import Flatten
from .maximal_update import MaximalUpdate
from .mlp import MLP
from .network import Network
from .scaled import Scaled


def richness(model: AbstractModel) -> float:
    r"""The richness $\gamma_0$ of `model`: how far its features move in training, for targets of order 1.

    | model | richness |
    |---|---|
    | `MLP`, "ntk" or "standard" | $1 / \sqrt{\text{width of the last hidden layer}}$ |
    | `MLP`, "mean_field" | 1 |
    | `MLP`, "mup" | $1 / \sqrt{\text{base width}}$ |
    | `Network` of `Dense` and `Activation` layers | same as the `MLP` whose last layer has the same parametrization |
    | `MaximalUpdate(net)` | the richness of `net` at the base width |
    | `Scaled(net, alpha)` | the richness of `net`, divided by $\alpha$ |

    Below 0.1 a network is nearly lazy: kernels and their corrections predict it. At 1 it learns features at any
    width. Targets that are c times larger make a network c times richer. A network without hidden layers has richness
    0.
    """
    if isinstance(model, Scaled):
        return richness(model.model) / float(model.alpha)
    if isinstance(model, MaximalUpdate):
        return richness(model.net) * float(np.sqrt(model.ratio))
    widths = hidden_widths(model)
    if widths is None:
        raise TypeError(
            "`model` must be an nk.MLP, an nk.Network of Dense and Activation layers (mean-field scaling only in the "
            f"last one), or an nk.Scaled of one; got {type(model).__name__}."
        )
    if not widths:
        return 0.0
    kind = model.parametrization if isinstance(model, MLP) else _chain(model)[-1].parametrization
    if kind == "mean_field":
        return 1.0
    return float(1.0 / np.sqrt(model.base_width if isinstance(model, MLP) and kind == "mup" else widths[-1]))


def hidden_widths(model: AbstractModel) -> tuple[int, ...] | None:
    """Of a network of dense layers, one after the other; None of any other model."""
    if isinstance(model, MLP):
        return model.widths
    dense = _chain(model)
    return tuple(layer.width for layer in dense[:-1]) if dense else None


def has_kinked_activation(model: AbstractModel) -> bool:
    """Whether an activation of a network of dense layers has a kink."""
    if isinstance(model, MLP):
        return not all(each.smooth for each in model.activations)
    layers = model.layers.layers if isinstance(model, Network) else []
    return not all(each.function.smooth for each in layers if isinstance(each, Activation))


def _chain(model: AbstractModel) -> list[Dense]:
    """The dense layers of a network that has no others, apart from activations; none if it is not one."""
    if not isinstance(model, Network):
        return []
    layers = list(itertools.dropwhile(lambda each: isinstance(each, Flatten), model.layers.layers))
    dense = [layer for layer in layers if isinstance(layer, Dense)]
    plain = all(isinstance(layer, Dense | Activation) for layer in layers) and isinstance(layers[-1], Dense)
    return dense if plain and all(layer.parametrization != "mean_field" for layer in dense[:-1]) else []
