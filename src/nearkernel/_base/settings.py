"""Settings as fields of a frozen class: a line each makes its check, its command line flag, its control on a page."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

from .spelling import nearest

Points = tuple[tuple[float, float], ...]


def flag(name: str) -> str:
    """How a setting is typed."""
    return "--" + name.replace("_", "-")


def setting(
    default: Any,
    help: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    quick: Any = None,
    log: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of a claim or an experiment; its type is that of `default`.

    **Arguments:** `default`; `help`, its description; `low` and `high`, the range of a number, the maximum length of
    a text without `choices`, or the maximum number of pairs (`Points`); `quick`, the value in a quick run; `log`,
    whether a control is logarithmic; `choices`, the allowed texts.
    """
    about = {"help": help, "low": low, "high": high, "log": log, "choices": choices}
    return dataclasses.field(
        default=default, metadata={**about, "quick": default if quick is None else quick}
    )


@dataclasses.dataclass(frozen=True)
class Setting:
    """One field, as data.

    **Fields:** `name`; `kind`, its type; `default`, `quick`, `low`, `high`, `help`, `log`, `choices`: same as
    `setting`.
    """

    name: str
    kind: type
    default: Any
    quick: Any
    low: float
    high: float
    help: str
    log: bool = False
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return flag(self.name)

    def checked(self, value: Any) -> Any:
        """`value`, as it is or as it was typed, if the setting may have it."""
        if self.kind is tuple:
            return self._points(value)
        return self._word(str(value)) if self.kind is str else self._number(value)

    def typed(self, value: Any) -> str:
        """How a value is written in a command or an address; `checked` reads it."""
        if self.kind is tuple:
            return ";".join(f"{a:g},{b:g}" for a, b in value)
        return value if self.kind is str else f"{value:.12g}"

    def _number(self, value: Any) -> int | float:
        try:
            number = self.kind(value)
            if self.kind is int and float(value) != number:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            word = "an integer" if self.kind is int else "a number"
            raise ValueError(
                f"{self.flag} {_short(value)}: give {word} from {self.low:g} to {self.high:g}."
            ) from None
        if not self.low <= number <= self.high:  # nan is in no range
            raise ValueError(f"{self.flag} {_short(value)}: must be from {self.low:g} to {self.high:g}.")
        return number

    def _word(self, value: str) -> str:
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            raise ValueError(
                f"{self.flag} {_short(value)}: choose one of {known}.{nearest(value, list(self.choices))}"
            )
        if len(value) > self.high:
            raise ValueError(
                f"{self.flag} {_short(value)}: {len(value)} characters; at most {self.high:g} are allowed."
            )
        return value

    def _points(self, value: Any) -> Points:
        try:
            pairs = (
                [pair.split(",") for pair in value.split(";") if pair] if isinstance(value, str) else value
            )
            points = tuple((float(a), float(b)) for a, b in pairs)
        except (TypeError, ValueError):
            raise ValueError(f"{self.flag} {_short(value)}: write points as x,y;x,y.") from None
        if not 1 <= len(points) <= self.high:
            raise ValueError(f"{self.flag}: {len(points)} points; give 1 to {self.high:g}.")
        if not all(abs(number) <= -self.low for point in points for number in point):
            raise ValueError(f"{self.flag}: coordinates must be from {self.low:g} to {-self.low:g}.")
        return points


@dataclasses.dataclass(frozen=True)
class Settings:
    """A frozen class whose fields are made by `setting`; wrong values raise one line."""

    def __post_init__(self) -> None:
        for each in self.settings():
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name)))

    @classmethod
    def name(cls) -> str:
        """The name of its file: one file, one such class."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        return tuple(
            Setting(field.name, type(field.default), field.default, **field.metadata)
            for field in dataclasses.fields(cls)
        )

    @classmethod
    def with_settings(cls, typed: Mapping[str, object], quick: bool = False) -> Self:
        """With some settings given, the others by default, or quick."""
        known = {each.name: each for each in cls.settings()}
        for name in typed:
            if name not in known:
                flags = ", ".join(each.flag for each in known.values()) or "none"
                raise ValueError(
                    f"unknown setting {flag(_short(name))!r} of {cls.name()}: choose from {flags}."
                    f"{nearest(name, list(known))}"
                )
        start = {each.name: each.quick for each in known.values()} if quick else {}
        return cls(**{**start, **{name: known[name].checked(value) for name, value in typed.items()}})

    def values(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def _short(value: Any) -> str:
    text = str(value) or "(empty)"
    return text if len(text) <= 60 else f"{text[:57]}..."
