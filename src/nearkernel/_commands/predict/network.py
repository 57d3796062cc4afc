"""The network of a prediction, as the options ask for it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import nearkernel as nk

from ..options import default_weight_var
from .finite import DEFAULT_WIDTH, Finite
from .options import Options, WideOptions
from .reading.data import LabeledData
from .reading.prepare import Split

_DEFAULT_RIDGE = 0.01


@dataclasses.dataclass(frozen=True)
class HypotheticalNetwork:
    """A network that nobody builds: what would be trained, and how."""

    depth: int
    activation: str
    weight_var: float
    bias_var: float
    algorithm: Any
    training: str  # the algorithm in words
    finite: Finite | None = None  # the network of finite width that is asked about besides, if any
    kind: str = "mlp"

    @classmethod
    def of(cls, options: WideOptions) -> HypotheticalNetwork:
        """What was typed asks for."""
        finite, kind = None, "mlp"
        if isinstance(options, Options):
            kind = options.network
            if options.is_finite:
                finite = Finite(options.order, options.train, options.width or DEFAULT_WIDTH, options.seed)
        algorithm, words = _training(options)
        weight_var = options.weight_var
        if weight_var is None:
            weight_var = default_weight_var(options.activation)
        return cls(
            options.depth, options.activation, weight_var, options.bias_var, algorithm, words, finite, kind
        )

    def build(self, in_shape: tuple[int, ...], out_dim: int) -> nk.MLP | nk.CNN:
        widths = (self.finite.width if self.finite else 1,) * self.depth  # infinite ones do not look at it
        rest: dict[str, Any] = {"weight_var": self.weight_var, "bias_var": self.bias_var}
        if self.kind == "mlp":
            return nk.MLP(in_shape[0], widths, out_dim, self.activation, **rest)
        rest["head"] = "pool" if self.kind == "cnn" else "flatten"
        return nk.CNN(in_shape, widths, out_dim, self.activation, **rest)

    @property
    def words(self) -> str:
        """Its layers in words."""
        what = "hidden" if self.kind == "mlp" else "convolutional"
        return f"{self.depth} {what} {self.activation} layer{'s' * (self.depth > 1)}"

    def in_shape(self, data: LabeledData, split: Split) -> tuple[int, ...]:
        """The shape in which it takes inputs."""
        if self.kind == "mlp":
            return split.x.shape[1:]
        if data.image_shape is None:
            raise ValueError(
                f"--network {self.kind} needs images: an .npz file whose 'x' has shape (n, height, width) or "
                f"(n, height, width, channels), or digits; {data.name} has {data.x.shape[1]} columns."
            )
        if self.depth < 1:
            raise ValueError(f"--network {self.kind} needs --depth 1 or more.")
        return data.image_shape if len(data.image_shape) == 3 else (*data.image_shape, 1)


def _training(options: WideOptions) -> tuple[nk.GradientDescent | nk.GradientFlow | nk.Ridge, str]:
    """The algorithm, and the same in words."""
    if options.algorithm == "gd":
        assert options.lr is not None
        duration = "to the end" if options.steps is None else f"for {options.steps} steps"
        descent = nk.GradientDescent(options.lr, steps=math.inf if options.steps is None else options.steps)
        return descent, f"gradient descent {duration}, learning rate {options.lr:g}"
    if options.algorithm == "ridge":
        strength = _DEFAULT_RIDGE if options.ridge is None else options.ridge
        return nk.Ridge(strength), f"training to the end with weight decay {strength:g}"
    if options.time is None or math.isinf(options.time):
        return nk.GradientFlow(time=math.inf), "gradient flow to the end"
    return nk.GradientFlow(time=options.time), f"gradient flow for a time of {options.time:g}"
