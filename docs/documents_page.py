"""Makes documents.md, where each statement of the documents is implemented and checked, from documents.toml.

python docs/documents_page.py
"""

import tomllib
from pathlib import Path
from typing import Any

TABLE, PATH = (Path(__file__).with_name(f"documents.{end}") for end in ("toml", "md"))
COLUMNS = ("line", "statement", "implemented by", "checked by", "status")


def documents() -> list[dict[str, Any]]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))["documents"]


def statements() -> list[dict[str, str]]:
    return [row for document in documents() for theme in document["themes"] for row in theme["statements"]]


def names(row: dict[str, str]) -> list[str]:
    """Public names under `nk.` that implement a statement."""
    return _listed(row["by"])


def checks(row: dict[str, str]) -> list[str]:
    """Claims that check it."""
    return _listed(row.get("checked", ""))


def status(row: dict[str, str]) -> str:
    if "lacks" not in row:
        return "explored" if row["says"].endswith("(open)") else "whole"
    return f"{'partial' if names(row) else 'missing'}: {row['lacks']}"


def page() -> str:
    rows = statements()
    kinds = [status(row).partition(":")[0] for row in rows]
    whole, explored, partial, missing = map(kinds.count, ("whole", "explored", "partial", "missing"))
    lines = [
        "# The documents, statement by statement",
        "",
        "The library implements the theory of five documents: a talk, two sets of notes, a graduate course and",
        f"slides on feature learning. This page lists {len(rows)} of their statements in our words. For each it gives",
        "the line in the document, the public names that implement it, and the [claims](claims.md) or figures that",
        f"check it. {whole} are whole, {partial} partial, {missing} missing; {explored} open questions are explored,",
        "by experiments in some cases. Misprints in the documents are listed as errata of the claims.",
        "",
        "`python docs/documents_page.py` generates this page from `docs/documents.toml`; a test looks up every name.",
        "",
    ]
    for document in documents():
        lines += [f"## {document['name'][0].upper()}{document['name'][1:]}", ""]
        for theme in document["themes"]:
            lines += [f"**{theme['name'][0].upper()}{theme['name'][1:]}**", "", _line(COLUMNS)]
            lines += ["|---|---|---|---|---|", *(_line(_cells(row)) for row in theme["statements"]), ""]
    return "\n".join(lines)


def _cells(row: dict[str, str]) -> tuple[str, ...]:
    checked = [f"[{name}](claims.md#{name})" for name in checks(row)]
    if "seen" in row:
        checked.append(f"[{'figure' if row['seen'].startswith('gallery') else 'guide'}]({row['seen']})")
    by = ", ".join(f"`nk.{name}`" for name in names(row))
    return row["at"], row["says"].replace("|", "\\|"), by or "-", ", ".join(checked) or "-", status(row)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(";") if name.strip()]


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
