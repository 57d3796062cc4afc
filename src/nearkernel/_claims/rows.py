"""A row of a record as cells, for the terminal, the report and the page of all claims."""

from typing import Any

from ..claims import Row

HEADS = ("quantity", "theory", "measured", "off by", "")


def row_of(fields: dict[str, Any]) -> Row:
    """Back from JSON, which has words for infinities."""
    numbers = {name: float(fields[name]) for name in ("theory", "measured", "sem", "tolerance")}
    return Row(fields["quantity"], **numbers, relation=fields["relation"])


def cells(row: Row) -> tuple[str, ...]:
    """quantity, theory, measured, deviation, verdict of a row."""
    sign = {"equals": "", "differs": "not ", "at most": "≤ ", "at least": "≥ "}[row.relation]
    spread = f" ± {row.sem:.1g}" if row.sem > 0 else ""
    return (
        row.quantity,
        f"{sign}{row.theory:.5g}",
        f"{row.measured:.5g}{spread}",
        row.deviation,
        "ok" if row.ok else "NO",
    )
