r"""Formulas of pages and docstrings, $...$ and $$...$$, are LaTeX that the site can typeset."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from latex2mathml.converter import convert

from nearkernel._look.mathml import typeset

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?! )([^$\n]+?(?:\n[^$\n]+?)?)(?<! )\$", re.DOTALL)
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "benchmarks/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = sorted(path for path in (ROOT / "src/nearkernel").iterdir() if (path / "__init__.py").exists())


def formulas(text: str) -> Iterator[str]:
    for found in _FORMULA.finditer(_CODE.sub("", text)):
        yield (found[1] or found[2]).strip()


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            text := ast.get_docstring(node)
        ):
            yield text


def problem(formula: str) -> str:
    """What is wrong with the MathML of a formula, if anything."""
    try:
        root = ElementTree.fromstring(convert(formula))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if unknown := [text for text in root.itertext() if "\\" in text or "&" in text]:
        return f"not known: {unknown}"
    if any(each.get("mathvariant") not in (None, "normal") for each in root.iter()):
        return "browsers know no mathvariant: write \\mathcal{N} with braces"
    return ""


def test_problems_are_found():
    assert list(formulas("a $x^2$ and `$y$`, not $ 5 or 6 $\n\n$$z\n= 1$$")) == ["x^2", "z\n= 1"]
    assert not problem(r"\mathbb{E}[s\, s'] \le \frac12 \lVert x\rVert_2")
    assert problem(r"\nosuchthing x") and problem(r"\mathcal N") and problem(r"a & b")


@pytest.mark.parametrize("path", [*PAGES, *FOLDERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_formulas_can_be_typeset(path):
    if path.is_file():
        texts = [path.read_text(encoding="utf-8")]
    else:
        texts = [text for file in sorted(path.rglob("*.py")) for text in docstrings(file)]
    wrong = [
        f"{found}\n  {formula}" for text in texts for formula in formulas(text) if (found := problem(formula))
    ]
    assert not wrong, "\n".join(wrong)


def test_norms_are_even_and_functions_have_spaces():
    found = typeset(r"n \log t \sim \lVert x\rVert^2, \ln(t), \operatorname{tr} C")
    thin = '<mspace width="0.17em" />'
    assert f"<mi>n</mi>{thin}<mi>log</mi>{thin}<mi>t</mi><mo>∼</mo>" in found
    assert found.count('<mo stretchy="false" lspace="0" rspace="0">‖</mo>') == 2
    assert '<mi>ln</mi><mo stretchy="false">(</mo>' in found and f"<mi>tr</mi>{thin}<mi>C</mi>" in found


@pytest.mark.parametrize(
    "latex, shown",
    [
        ("g(-x)", '<mo form="prefix">−</mo><mi>x</mi>'),  # a sign, not a difference
        ("y = -x", '<mo form="prefix">−</mo><mi>x</mi>'),
        ("(a)-x", "<mo>−</mo><mi>x</mi>"),
        (r"K(\infty)", "<mi>∞</mi>"),
        (r"\sigma'(z)", '<mrow><mi>σ</mi><mo lspace="0" rspace="0">′</mo></mrow>'),
        ("O(1/n)", '<mo stretchy="false" lspace="0" rspace="0">/</mo>'),
        (r"\operatorname{argmin}_x", "<munder><mi>argmin</mi><mi>x</mi></munder>"),
        (r"a + \cdots", '<mo lspace="0.1em" rspace="0.1em">⋯</mo>'),
    ],
)
def test_signs_have_the_spaces_of_print(latex, shown):
    assert shown in typeset(latex, "block")
