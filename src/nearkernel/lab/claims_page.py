"""The page of claims: recorded verdicts, and what a claim can be run with."""

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from .._commands.claims.rows import HEADS, cells, row_of
from .._look import formula
from ..claims import Claim, every, find
from .describe import control


@functools.cache
def _recorded() -> dict[str, Any]:
    """Verdicts of the last whole run, which `make claims` writes."""
    return json.loads(files(__package__).joinpath("verdicts.json").read_text(encoding="utf-8"))


@functools.cache  # of every claim the source is read
def claims_about() -> dict[str, object]:
    """All claims, short."""
    recorded = _recorded()
    claims = [_short(claim, recorded["claims"].get(claim.name())) for claim in every()]
    return {"version": recorded["version"], "claims": claims}


def _short(claim: type[Claim], recorded: dict[str, Any] | None) -> dict[str, object]:
    same = recorded is not None and recorded["fingerprint"] == claim.fingerprint()
    return {
        "name": claim.name(),
        "topic": claim.topic(),
        "statement": claim.statement,
        "erratum": claim.told_erratum(),
        "verdict": recorded["verdict"] if same and recorded else "not run",
    }


def claim_about(name: str) -> dict[str, object]:
    """One claim, with its controls and the rows of its last whole run."""
    claim, recorded = find(name), _recorded()["claims"].get(name)
    quick = claim.with_settings({}, quick=True).values()
    controls = [{**control(each), "default": each.typed(quick[each.name])} for each in claim.settings()]
    return {
        **_short(claim, recorded),
        "source": claim.source,
        "formula": str(formula(claim.formula)),
        "controls": controls,
        "python": claim().code(),
        "heads": HEADS,
        "rows": rows_of(recorded["rows"]) if recorded else [],
    }


def flags(name: str, typed: Mapping[str, str]) -> list[str]:
    """A claim's settings as a command has them: those given, the others quick."""
    claim = find(name).with_settings(typed, quick=True)
    return [word for each in claim.settings() for word in (each.flag, each.typed(getattr(claim, each.name)))]


def rows_of(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [list(cells(row_of(row))) for row in rows]
