"""Texts that users read use the usual words of the field and American spelling: docstrings, messages, pages.

Code spans and code blocks are left out: names and printed output are what they are.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/nearkernel"
CODE = sorted(SOURCE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "docs").rglob("*.py"))  # figures and tables of the site
LAB = [path for path in sorted((SOURCE / "lab/static").iterdir()) if path.suffix in (".js", ".html", ".css")]
PAGES = [ROOT / "README.md", ROOT / "benchmarks/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOR_DEVELOPERS = [ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "SECURITY")]
_EACH = (
    "point|feature|output|input|order|step|record|row|layer|degree|eigenvalue|direction|initialization|fold|file|width"
    "|model|depth|draw|network|picture|statement|class|seed|column|neuron|block|second|claim|page|figure|day"
)
_IZE = "initial|standard|normal|regular|optim|minim|maxim|general|summar|recogn|organ"
WORDS = {  # what must not stand in a text, and what to write
    rf"\bone [\w-]+(?: (?!as\b)[\w-]+)? an? (?:{_EACH})\b": "one ... per ...",
    rf"\b(?:one|once|twice|times|factor|seconds|bytes|numbers|entries) an? (?:{_EACH}|line|core)\b": "per ...",
    rf"\b\d+ (?!as\b)[\w-]+s an? (?:{_EACH}|run)\b": "... per ...",
    r"\bas of (?:`|the\b)": "same as `...`",
    r"\bwhole numbers?\b": "integer",
    r"\b(?:is|are) no (?:npz|archive|file|vector|number|function|fixed|model|kernel|table|text|power|tool)": "is not a",
    r"\bare no polynomials\b": "are not polynomials",
    r"^ is none[.;]": "got ...",
    r"\bunless said\b": "default: ...",
    r"\bmust have as many\b": "the same number of",
    r"\bat (?:the|its|their|a) start\b|\b(?:scale|law|map|that) of (?:the|their) start\b": "at initialization",
    r"\b(?:is|are) no settings?\b": "unknown setting ...: choose from ...",
    r"\b(?:points|rows|characters|numbers|values) came\b": "got ...",
    r"\bbears\b": "the largest stable ...",
    r"\brefuses what\b": "Raises `TypeError` unless ...",
    r"\bwhat (?:the )?networks? answers?\b|\bnetworks? answers?\b": "predictions, outputs",
    r"\bwhat a run leaves\b": "the result of a training run",
    r"\bwho is taken for whom\b": "confusion matrix",
    r"\b0 is honest\b": "0 is perfectly calibrated",
    r"\[default: not\]": "[default: off]",
    r"\bit has, this has not\b": "only in ...",
    r"\bof (?:its|their) own\b": "separate, its own ...",
    r"\bfor ever\b": "forever",
    r"\blearnt\b": "learned",
    r"\bcent(?:re|red|res|ring)\b": "center",
    rf"\b\w*(?:{_IZE})is(?:e|ed|es|ing|ation)\b": "-ize, -ization",
    r"\b(?:colour|behaviour|neighbour|favour|labell|modell)": "American spelling",
}
_OF_PAGES = {r"\b(?:rooms|nouns?|verbs?)\b|\ba room\b": "modules, classes, functions"}


def texts_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """All docstrings and messages of a file with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def text_of_page(path: Path) -> str:
    """A page without its code blocks and comments, line for line."""
    blank = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
    return blank.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))


def text_of_script(path: Path) -> str:
    """All of a file of the lab's pages; its templates are texts, not code spans."""
    return path.read_text(encoding="utf-8").replace("`", '"')


def unusual(text: str, words: dict[str, str], line: int) -> Iterator[str]:
    plain = re.sub(r"`[^`\n]*`", lambda code: "`" + "_" * (len(code[0]) - 2) + "`", text)
    for pattern, better in words.items():
        for found in re.finditer(pattern, plain, re.IGNORECASE):
            yield f"{line + plain[: found.start()].count(chr(10))}: {found[0]!r} -> {better}"


def test_unusual_words_are_found_outside_of_code():
    text = "A centred kernel,\none number a point, as of `nk.MLP`; `centres` is an argument."
    found = list(unusual(text, WORDS, 7))
    assert [each.partition(":")[0] for each in found] == ["8", "8", "7"] and "'centred' -> center" in found[
        -1
    ]


@pytest.mark.parametrize(
    "paths",
    [CODE, SCRIPTS, LAB, PAGES, FOR_DEVELOPERS],
    ids=["code", "scripts", "lab", "pages", "developers"],
)
def test_texts_use_the_usual_words(paths):
    found = []
    assert paths
    for path in paths:
        if path.suffix == ".py":
            texts, words = texts_of_code(path), WORDS
        elif path.suffix != ".md":
            texts, words = [(1, text_of_script(path))], WORDS
        else:
            texts, words = [(1, text_of_page(path))], WORDS | (_OF_PAGES if path in PAGES else {})
        for line, text in texts:
            found += [f"{path.relative_to(ROOT)}:{each}" for each in unusual(text, words, line)]
    assert not found, "\n".join(found)
