"""One number that says how strongly a network learns features."""

import numpy as np

from ..base import AbstractModel
from .chain import chain_or_none
from .maximal_update import MaximalUpdate
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
    chain = chain_or_none(model)
    if chain is None:
        raise TypeError(
            "`model` must be an nk.MLP, an nk.Network of Dense and Activation layers (mean-field scaling only in the "
            f"last one), or an nk.Scaled of one; got {type(model).__name__}."
        )
    if not chain.widths:
        return 0.0
    if chain.net.mean_field:
        return 1.0
    return float(1.0 / np.sqrt(chain.net.tuned_width() or chain.widths[-1]))
