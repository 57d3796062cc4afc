"""Networks of the usual kinds, in one line."""

from typing import Any

from ..._base.check import one_of, whole, wholes
from ..containers.branches import Residual
from ..containers.repeat import Repeat
from ..layers.activation import Activation
from ..layers.attention import Attention
from ..layers.base import AbstractLayer
from ..layers.conv import Conv
from ..layers.dense import Dense
from ..layers.embedding import PositionEmbedding
from ..layers.flatten import Flatten
from ..layers.norm import LayerNorm
from ..layers.pool import AvgPool, GlobalAvgPool
from .network import Network


class ResMLP(Network):
    r"""A fully connected residual network: blocks $x + W s(\text{LayerNorm}(x))$ between a first and a last layer.

    **Arguments:** `in_dim`; `width`; `blocks`, number of blocks; `out_dim`; `activation`; `weight_var` and `bias_var`
    of the branches; `norm`, whether each branch begins with layer normalization.
    """

    def __init__(
        self,
        in_dim: int,
        width: int = 512,
        blocks: int = 4,
        out_dim: int = 1,
        activation: Any = "relu",
        weight_var: Any = 1.0,
        bias_var: Any = 0.0,
        norm: bool = True,
    ):
        branch = [Activation(activation), Dense(whole(width, "width", 1), weight_var, bias_var)]
        end = [LayerNorm()] if norm else []
        repeated = Repeat([Residual([*end, *branch])], whole(blocks, "blocks", 1))
        super().__init__(
            (whole(in_dim, "in_dim", 1),),
            [Dense(width, 1.0, bias_var), repeated, *end, Activation(activation), Dense(out_dim)],
        )


class CNN(Network):
    """A convolutional network: convolutions with activations, then pooling or flattening, then a dense layer.

    **Arguments:** `in_shape`, (height, width, channels) or (length, channels); `widths`, channels of each
    convolution; `out_dim`; `activation`; `filter`, side length of the filters; `weight_var`, `bias_var` of the
    convolutions; `padding`, same as `nk.layers.Conv`; `pool`, side length of average pooling after each convolution
    but the last, or None; `head`, "pool" (mean over all positions) or "flatten".
    """

    def __init__(
        self,
        in_shape: Any,
        widths: Any = (128, 128),
        out_dim: int = 1,
        activation: Any = "relu",
        filter: int = 3,
        weight_var: Any = 2.0,
        bias_var: Any = 0.0,
        padding: str = "SAME",
        pool: int | None = None,
        head: str = "pool",
    ):
        in_shape = wholes(in_shape, "in_shape")
        rank = len(in_shape) - 1
        if rank < 1:
            raise ValueError(
                f"`in_shape` must have positions and channels, such as (32, 32, 3); got {in_shape}."
            )
        one_of(head, "head", ("pool", "flatten"))
        side = (whole(filter, "filter", 1),) * rank
        layers: list[AbstractLayer] = []
        for k, width in enumerate(wholes(widths, "widths")):
            if k and pool is not None:
                layers.append(AvgPool(filter=(whole(pool, "pool", 1),) * rank))
            layers += [Conv(width, filter=side, padding=padding, weight_var=weight_var, bias_var=bias_var)]
            layers.append(Activation(activation))
        end: AbstractLayer = GlobalAvgPool() if head == "pool" else Flatten()
        super().__init__(in_shape, [*layers, end, Dense(out_dim)])


class Transformer(Network):
    """A transformer: normalized residual blocks of attention and dense layers, then a mean over positions.

    **Arguments:** `in_shape`, (length, channels); `width`; `blocks`; `heads`; `out_dim`; `activation` of the dense
    layers; `qk_var` of the scores; `embedding`, the variance of position embeddings, or None. It uses attention with
    `scaling="linear"`, which has a deterministic limit.
    """

    def __init__(
        self,
        in_shape: Any,
        width: int = 128,
        blocks: int = 2,
        heads: int = 4,
        out_dim: int = 1,
        activation: Any = "gelu",
        qk_var: Any = 1.0,
        embedding: Any = 1.0,
    ):
        attention = Residual([LayerNorm(), Attention(width, heads, qk_var=qk_var)])
        hidden = [Dense(4 * whole(width, "width", 1)), Activation(activation), Dense(width)]
        places = [] if embedding is None else [PositionEmbedding(embedding)]
        block = Repeat([attention, Residual([LayerNorm(), *hidden])], whole(blocks, "blocks", 1))
        super().__init__(
            in_shape, [Dense(width), *places, block, LayerNorm(), GlobalAvgPool(), Dense(out_dim)]
        )
