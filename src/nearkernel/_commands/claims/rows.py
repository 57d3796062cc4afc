"""A row of a record as cells, for the terminal, the report and the page of all claims."""

import math
from typing import Any

from ...claims import Row

Record = dict[str, Any]  # of a run, or a row of it, as its JSON file has it
HEADS = ("quantity", "theory", "measured", "off by", "")


def row_of(fields: Record) -> Row:
    """Back from JSON, which has words for infinities."""
    numbers = {name: float(fields[name]) for name in ("theory", "measured", "sem", "tolerance")}
    return Row(fields["quantity"], **numbers, relation=fields["relation"])


def in_sigmas(value: float) -> str:
    """With a sign and one decimal; +0.0 rather than -0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def _deviation(row: Row) -> str:
    """`Row.deviation` with the digits that the limit has."""
    if row.sigmas is not None:
        return f"{in_sigmas(row.sigmas)} σ" + (f" (limit 4 σ + {row.tolerance:.3g})" if row.tolerance else "")
    if row.relation.startswith("at"):
        return row.deviation
    share = abs(row.measured - row.theory) / abs(row.theory) if row.theory else math.inf
    return f"{share:.2g} (limit {row.tolerance:.3g})"


def cells(row: Row) -> tuple[str, ...]:
    """quantity, theory, measured, deviation, verdict of a row."""
    sign = {"equals": "", "differs": "not ", "at most": "≤ ", "at least": "≥ "}[row.relation]
    spread = f" ± {row.sem:.1g}" if row.sem > 0 else ""
    return (
        row.quantity,
        f"{sign}{row.theory + 0.0:.5g}",  # no -0
        f"{row.measured + 0.0:.5g}{spread}",
        _deviation(row),
        "ok" if row.ok else "NO",
    )
