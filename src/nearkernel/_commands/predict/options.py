"""What the user asked for, checked, and the imagined network that follows from it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import nearkernel as nk

from ..options import default_weight_var
from .finite import DEFAULT_WIDTH, Finite
from .job import Network

_NEEDS = {"time": "flow", "lr": "gd", "steps": "gd", "ridge": "ridge"}  # option: the algorithm it belongs to
_DEFAULT_RIDGE = 0.01
MOST_ROWS, MOST_NETWORK_ROWS = 50_000, 1500  # unless --max-train says otherwise


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of `nearkernel predict`; None where nothing was typed and the default depends on another option."""

    data: str
    target: str | None
    drop: tuple[str, ...]
    task: str
    test_fraction: float
    max_train: int | None
    seed: int
    depth: int
    activation: str
    weight_var: float | None
    bias_var: float
    algorithm: str
    time: float | None
    lr: float | None
    steps: int | None
    ridge: float | None
    order: int | None = None
    train: bool = False
    width: int | None = None
    network: str = "mlp"
    strict: bool = False
    balanced: bool = False
    save: str | None = None
    curve: bool = False
    other_targets: tuple[str, ...] = ()  # of the same run: not among the features

    def __post_init__(self) -> None:
        try:
            nk.activations.get(self.activation)
        except ValueError as error:
            raise ValueError(str(error).replace("`activation`", "--activation")) from error
        for name in ("weight_var", "bias_var", "time", "lr", "ridge", "test_fraction"):
            value = getattr(self, name)
            if value is not None and (math.isnan(value) or (math.isinf(value) and name != "time")):
                raise ValueError(f"--{name.replace('_', '-')} {value}: give a finite number.")
        for name in ("weight_var", "lr"):
            if getattr(self, name) == 0:
                raise ValueError(f"--{name.replace('_', '-')} 0: give a number above 0.")
        for name, algorithm in _NEEDS.items():
            if getattr(self, name) is not None and self.algorithm != algorithm:
                raise ValueError(f"--{name} belongs to --algorithm {algorithm}, not {self.algorithm}.")
        if self.width is not None and not self._is_finite:
            raise ValueError(
                f"--width {self.width} belongs to a network of finite width: give --order or --train as well."
            )
        if self.train and self.algorithm == "ridge":
            raise ValueError("--train cannot be combined with --algorithm ridge: use flow or gd.")
        if self.algorithm == "gd" and self.lr is None:
            raise ValueError("--algorithm gd needs a learning rate: give --lr, e.g. --lr 0.0001.")

    @property
    def tunes(self) -> bool:
        """Whether a learning curve is free to choose the ridge, or the time of flow."""
        return self.algorithm != "gd" and self.time is None and self.ridge is None

    @property
    def most_rows(self) -> int:
        """Training rows, at most."""
        return MOST_ROWS if self.max_train is None else self.max_train

    @property
    def most_network_rows(self) -> int:
        """Training rows of the infinitely wide networks, at most."""
        return MOST_NETWORK_ROWS if self.max_train is None else self.max_train

    def imagined(self) -> Network:
        algorithm, words = self._training()
        weight_var = default_weight_var(self.activation) if self.weight_var is None else self.weight_var
        finite = (
            Finite(self.order, self.train, self.width or DEFAULT_WIDTH, self.seed)
            if self._is_finite
            else None
        )
        variances = weight_var, self.bias_var
        return Network(self.depth, self.activation, *variances, algorithm, words, finite, self.network)

    @property
    def _is_finite(self) -> bool:
        return self.order is not None or self.train

    def _training(self) -> tuple[Any, str]:
        """The algorithm, and the same in words."""
        if self.algorithm == "gd":
            assert self.lr is not None
            duration = "to the end" if self.steps is None else f"for {self.steps} steps"
            steps = math.inf if self.steps is None else self.steps
            return nk.GradientDescent(
                self.lr, steps=steps
            ), f"gradient descent {duration}, learning rate {self.lr:g}"
        if self.algorithm == "ridge":
            strength = _DEFAULT_RIDGE if self.ridge is None else self.ridge
            return nk.Ridge(strength), f"training to the end with weight decay {strength:g}"
        if self.time is None or math.isinf(self.time):
            return nk.GradientFlow(time=math.inf), "gradient flow to the end"
        return nk.GradientFlow(time=self.time), f"gradient flow for a time of {self.time:g}"
