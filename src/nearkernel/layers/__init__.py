"""Layers that networks are made of: `nk.Network(in_shape, [layers.Conv(64, (3, 3)), ...])`."""

from ..models._activation import Activation as Activation
from ..models._attention import Attention as Attention
from ..models._branches import Concat as Concat
from ..models._branches import Product as Product
from ..models._branches import Residual as Residual
from ..models._branches import Sum as Sum
from ..models._conv import Conv as Conv
from ..models._conv import LocallyConnected as LocallyConnected
from ..models._dense import Dense as Dense
from ..models._embedding import PositionEmbedding as PositionEmbedding
from ..models._flatten import Dropout as Dropout
from ..models._flatten import Flatten as Flatten
from ..models._flatten import Identity as Identity
from ..models._layer import AbstractLayer as AbstractLayer
from ..models._layer import AbstractWideLayer as AbstractWideLayer
from ..models._norm import LayerNorm as LayerNorm
from ..models._pool import AvgPool as AvgPool
from ..models._pool import GlobalAvgPool as GlobalAvgPool
from ..models._pool import GlobalSumPool as GlobalSumPool
from ..models._pool import SumPool as SumPool
from ..models._repeat import Repeat as Repeat
