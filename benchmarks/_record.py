"""Ratios that a benchmark measures, as JSON beside its tables, and which of them fell since they were committed.

A script calls `keep` for each comparison with a rival; `report` of `_common.py` writes them with --write (the
tables' own sizes to `results/NAME.json`, those of a quick run to `results/NAME.quick.json`) or to the file of --json.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
FALL = 0.25  # of a ratio: less is noise on a shared machine


@dataclasses.dataclass(frozen=True)
class Ratio:
    """`ratio`: CPU seconds of the rival over ours, `cpu`, in the same run. Larger is better for us."""

    name: str
    rival: str
    ratio: float
    cpu: float


_kept: list[Ratio] = []
_notes: dict[str, Any] = {}  # what else goes into the file


def keep(name: str, rival: str, theirs: float, ours: float) -> None:
    """Remember one comparison, in CPU seconds."""
    if any(each.name == name for each in _kept):
        raise ValueError(f"two comparisons are named {name!r}.")
    _kept.append(Ratio(name, rival, float(f"{theirs / ours:.3g}"), float(f"{ours:.3g}")))


def note(name: str, value: Any) -> None:
    """Write something else beside the ratios, such as the points of a picture."""
    _notes[name] = value


def kept() -> tuple[Ratio, ...]:
    return tuple(_kept)


def committed(script: str, quick: bool) -> Path:
    return RESULTS / f"{script}{'.quick' * quick}.json"


def save(path: Path, ratios: tuple[Ratio, ...], machine: str, shared: bool = False) -> None:
    """Write a file of results; `shared`: other programs ran meanwhile, so that it should be made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [dataclasses.asdict(each) for each in ratios]
    content = {"machine": machine, **({"refresh": True} if shared else {}), "ratios": rows, **_notes}
    path.write_text(json.dumps(content, indent=1) + "\n")


def load(path: Path) -> tuple[Ratio, ...]:
    """The ratios of a file; one line if it is not such a file."""
    try:
        found = tuple(Ratio(**each) for each in json.loads(path.read_text())["ratios"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} holds no ratios of a benchmark ({error}): write it again with --write."
        ) from None
    for each in found:
        if not (isinstance(each.ratio, int | float) and 0 < each.ratio < math.inf):
            raise ValueError(
                f"{path}: the ratio of {each.name!r} must be a number above 0; got {each.ratio!r}."
            )
    return found


def was_shared(path: Path) -> bool:
    return bool(json.loads(path.read_text()).get("refresh", False))


@dataclasses.dataclass(frozen=True)
class Change:
    """One comparison, before and now; `now` is None where it was not measured."""

    name: str
    rival: str
    before: float
    now: float | None

    @property
    def fell(self) -> bool:
        return self.now is not None and self.now < (1 - FALL) * self.before

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.name} (against {self.rival}): {self.before:.3g} before, not measured now"
        return f"{self.name} (against {self.rival}): {self.before:.3g} before, {self.now:.3g} now"


def changes(before: tuple[Ratio, ...], now: tuple[Ratio, ...]) -> list[Change]:
    """What became of each committed ratio; new comparisons are not among them."""
    found = {each.name: each.ratio for each in now}
    return [Change(each.name, each.rival, each.ratio, found.get(each.name)) for each in before]
