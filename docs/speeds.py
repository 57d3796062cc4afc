"""Copies speed ratios from benchmarks/README.md to compare.md.

    python docs/speeds.py

No number of that table is typed: a test compares the two files.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
RIVALS = {
    "kernels": "neural-tangents",
    "architectures": "neural-tangents",
    "solve": "scikit-learn",
    "large": "",
}


def speeds() -> str:
    """The rows that have a rival, as a table."""
    benchmarks = (HERE.parent / "benchmarks/README.md").read_text(encoding="utf-8")
    lines = [
        "| computation | points | compared with | its seconds over ours | deviation |",
        "|---|---|---|---|---|",
    ]
    for name, rival in RIVALS.items():
        block = re.search(f"<!-- {name}: begin -->(.*?)<!-- {name}: end -->", benchmarks, re.DOTALL)
        rows = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in block[1].splitlines() if "|" in line
        ]
        for row in rows[2:]:
            found = dict(zip(rows[0], row, strict=True))
            cells = (
                found["row"],
                found["n"],
                found.get("rival", rival),
                found["theirs/ours"],
                found["deviation"],
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The text of compare.md with the table of now."""
    begin, end = "<!-- speeds: begin -->", "<!-- speeds: end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{speeds()}\n\n{end}", text, flags=re.DOTALL)


if __name__ == "__main__":
    path = HERE / "compare.md"
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
