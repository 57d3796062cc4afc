"""Formulas written as plain text, as a page shows them: Greek letters, signs, indices raised and lowered."""

import re

from .._base.printable import escape
from .html import Html

_GREEK = dict(
    zip(
        "alpha beta gamma eps theta kappa lam lambda mu nu xi pi sigma tau phi chi psi Theta".split(),
        "α β γ ε θ κ λ λ μ ν ξ π σ τ φ χ ψ Θ".split(),
        strict=True,
    )
)
_SIGNS = {"sqrt": "√", "sum": "∑", "prod": "∏", "int": "∫", "inf": "∞", "->": "→", "<=": "≤", ">=": "≥", "+-": "±",
          "-+": "∓", "-": "−", "'": "′"}  # fmt: skip
_TOKEN = re.compile(
    r"\^\((?P<raised>[^()]*)\)|\^(?P<power>-?[A-Za-z0-9*]+)"
    r"|_\{(?P<lowered>[^{}]*)\}|_(?P<index>[A-Za-z0-9*]+(?:,[A-Z]{2})?)"
    r"|(?P<word>[A-Za-z]+)|(?P<sign>->|<=|>=|\+-|-\+|-)|(?P<rest>.)",
    re.DOTALL,
)


def formula(text: str) -> Html:
    """`K^(l+1) = C_b + C_W E[s^2]` as HTML; words stay upright, letters lean."""
    return Html(f'<span class="formula">{_html(text)}</span>')


def _html(text: str) -> str:
    return "".join(map(_written, _TOKEN.finditer(text)))


def _written(token: re.Match) -> str:
    kind, value = token.lastgroup, token[token.lastgroup or 0]
    if kind in ("raised", "power"):
        return f"<sup>{_html(value)}</sup>"
    if kind in ("lowered", "index"):
        return f"<sub>{_html(value)}</sub>"
    if kind == "word" and (value in _GREEK or len(value) == 1):
        return f"<var>{_GREEK.get(value, value)}</var>"
    return escape(_SIGNS.get(value, value))
