"""Which theory holds for what, from what each declares: the table of docs/api/forecasts.md and of the guide.

.venv/bin/python docs/theories_table.py     # writes them
"""

import re
from pathlib import Path

from nearkernel.forecasts.forecasting import THEORIES

DOCS = Path(__file__).parent
PAGES = (DOCS / "api" / "forecasts.md", DOCS / "guides" / "which-prediction.md")
BEGIN, END = "<!-- theories: begin -->", "<!-- theories: end -->"
WORDS = {
    "a network": "networks",
    'a network with parametrization="mean_field"': "mean-field networks",
    "an nk.Scaled of a network": "`nk.Scaled` of these",
    "a pair of kernels": "kernels",
    "any": "any",
    "residual": "dense, also residual blocks",
    "chain": "dense, in turn",
    "solvable": "all that `nk.solve` takes, SGD",
    "plain": "gradient descent, flow",
    "stepwise": "gradient descent, SGD, flow; up to a finite time",
}
HEAD = ("theory", "limit", "problems", "layers", "activations", "algorithms", "loss", "regimes")


def table() -> str:
    """One row per theory."""
    rows = []
    for theory in THEORIES:
        needs = theory.needs()
        models = ", ".join(WORDS.get(model, model) for model in needs.models)
        rows.append(
            (
                f"`{theory!r}`", theory.limit, models, WORDS[needs.layers], needs.activations, WORDS[needs.algorithms],
                needs.losses, ", ".join(theory.regimes),
            )
        )  # fmt: skip
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(path: Path) -> str:
    """The page with the table of today."""
    text = path.read_text(encoding="utf-8")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.DOTALL)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
