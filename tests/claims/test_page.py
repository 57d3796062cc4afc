"""docs/claims.md describes the claims as they are."""

import importlib
import json
import re
from pathlib import Path

import pytest

from nearkernel import claims

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
TO_DO = "run `python docs/claims_page.py --changed`, which writes the verdicts of new and changed claims"


def test_the_page_is_not_older_than_the_claims():
    """`make claims` writes the page again. It keeps what was run before and has not changed."""
    found = re.search(r"<!-- source of each claim: (.*) -->", PAGE)
    assert json.loads(found[1]) == {claim.name(): claim.fingerprint() for claim in claims.every()}, TO_DO


def test_the_page_shows_every_claim_confirmed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    typeset = importlib.import_module("claims_formulas").typeset
    for claim in claims.every():
        assert f"\n### {claim.name()}\n" in PAGE, TO_DO
        part = PAGE.split(f"\n### {claim.name()}\n")[1].split("\n### ")[0]
        assert "\nconfirmed in " in part and "| NO |" not in part
        if claim.erratum:
            assert f"| {typeset(claim.erratum.row)} | " in part
            assert f"Erratum: {typeset(str(claim.erratum))}" in part
        else:
            assert "Erratum" not in part
    assert re.search(r"Made by nearkernel \d+\.\d+\.\d+, seed 0", PAGE)


def test_the_lab_and_other_pages_show_the_same_run(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("claims_page")
    found = json.loads(page.VERDICTS.read_text(encoding="utf-8"))["claims"]
    assert {name: one["fingerprint"] for name, one in found.items()} == {
        claim.name(): claim.fingerprint() for claim in claims.every()
    }, TO_DO
    for path, table in page.tables([{"claim": name, **one} for name, one in found.items()]).items():
        text = path.read_text(encoding="utf-8")
        assert page.into(text, table) == text, path


def test_stored_verdicts_make_the_same_page(monkeypatch):
    """So that `claims_page.py --changed` may keep them."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("claims_page")
    stored = page.unchanged()
    assert page.page([stored[claim.name()] for claim in claims.every()], quick=False) == PAGE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("grow by chi_perp = C_W/2 per layer", r"grow by $\chi_{\perp} = C_{W}/2$ per layer"),
        ("at criticality (C_W = 1, C_b = 0) a tanh", r"at criticality ($C_{W} = 1$, $C_{b} = 0$) a tanh"),
        ("m <= n of them, by n^(-1/2)", r"$m \le n$ of them, by $n^{-1/2}$"),
        ("by width^(-1/2), from 2/kernel on", r"by $\text{width}^{-1/2}$, from $2/\text{kernel}$ on"),
        ("eps* = -sum (z^F - y) z^I^2", r"$\epsilon_{*} = -\sum (z^{F} - y)\, (z^{I})^{2}$"),
        ("K^(l+1) = 6R/|w|, or log t", r"$K^{l+1} = 6 R/\lvert w\rvert$, or $\log t$"),
        ("E[z grad z.grad Theta], width 4", r"$\mathbb{E}[z\, \nabla z \cdot \nabla \Theta]$, width 4"),
        ("exp(-y x.w_tilde) at lr = 1e-16", r"$\exp(-y\, x \cdot \tilde{w})$ at $\eta = 10^{-16}$"),
        ("mean -L/2n, so 2 · 2^L pieces", r"mean $-L/(2 n)$, so $2 \cdot 2^{L}$ pieces"),
        ("bits(delta) = n sqrt(1 + gamma0^2)", r"$\text{bits}(\delta) = n\, \sqrt{1 + \gamma_0^{2}}$"),
    ],
)
def test_formulas_of_claims_are_typeset(text, shown, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    assert importlib.import_module("claims_formulas").typeset(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "A sum of a log-normal law and chi-squares, e.g. 4/5 of the L1 norm, depth/width.",
        "NTK moved by (1, 0), Laplace(0.01), 2-Lipschitz, leave-one-out, the network's outputs 000",
    ],
)
def test_words_and_numbers_of_claims_stay_text(text, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    assert importlib.import_module("claims_formulas").typeset(text) == text
