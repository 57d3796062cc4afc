"""What is typed after `nearkernel advise`, checked."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Annotated, Literal

from .. import options as shared
from ..completion import data_sets
from ..declared import option
from ..options import NETWORK, activation_of

if TYPE_CHECKING:
    from .blocks import Point

FRAMEWORKS = {"torch": ("PyTorch",), "flax": ("Flax",), "keras": ("Keras",)}
_TOKENS = 64  # of a transformer, if none are given

_BLOCK = (
    "Type of the hidden layers: plain, W s(z); residual, z + W s(z); prenorm, z + W s(LayerNorm(z)); normalized, "
    "W s(LayerNorm(z)); transformer, z + Attention(LayerNorm(z)), then z + W s(V LayerNorm(z))."
)
_TOKENS_HELP = (
    "Number of tokens in a transformer's input; rows of --data are cut into this many equal parts. "
    "[default: 64]"
)
_TOLERANCE = (
    "Report the width above which networks trained on a few rows of --data are this close to infinite width (mean in "
    "standard deviations, variance relative)."
)
_TRAIN = (
    "Train small networks on rows of --data from each initialization, He's and the frameworks' defaults included, by "
    "gradient descent (gd) or Adam, and compare them on test rows."
)
_TUNED_WIDTH = (
    "Width at which a learning rate was tuned: report how maximal updates (muP) carry it over to --width, for gradient "
    "descent and Adam, with code."
)
_DATA = "Training inputs: digits, diabetes, ... or a .csv, .parquet or .npz file."


@dataclasses.dataclass(frozen=True)
class Options:
    activation: shared.Activation = "relu"
    depth: shared.Depth = 20
    width: Annotated[int, option("Neurons per hidden layer.", NETWORK, min=1, max=100_000)] = 512
    block: Annotated[
        Literal["plain", "residual", "prenorm", "normalized", "transformer"], option(_BLOCK, NETWORK)
    ] = "plain"
    tokens: Annotated[int | None, option(_TOKENS_HELP, NETWORK, min=2, max=1024)] = None
    data: Annotated[str | None, option(_DATA, autocompletion=data_sets)] = None
    target: Annotated[str | None, option("Column of --data to predict.")] = None
    drop: shared.Drop = ()
    tolerance: Annotated[float | None, option(_TOLERANCE, min=1e-9)] = None
    train: Annotated[Literal["gd", "adam"] | None, option(_TRAIN)] = None
    seeds: Annotated[
        int, option("Networks that --train trains from each initialization.", min=2, max=1000)
    ] = 5
    framework: Annotated[
        Literal["torch", "flax", "keras"] | None, option("Print code for this framework only. [default: all]")
    ] = None
    tuned_width: Annotated[int | None, option(_TUNED_WIDTH, min=1, max=100_000)] = None
    seed: shared.Seed = 0

    def __post_init__(self) -> None:
        activation_of(self.activation)
        for name in ("target", "drop"):
            if getattr(self, name) and self.data is None:
                raise ValueError(f"--{name} belongs to --data: give the file that has this column.")
        if self.train is not None and self.data is None:
            raise ValueError("--train needs --data, the rows on which networks are trained.")
        if self.train is None and self.seeds != Options.seeds:
            raise ValueError(f"--seeds {self.seeds} is for --train: give --train gd or --train adam, too.")
        if self.tokens is not None and not self.attends:
            raise ValueError(f"--tokens is for --block transformer; got --block {self.block}.")
        if self.data is not None and self.attends and self.tokens is None:
            raise ValueError(
                "--data has rows, --block transformer needs sequences: give --tokens, into how many equal parts each "
                "row is cut, e.g. --tokens 8 for 64 features."
            )
        if self.tolerance is not None and self.data is None:
            raise ValueError("--tolerance needs --data, the rows on which networks are trained.")
        if self.tolerance is not None and self.block != "plain":
            raise ValueError(
                f"--tolerance is for --block plain: the order 1/width of {self.block} networks is not known."
            )
        if self.tolerance is not None and not (self.kinked or activation_of(self.activation).smooth):
            raise ValueError(
                "--tolerance is for smooth activations (tanh, gelu, silu, ...) and the relu family; got "
                f"--activation {self.activation}."
            )

    @property
    def kinked(self) -> bool:
        """Whether the activation is of the relu family, with a kink."""
        from ...results import PiecewiseLinear

        function = activation_of(self.activation)
        return isinstance(function, PiecewiseLinear) and not function.smooth

    @property
    def attends(self) -> bool:
        """Whether blocks attend to the tokens of a sequence."""
        from .blocks import BLOCKS

        return BLOCKS[self.block].attends

    @property
    def frameworks(self) -> tuple[str, ...]:
        """Those whose code is printed."""
        return FRAMEWORKS[self.framework] if self.framework else sum(FRAMEWORKS.values(), ())

    @property
    def sequence(self) -> int:
        """Tokens of one input of a transformer."""
        return self.tokens or _TOKENS

    @functools.cached_property
    def critical(self) -> Point:
        """The initialization to advise; where layers are plain, an activation without a critical point is refused."""
        from . import transformer
        from .blocks import BLOCKS, block_point, plain_point

        if self.block == "plain":
            return plain_point(self.activation)
        if self.attends:
            return transformer.point(self.activation, self.depth, self.sequence)
        return block_point(BLOCKS[self.block], self.activation, self.depth)
