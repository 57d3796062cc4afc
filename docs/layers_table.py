"""Which verb supports which layer, from the classes: the table of docs/api/layers.md.

.venv/bin/python docs/layers_table.py     # writes it
"""

import re
from pathlib import Path

import nearkernel as nk
from nearkernel.models.layers.base import AbstractOuterLayer, AbstractPiecewiseLayer

L = nk.layers
PAGE = Path(__file__).parent / "api" / "layers.md"
BEGIN, END = "<!-- verbs: begin -->", "<!-- verbs: end -->"
LAYERS = [
    *(
        L.Dense(1),
        L.Conv(1),
        L.LocallyConnected(1),
        L.Attention(1),
        L.PositionEmbedding(),
        L.Activation("relu"),
    ),
    *(
        L.LayerNorm(),
        L.AvgPool(),
        L.SumPool(),
        L.GlobalAvgPool(),
        L.GlobalSumPool(),
        L.Flatten(),
        L.Dropout(0.5),
    ),
    *(
        L.Identity(),
        L.Residual([L.Dense(1)]),
        L.Sum([[L.Dense(1)]]),
        L.Concat([[L.Dense(1)]]),
        L.Product([[L.Dense(1)]]),
    ),
    L.Repeat([L.Dense(1)], 2),
]


def _block(layer: L.AbstractLayer) -> bool:
    return isinstance(layer, L.AbstractWideLayer) and not layer.need(False) and layer.rank(1) == 1


VERBS = {
    "`net(params, x)`, `expand`, `solve`, `simulate`, `measure`": lambda layer: isinstance(
        layer, L.AbstractLayer
    ),
    "`NNGP`, `NTK`, `forecast`, `propagate`, `learning_rates`": lambda layer: isinstance(
        layer, L.AbstractWideLayer
    ),
    "`critical`, `phase_diagram`": _block,
    "`EmpiricalNTK` without Jacobians": lambda layer: (
        isinstance(layer, AbstractOuterLayer) or not layer.has_params() or bool(layer.branches())
    ),
    "`breakpoints`, `regions`": lambda layer: isinstance(layer, AbstractPiecewiseLayer),
    "order 1/n of `propagate`, `forecast`": lambda layer: isinstance(
        layer, L.Dense | L.Activation | L.Identity | L.Repeat | L.Residual
    ),
}


def table() -> str:
    lines = [["layer", *VERBS], ["---"] * (1 + len(VERBS))]
    for layer in LAYERS:
        lines.append(
            [f"`{type(layer).__name__}`", *("yes" if known(layer) else "-" for known in VERBS.values())]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page() -> str:
    """The page with the table as the classes have it."""
    return re.sub(
        f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", PAGE.read_text(), flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(page())
