"""What is typed after `nearkernel predict`, checked."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Literal

from ..._base.settings import flag
from .. import options as shared
from ..declared import option
from ..options import TRAINING, activation_of
from .reading.sources import check_save, check_source

_NEEDS = {"time": "flow", "lr": "gd", "steps": "gd", "ridge": "ridge"}  # option: the algorithm it belongs to
MOST_ROWS, MOST_NETWORK_ROWS = 50_000, 1500  # unless --max-train says otherwise
FINITE = "A network of finite width"


@dataclasses.dataclass(frozen=True)
class WideOptions:
    """The data, an infinitely wide network and its training; None where the default depends on another option."""

    data: shared.DataSet
    target: shared.Target = None
    drop: shared.Drop = ()
    task: shared.Task = "auto"
    depth: shared.Depth = 3
    activation: shared.Activation = "relu"
    weight_var: shared.WeightVar = None
    bias_var: shared.BiasVar = 0.1
    algorithm: shared.Algorithm = "flow"
    time: shared.Time = None
    lr: Annotated[
        float | None,
        option(
            "gd: learning rate, for the loss 1/2 sum (z - y)^2 of the standardized target.", TRAINING, min=0
        ),
    ] = None
    steps: shared.Steps = None
    ridge: shared.RidgeStrength = None
    other_targets: tuple[str, ...] = ()  # of the same run: not among the features

    def __post_init__(self) -> None:
        activation_of(self.activation)
        for name in ("weight_var", "bias_var", "time", "lr", "ridge"):
            self._require_finite(name)
        for name in ("weight_var", "lr"):
            if getattr(self, name) == 0:
                raise ValueError(f"{flag(name)} 0: give a number above 0.")
        for name, algorithm in _NEEDS.items():
            if getattr(self, name) is not None and self.algorithm != algorithm:
                raise ValueError(f"--{name} belongs to --algorithm {algorithm}, not {self.algorithm}.")
        if self.algorithm == "gd" and self.lr is None:
            raise ValueError("--algorithm gd needs a learning rate: give --lr, e.g. --lr 0.0001.")

    def _require_finite(self, name: str) -> None:
        value = getattr(self, name)
        if value is not None and (math.isnan(value) or (math.isinf(value) and name != "time")):
            raise ValueError(f"{flag(name)} {value}: give a finite number.")

    @property
    def tunes(self) -> bool:
        """Whether a learning curve is free to choose the ridge, or the time of flow."""
        return self.algorithm != "gd" and self.time is None and self.ridge is None


@dataclasses.dataclass(frozen=True)
class Options(WideOptions):
    test_fraction: Annotated[
        float, option("Fraction of the rows held out for testing.", min=0.01, max=0.99)
    ] = 0.2
    max_train: Annotated[
        int | None,
        option(
            "Maximum number of training rows. [default: 50000; 1500 for NNGP and NTK, whose time is cubic]",
            min=2,
        ),
    ] = None
    strict: Annotated[bool, option("Stop if the table needs repair, and list the problems.")] = False
    balanced: Annotated[bool, option("Classes: weight rare classes as much as frequent ones.")] = False
    save: Annotated[Path | None, option("File for the model, e.g. model.nk; `nearkernel apply` uses it.")] = (
        None
    )
    seed: shared.Seed = 0
    network: Annotated[
        Literal["mlp", "cnn", "cnn-flatten"],
        option(
            "mlp: fully connected. For images (digits, or .npz with x (n, height, width[, channels])) also cnn: "
            "convolutions, then the mean over the image; cnn-flatten: convolutions, then a dense layer."
        ),
    ] = "mlp"
    order: Annotated[
        int | None,
        option(
            "Also predict one network of finite width, to this order. [default: off]", FINITE, min=0, max=2
        ),
    ] = None
    train: Annotated[bool, option("Also train that network, and compare.", FINITE)] = False
    width: Annotated[
        int | None,
        option("Neurons per hidden layer of that network. [default: 512]", FINITE, min=1, max=100_000),
    ] = None
    curve: Annotated[
        bool, option("Also predict how the error would fall with more rows (see nearkernel curve).")
    ] = False

    def __post_init__(self) -> None:
        # First what needs no import of JAX.
        check_source(self.data)
        check_save(self.save)
        super().__post_init__()
        self._require_finite("test_fraction")
        if self.width is not None and not self.is_finite:
            raise ValueError(
                f"--width {self.width} belongs to a network of finite width: give --order or --train as well."
            )
        if self.train and self.algorithm == "ridge":
            raise ValueError("--train cannot be combined with --algorithm ridge: use flow or gd.")

    @property
    def is_finite(self) -> bool:
        """Whether a network of finite width is asked about besides."""
        return self.order is not None or self.train

    @property
    def most_rows(self) -> int:
        """Training rows, at most."""
        return MOST_ROWS if self.max_train is None else self.max_train

    @property
    def most_network_rows(self) -> int:
        """Training rows of the infinitely wide networks, at most."""
        return MOST_NETWORK_ROWS if self.max_train is None else self.max_train
