"""Every claim says what it is, draws its figure, and holds in a quick run."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

from nearkernel import claims
from nearkernel.claims._drawing import picture

CHEAP = {"random-walk", "catapult-phases", "residual-term", "lines-in-the-plane"}


def weighed():
    for claim in claims.every():
        marks = [] if claim.name() in CHEAP else [pytest.mark.merge]
        yield pytest.param(claim, id=claim.name(), marks=marks)


@pytest.mark.parametrize("claim", list(claims.every()), ids=lambda claim: claim.name())
def test_it_says_what_it_is(claim):
    for text in (claim.statement, claim.source, claim.formula):
        assert text and text == text.strip()
    assert claim.statement.endswith(".") and claim.statement.count(". ") == 0
    assert len(claim.statement) < 140 and not claim.statement.startswith(("A claim", "Claim"))
    source = inspect.getsource(claim)
    assert claim.erratum or "refuted(" not in source, "what no source prints is unlike, not refuted"
    assert "as printed" not in source, "rows name the line"
    if claim.erratum:
        place, printed, reading, row = dataclasses.astuple(claim.erratum)
        assert re.search(r", lines? \d", place) and place.split(",")[0] in claim.source
        assert all(text and not text.endswith(".") for text in (place, printed, reading, row))

    assert inspect.getmodule(claim).__doc__
    for each in claim.settings():
        assert each.help.endswith(".") and each.kind in (int, float)
        assert each.low <= each.quick <= each.high and each.low <= each.default <= each.high
    assert claim().code().count("def run") == 1


@pytest.mark.parametrize("claim", list(weighed()))
def test_it_holds_and_draws(claim):
    one = claim.with_settings({}, quick=True)
    result = one.run(0)
    assert result.ok, [row.told for row in result.rows if not row.ok]
    assert result.rows and all(
        row.sem > 0 or row.relation != "equals" or row.tolerance >= 0 for row in result.rows
    )
    if claim.erratum:
        (judge,) = (row for row in result.rows if row.quantity == claim.erratum.row)
        assert judge.relation != "equals"
    assert result.data and all(np.ndim(column) == 1 for column in result.data.values())
    png, svg = picture(one, result)
    assert png.startswith(b"\x89PNG") and svg.startswith("<?xml")
