"""What the user asked for, checked, and the inputs that the network will see."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

import nearkernel as nk

from ...activations import AbstractActivation
from ...results import PiecewiseLinear
from . import transformer
from .blocks import BLOCKS, Point, block_point, plain_point

_MOST_ROWS = 1000  # of the data, for the largest eigenvalue of their kernel matrix
FRAMEWORKS = {"torch": ("PyTorch",), "flax": ("Flax",), "keras": ("Keras",)}
_TOKENS = 64  # of a transformer, if none are given


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of `nearkernel advise`."""

    activation: str
    depth: int
    width: int
    data: str | None
    target: str | None
    drop: tuple[str, ...]
    seed: int
    tolerance: float | None = None
    block: str = "plain"
    train: str | None = None
    tuned_width: int | None = None
    tokens: int | None = None
    framework: str | None = None
    seeds: int = 5

    def __post_init__(self) -> None:
        try:
            nk.activations.get(self.activation)
        except ValueError as error:
            raise ValueError(str(error).replace("`activation`", "--activation")) from error
        for name in ("target", "drop"):
            if getattr(self, name) and self.data is None:
                raise ValueError(f"--{name} belongs to --data: give the file that has this column.")
        if self.train is not None and self.data is None:
            raise ValueError("--train needs --data, the rows on which networks are trained.")
        if self.train is None and self.seeds != Options.seeds:
            raise ValueError(f"--seeds {self.seeds} is for --train: give --train gd or --train adam, too.")
        if self.tokens is not None and not BLOCKS[self.block].attends:
            raise ValueError(f"--tokens is for --block transformer; got --block {self.block}.")
        if self.data is not None and BLOCKS[self.block].attends and self.tokens is None:
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
        if self.tolerance is not None and not (self.kinked or self._function.smooth):
            raise ValueError(
                "--tolerance is for smooth activations (tanh, gelu, silu, ...) and the relu family; got "
                f"--activation {self.activation}."
            )

    @property
    def kinked(self) -> bool:
        """Whether the activation is of the relu family, with a kink."""
        return isinstance(self._function, PiecewiseLinear) and not self._function.smooth

    @property
    def _function(self) -> AbstractActivation:
        return nk.activations.get(self.activation)

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
        if self.block == "plain":
            return plain_point(self.activation)
        if BLOCKS[self.block].attends:
            return transformer.point(self.activation, self.depth, self.sequence)
        return block_point(BLOCKS[self.block], self.activation, self.depth)

    def inputs(self) -> Inputs:
        """Standardized rows of --data, or what standardized rows have in common: a mean square of 1."""
        if self.data is None:
            return Inputs(None, self.width, "", ())
        from ..predict.reading.data import load
        from ..predict.reading.prepare import split

        data = load(self.data, self.target, "auto", self.drop)
        rows = split(data, 0.01 if len(data.x) > 200 else 0.25, _MOST_ROWS, self.seed)
        count, features = rows.x.shape
        name = f"{data.name}: {count} rows of {features} features, {rows.input_scaling}"
        if not BLOCKS[self.block].attends:
            return Inputs(rows.x, features, name, data.notes, rows.y, classes=bool(data.classes))
        if features % self.sequence:
            raise ValueError(
                f"--tokens {self.sequence}: rows of {features} features cannot be cut into {self.sequence} "
                f"equal parts; choose a divisor of {features}."
            )
        cut = rows.x.reshape(count, self.sequence, -1)
        name += f", cut into {self.sequence} tokens of {cut.shape[2]}"
        return Inputs(None, cut.shape[2], name, data.notes, rows.y, cut, bool(data.classes))


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Rows (n, d) or None, how many features they have, words on where they come from, and their targets.

    Rows that are cut into tokens are `sequences` (n, tokens, d): learning rates are for the worst of all.
    """

    rows: np.ndarray | None
    in_dim: int
    name: str
    notes: tuple[str, ...]
    targets: np.ndarray | None = None  # (n, out)
    sequences: np.ndarray | None = None
    classes: bool = False  # whether targets are one column per class

    @property
    def examples(self) -> np.ndarray | None:
        """What networks are trained on."""
        return self.rows if self.sequences is None else self.sequences

    @property
    def size(self) -> float:
        """Mean square of a feature."""
        return 1.0 if self.examples is None else float(np.mean(self.examples**2))

    def spread_rows(self, most: int) -> np.ndarray:
        """Where to find at most so many rows that differ, spread over all of them in order."""
        assert self.rows is not None
        rows, first = np.unique(self.rows, axis=0, return_index=True)
        return first[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]
