"""docs/claims.md describes the claims as they are."""

import importlib
import json
import re
from pathlib import Path

from nearkernel import claims

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/claims.md").read_text(encoding="utf-8")


def test_the_page_is_not_older_than_the_claims():
    """`make claims` writes the page again. It keeps what was run before and has not changed."""
    found = re.search(r"<!-- source of each claim: (.*) -->", PAGE)
    assert json.loads(found[1]) == {claim.name(): claim.fingerprint() for claim in claims.every()}


def test_the_page_shows_every_claim_confirmed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    plain = importlib.import_module("claims_page").plain
    for claim in claims.every():
        part = PAGE.split(f"\n### {claim.name()}\n")[1].split("\n### ")[0]
        assert "\nconfirmed in " in part and "| NO |" not in part
        if claim.erratum:
            assert (
                f"| {plain(claim.erratum.row)} | " in part and f"Erratum: {plain(str(claim.erratum))}" in part
            )
        else:
            assert "Erratum" not in part
    assert re.search(r"Made by nearkernel \d+\.\d+\.\d+, seed 0", PAGE)


def test_the_lab_and_other_pages_show_the_same_run(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("claims_page")
    found = json.loads(page.VERDICTS.read_text(encoding="utf-8"))["claims"]
    assert {name: one["fingerprint"] for name, one in found.items()} == {
        claim.name(): claim.fingerprint() for claim in claims.every()
    }
    for path, table in page.tables([{"claim": name, **one} for name, one in found.items()]).items():
        text = path.read_text(encoding="utf-8")
        assert page.into(text, table) == text, path


def test_stored_verdicts_make_the_same_page(monkeypatch):
    """So that `claims_page.py --changed` may keep them."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("claims_page")
    stored = page.unchanged()
    assert page.page([stored[claim.name()] for claim in claims.every()], quick=False) == PAGE
