"""Layers that networks are made of: `nk.Network(in_shape, [layers.Conv(64, (3, 3)), ...])`."""

from typing import TYPE_CHECKING

from ._base.rooms import public as _public

if TYPE_CHECKING:
    from .models.containers.branches import Concat as Concat
    from .models.containers.branches import Product as Product
    from .models.containers.branches import Residual as Residual
    from .models.containers.branches import Sum as Sum
    from .models.containers.repeat import Repeat as Repeat
    from .models.layers.activation import Activation as Activation
    from .models.layers.attention import Attention as Attention
    from .models.layers.base import AbstractLayer as AbstractLayer
    from .models.layers.base import AbstractWideLayer as AbstractWideLayer
    from .models.layers.conv import Conv as Conv
    from .models.layers.conv import LocallyConnected as LocallyConnected
    from .models.layers.dense import Dense as Dense
    from .models.layers.embedding import PositionEmbedding as PositionEmbedding
    from .models.layers.flatten import Dropout as Dropout
    from .models.layers.flatten import Flatten as Flatten
    from .models.layers.flatten import Identity as Identity
    from .models.layers.norm import LayerNorm as LayerNorm
    from .models.layers.pool import AvgPool as AvgPool
    from .models.layers.pool import GlobalAvgPool as GlobalAvgPool
    from .models.layers.pool import GlobalSumPool as GlobalSumPool
    from .models.layers.pool import SumPool as SumPool
else:
    __getattr__, __dir__ = _public(__name__, __file__)
