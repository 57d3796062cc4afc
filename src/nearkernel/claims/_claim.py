"""What a claim is: a sentence that can be wrong, with the experiment that would show it."""

import abc
import dataclasses
import inspect
import math
import textwrap
import typing
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._base.settings import Settings, setting
from ._drawing import Figure
from ._erratum import Erratum
from ._fingerprint import fingerprint
from ._row import Row


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run found: `rows` decide the verdict; `data`, columns of numbers, are drawn and written as CSV."""

    rows: tuple[Row, ...]
    data: Mapping[str, np.ndarray]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    @property
    def verdict(self) -> str:
        return "confirmed" if self.ok else "refuted"


@typing.dataclass_transform(frozen_default=True, field_specifiers=(setting,))
@dataclasses.dataclass(frozen=True)
class Claim(Settings, abc.ABC):
    """A claim with its settings, which are its fields. The docstring of a subclass is the statement.

    A subclass is a frozen dataclass. It declares a `figure`, or draws by itself in `draw`.
    """

    statement: ClassVar[str]  # one sentence
    source: ClassVar[str]  # document and topic
    formula: ClassVar[str]  # plain text
    erratum: ClassVar[Erratum | None] = None
    figure: ClassVar[Figure]

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True)(cls)
        cls.statement = " ".join((cls.__doc__ or "").split())

    @abc.abstractmethod
    def run(self, seed: int) -> Result:
        """The experiment. The same settings and seed give the same numbers."""

    def draw(self, axes: Any, result: Result) -> None:
        """The figure, on Matplotlib axes, from a result's data."""
        self.figure.draw(axes, result.data)

    @classmethod
    def topic(cls) -> str:
        return cls.__module__.split(".")[-2].replace("_", " ")

    @classmethod
    def told_erratum(cls) -> str:
        """The erratum in words, or nothing."""
        return "" if cls.erratum is None else str(cls.erratum)

    def code(self) -> str:
        """Python that makes the same numbers, and the experiment itself."""
        chosen = ", ".join(f"{name}={value!r}" for name, value in self.values().items())
        call = (
            f"from {type(self).__module__} import {type(self).__name__}\n\n"
            f"result = {type(self).__name__}({chosen}).run(seed=0)\n"
            'print(result.verdict, *(row.told for row in result.rows), sep="\\n")\n'
        )
        return f"{call}\n# The experiment:\n\n{textwrap.dedent(inspect.getsource(type(self).run))}"

    @classmethod
    def fingerprint(cls) -> str:
        """A hash of the source that decides numbers and verdict."""
        return fingerprint(Path(inspect.getfile(cls)), cls.__name__)


def generator(seed: int, *words: str) -> np.random.Generator:
    """Random numbers of a run; other `words`, other numbers."""
    return np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])


def sem(values: Any) -> float:
    """The standard error of the mean of independent `values`."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def slope(x: Any, y: Any) -> float:
    """The power of x that y follows: a straight line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(np.abs(y)), 1)[0])
