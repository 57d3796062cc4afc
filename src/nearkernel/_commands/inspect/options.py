"""What is typed after `nearkernel inspect`, checked."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

from ..completion import data_sets
from ..declared import argument, option
from ..options import NETWORK, TRAINING, Drop, Seed

_NETWORK = (
    "FILE.py:NAME, a PyTorch module, a network of Flax, Equinox or Keras, a pair (model, params), or a function that "
    "returns one. The file is run."
)
_DATA = "digits, diabetes, ... or a .csv, .parquet or .npz file."
_LR = (
    "Learning rate of gradient descent; for a mean over rows, divide it by their number. "
    "[default: 1/largest eigenvalue]"
)


@dataclasses.dataclass(frozen=True)
class Options:
    network: Annotated[str, argument(_NETWORK)]
    data: Annotated[str, argument(_DATA, autocompletion=data_sets)]
    target: Annotated[str | None, option("Column of the data to predict.")] = None
    drop: Drop = ()
    shape: Annotated[str | None, option("Shape of one input, such as 1,8,8. [default: a row]", NETWORK)] = (
        None
    )
    trainable: Annotated[
        str | None,
        option(
            "Parameters of a PyTorch module to train, a pattern such as 'head.*'. [default: all]", NETWORK
        ),
    ] = None
    standardize: Annotated[bool, option("Standardize inputs to mean 0 and variance 1. [default: off]")] = (
        False
    )
    train: Annotated[int, option("Number of training rows.", min=2, max=5000)] = 50
    new: Annotated[int, option("Number of other rows to predict.", min=1, max=100_000)] = 100
    loss: Annotated[Literal["squared", "cross_entropy"], option("The loss, summed over rows.", TRAINING)] = (
        "squared"
    )
    lr: Annotated[float | None, option(_LR, TRAINING, min=0)] = None
    steps: Annotated[int, option("Number of steps.", TRAINING, min=1, max=1_000_000)] = 100
    pieces: Annotated[
        int, option("Maximum number of times the network is linearized during training.", min=1, max=50)
    ] = 1
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ValueError(f"--lr must be positive and finite; got {self.lr}.")
        self.in_shape  # noqa: B018  refused before the data are read

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        if self.shape is None:
            return None
        parts = self.shape.replace("x", ",").split(",")
        if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
            raise ValueError(f"--shape must be numbers such as 1,8,8; got {self.shape!r}.")
        return tuple(map(int, parts))
