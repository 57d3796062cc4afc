"""Makes claims.md, every claim with its verdict, from a run; the same as data for the lab; and tables for other pages.

    python docs/claims_page.py             # the whole experiments
    python docs/claims_page.py --quick     # small ones
    python docs/claims_page.py --changed   # only those whose source changed; the others keep their stored verdicts

Figures and data go to out/claims, from where an interrupted run goes on.
"""

import argparse
import contextlib
import io
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims_formulas import plain, typeset

import nearkernel as nk
from nearkernel import claims
from nearkernel._commands.claims.command import run
from nearkernel._commands.claims.rows import cells, row_of
from nearkernel.claims import Row

PATH = Path(__file__).parent / "claims.md"
VERDICTS = (
    Path(nk.__file__).parent / "lab" / "verdicts.json"
)  # what the lab shows before a claim is run again
README, GUIDE = Path(__file__).parents[1] / "README.md", Path(__file__).parent / "guides/claims.md"
BEGIN, END = "<!-- claims: begin -->", "<!-- claims: end -->"
SOME = ("gradient-growth", "finite-width", "kernel-growth")  # shown in README.md
MARK = "<!-- source of each claim: "


def page(records: list[dict[str, Any]], quick: bool) -> str:
    good = sum(record["verdict"] == "confirmed" for record in records)
    errata = sum(bool(record["erratum"]) for record in records)
    rows = [row for record in records for row in record["rows"]]
    sigmas = [abs(row["sigmas"]) for row in rows if row["sigmas"] is not None and row["relation"] == "equals"]
    lines = [
        "# Claims",
        "",
        f"Statements of the theory, each beside the experiment that would show it wrong: {good} of {len(records)} are",
        f"confirmed, {errata} of them with an erratum. Of {len(rows)} rows {len(sigmas)} are statistical; the worst of",
        f"these is {max(sigmas):.1f} standard errors off. How it works, how to write one: [Claims](guides/claims.md).",
        "",
        f"Made by nearkernel {nk.__version__}, seed {records[0]['seed']}, with `{command(quick)}`"
        + (": small experiments, seconds each." if quick else "."),
        "",
        "A row agrees within 4 standard errors (σ), or within the relative limit that is shown. *not* marks another",
        "form that the experiment excludes. An erratum names the source and its line, the most charitable reading of",
        "that line, and the row that excludes it.",
        "",
    ]
    for topic, group in itertools.groupby(records, lambda record: record["topic"]):
        lines += [f"## {topic}", ""]
        for record in group:
            lines += [*section(record), ""]
    prints = {record["claim"]: record["fingerprint"] for record in records}
    return "\n".join([*lines, f"{MARK}{json.dumps(prints)} -->", ""])


def verdicts(records: list[dict[str, Any]]) -> str:
    kept = ("verdict", "fingerprint", "seconds", "rows")
    claims = {record["claim"]: {name: record[name] for name in kept} for record in records}
    return json.dumps({"version": nk.__version__, "claims": claims}, indent=1, ensure_ascii=False) + "\n"


def unchanged() -> dict[str, dict[str, Any]]:
    """Records of the claims whose stored verdicts are those of their present source."""
    stored = json.loads(VERDICTS.read_text(encoding="utf-8"))["claims"]
    return {
        name: {**stored[name], "claim": name, "seed": 0, "topic": claim.topic()}
        | {"statement": claim.statement, "source": claim.source, "erratum": claim.told_erratum()}
        for name, claim in ((each.name(), each) for each in claims.every())
        if name in stored and stored[name]["fingerprint"] == claim.fingerprint()
    }


def one_of_each_topic(records: list[dict[str, Any]]) -> str:
    """A claim of each topic, with a row that it was judged by: statistical ones first, for they could have failed."""
    chosen = []
    for _, group in itertools.groupby(records, lambda record: claims.find(record["claim"]).topic()):
        chosen.append(_telling(list(group)))
    good = sum(record["verdict"] == "confirmed" for record in records)
    errata = sum(bool(claims.find(record["claim"]).erratum) for record in records)
    count = (
        f"In all, {good} of {len(records)} are confirmed, {errata} of them with an erratum of the literature."
    )
    return f"{_table(chosen, '../claims.md', typeset)}\n\n{count}"


def some(records: list[dict[str, Any]]) -> str:
    """Those of README.md, as plain text: PyPI shows it too and typesets nothing."""
    chosen = [_telling([each for each in records if each["claim"] == name]) for name in SOME]
    return _table(chosen, "docs/claims.md", plain)


def _telling(records: list[dict[str, Any]]) -> tuple[str, Row]:
    rows = [(record["claim"], row_of(row)) for record in records for row in record["rows"]]
    rows = [(name, row) for name, row in rows if row.relation == "equals"] or rows
    return next((pair for pair in rows if pair[1].sigmas is not None), rows[0])


def _table(chosen: list[tuple[str, Row]], page: str, shown: Callable[[str], str]) -> str:
    lines = ["| claim | quantity | theory | measured | off by |", "|---|---|---|---|---|"]
    for name, row in chosen:
        said = f"[{shown(claims.find(name).statement)}]({page}#{name})"
        quantity, *numbers = cells(row)[:4]
        lines.append("| " + " | ".join([said, shown(quantity), *map(plain, numbers)]) + " |")
    return "\n".join(lines)


def tables(records: list[dict[str, Any]]) -> dict[Path, str]:
    """What stands between the marks of which file."""
    return {README: some(records), GUIDE: one_of_each_topic(records)}


def into(text: str, table: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def command(quick: bool) -> str:
    return "python docs/claims_page.py --quick" if quick else "make claims"


def section(record: dict[str, Any]) -> list[str]:
    lines = [f"### {record['claim']}", "", typeset(record["statement"]), ""]
    lines += [f"Erratum: {typeset(record['erratum'])}", ""] * bool(record["erratum"])
    lines += [f"{record['verdict']} in {record['seconds']:.1f} s. Source: {record['source']}.", ""]
    lines += ["| quantity | theory | measured | off by | |", "| --- | --- | --- | --- | --- |"]
    for row in record["rows"]:
        quantity, *numbers = cells(row_of(row))
        lines.append("| " + " | ".join([typeset(quantity), *map(plain, numbers)]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small experiments")
    parser.add_argument("--changed", action="store_true", help="only claims whose source changed")
    parser.add_argument("--jobs", type=int, default=1, help="claims at the same time")
    chosen = parser.parse_args()
    if chosen.quick and chosen.changed:
        parser.error("--changed: stored verdicts are those of the whole experiments; leave out --quick.")
    stored = unchanged() if chosen.changed else {}
    every = [claim.with_settings({}, chosen.quick) for claim in claims.every() if claim.name() not in stored]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = run(every, 0, Path("out/claims"), chosen.jobs, as_json=True)
    if code == 130:
        sys.exit(code)
    made = stored | {record["claim"]: record for record in json.loads(printed.getvalue() or "[]")}
    records = [made[claim.name()] for claim in claims.every()]
    PATH.write_text(page(records, chosen.quick), encoding="utf-8")
    VERDICTS.write_text(verdicts(records), encoding="utf-8")
    for path, table in tables(records).items():
        path.write_text(into(path.read_text(encoding="utf-8"), table), encoding="utf-8")
    print(f"Wrote {PATH}: {sum(r['verdict'] == 'confirmed' for r in records)} of {len(records)} confirmed.")
    sys.exit(code)


if __name__ == "__main__":
    main()
