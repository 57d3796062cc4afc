"""The documentation is true: its code runs, its printed results come out, its links lead somewhere.

All ```python blocks of a page run in order in one namespace. A ```text block right after one is what it prints.
An HTML comment `<!-- not run -->` before a block leaves it out, `<!-- needs torch -->` where that is not installed.
"""

import contextlib
import functools
import importlib.util
import inspect
import io
import re
import types
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import nearkernel as nk
from nearkernel import claims
from support.docs_scripts import script
from support.printed import same_text

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(
    r"(?:<!-- (?P<skip>not run|needs (?P<library>\w+)) -->\s*)?^```python\n(?P<code>.*?)^```$"
    r"(?:\s*^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_same_text_allows_one_unit_of_the_last_digit():
    assert same_text("[0.124 -1.0]\n", "[0.123 -1.0]") and same_text("3.1e-05", "3.0e-05")
    assert not same_text("0.125", "0.123") and not same_text("7", "8") and not same_text("a 1", "b 1")


@pytest.mark.merge
@pytest.mark.parametrize(
    "page", [page for page in PAGES if _BLOCK.search(page.read_text("utf-8"))], ids=name_of
)
def test_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    module = types.ModuleType("page")
    absent = set()
    for block in _BLOCK.finditer(text):
        if block["library"] and importlib.util.find_spec(block["library"]) is None:
            absent.add(block["library"])
        if block["skip"] == "not run" or block["library"] in absent:
            continue
        line = text[: block.start("code")].count("\n")
        code = compile("\n" * line + block["code"], str(page), "exec")  # so that a traceback names the line
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, module.__dict__)
        if block["printed"] is not None:
            found = printed.getvalue()
            assert same_text(found, block["printed"]), f"{name_of(page)}:{line + 1} prints\n{found}"
    assert not jax.config.jax_enable_x64
    if absent:
        pytest.skip(f"{name_of(page)} ran without its blocks for {', '.join(sorted(absent))}: not installed")


BESIDE = [ROOT / f"{name}.md" for name in ("CHANGELOG", "CODE_OF_CONDUCT", "SECURITY", "benchmarks/README")]


def test_links_and_pictures_exist():
    broken = [f"{name_of(page)}: {target}" for page in [*PAGES, *BESIDE] for target in broken_links(page)]
    assert not broken, "links that lead nowhere:\n" + "\n".join(broken)


def broken_links(page: Path) -> list[str]:
    """Links of a page to files, or to headings of files, that do not exist."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for found in _LINK.finditer(text):
        target = found[1] or found[2]
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        if re.match(r"https?:|mailto:", target):
            continue
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    return broken


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.md").write_text(
        '# One *heading*\n[a](#one-heading) [b](b.md) [c](#two) <img src="d.png"> [e](a.md#f)'
    )
    assert broken_links(tmp_path / "a.md") == ["b.md", "#two", "d.png", "a.md#f"]


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown viewer gives to headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


SECTIONS = [
    pytest.param(section, id=f"{page.stem}: {section.partition(chr(10))[0]}")
    for page in (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md")
    for section in re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S).split("\n## ")
]


@pytest.mark.parametrize("section", SECTIONS)
def test_files_named_for_contributors_exist(section):
    missing = list(strange_paths(section, [ROOT, ROOT / "src/nearkernel"]))
    assert not missing, f"{missing}: no such file or folder; a short name follows its folder in the section"


def strange_paths(section: str, known: list[Path]) -> Iterator[str]:
    """Paths in code spans that lie in none of the `known` folders, nor in those that the section has named before."""
    known = list(known)
    for span in re.findall(r"`([^`\n]+)`", section):
        for path in re.findall(r"(?<!\S)[\w./<>-]*(?:/|\.(?:py|md|toml|cff|json|yml))(?!\S)", span):
            if path.startswith((".venv", ".jax_cache")):
                continue
            pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
            found = [each for folder in known for each in folder.glob(pattern)]
            if not found:
                yield path
            known += [each if each.is_dir() else each.parent for each in found]


def test_paths_that_do_not_exist_are_found():
    text = "`docs/api/` `index.md` `docs/api/<room>.md` `python docs/gone.py` `tests/project/` `x = y/`"
    assert list(strange_paths(text, [ROOT])) == ["docs/gone.py", "y/"]
    assert list(strange_paths("`index.md`", [ROOT])) == ["index.md"]


def test_every_page_is_reachable_from_the_index():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / found[1]).resolve() for found in re.finditer(r"\]\(([^)#\s]+\.md)", index)}
    missing = [
        name_of(page)
        for page in PAGES
        if page.parent != ROOT and page.name != "index.md" and page not in linked
    ]
    assert not missing, f"link {missing} in docs/index.md, and name them in the menu of mkdocs.yml"


def test_every_figure_is_drawn_by_the_gallery_and_shown_with_its_command():
    commands = {name: f"python docs/gallery.py {name}" for name in script("gallery").FIGURES}
    commands["lab"] = "python benchmarks/lab.py --picture"  # a photograph
    commands["fine_tuning"] = "python docs/fine_tuning_study.py"  # minutes, and PyTorch
    drawn = {path.stem for path in (ROOT / "docs/figures").iterdir()}
    assert set(commands) == drawn, (
        f"FIGURES of docs/gallery.py and docs/figures differ by {set(commands) ^ drawn}"
    )
    shown = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    missing = [
        name for name, command in commands.items() if f"figures/{name}.png)\n\n`{command}`\n" not in shown
    ]
    assert not missing, f"show {missing} in docs/gallery.md, each with its command"
    assert all(path.stat().st_size < 150_000 for path in (ROOT / "docs/figures").iterdir())


def test_every_public_name_stands_in_the_api_once():
    offered = {"cache", "precision", "progress", "Status", "StatusKind", "save", "load"}
    for room in [*(name for name in dir(nk) if inspect.ismodule(getattr(nk, name))), "lab"]:
        offered |= {f"{room}.{name}" for name in dir(importlib.import_module(f"nearkernel.{room}"))}
    repeated = {name for name in dir(nk) if not inspect.ismodule(getattr(nk, name))} - offered
    for name in repeated:
        assert any(full.endswith(f".{name}") for full in offered), f"nk.{name} is not offered by its room"
    assert {"solve", "dynamics.solve"} <= set(script("site_hooks").NAMES)  # so that the site can link to them
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md")]
    shown = re.findall(r"^::: nearkernel\.([\w.]+)$", "\n".join(pages), re.MULTILINE)
    lacking, unknown = sorted(offered - set(shown)), sorted(set(shown) - offered)
    assert not lacking, f"add `::: nearkernel.NAME` to docs/api/<room>.md for {lacking}"
    assert not unknown, f"docs/api shows {unknown}, which no `__init__.py` of a room offers"
    assert len(shown) == len(set(shown)), "docs/api shows a name twice"


def test_the_table_of_layers_is_that_of_the_classes():
    module = script("layers_table")
    assert module.page() == module.PAGE.read_text(), "run docs/layers_table.py"
    shown = {type(layer).__name__ for layer in module.LAYERS}
    public = {name for name in dir(nk.layers) if name[0].isupper() and not name.startswith("Abstract")}
    assert shown == public, f"LAYERS of docs/layers_table.py and nk.layers differ by {shown ^ public}"


def test_the_table_of_theories_is_what_they_declare():
    module = script("theories_table")
    for path in module.PAGES:
        assert module.page(path) == path.read_text(encoding="utf-8"), "run docs/theories_table.py"


def test_the_documents_page_is_that_of_its_table_and_names_what_exists():
    module = script("documents_page")
    assert module.page() == module.PATH.read_text(encoding="utf-8"), "run docs/documents_page.py"
    rows, known = module.statements(), {claim.name() for claim in claims.every()}
    assert not [name for row in rows for name in module.names(row) if not _public(name)]
    assert not [name for row in rows for name in module.checks(row) if name not in known]
    assert all(row["says"].endswith((".", "?", "(open)")) and row["at"].isdigit() for row in rows)
    assert {source.partition(":")[0] for source in (claim.source for claim in claims.every())} >= {
        document["name"] for document in module.documents()
    }


def _public(name: str) -> bool:
    """Whether `nk.` followed by `name` exists: a function, a class, a field or method of a class."""
    found, parts = nk, name.split(".")
    if len(parts) > 1 and importlib.util.find_spec(f"nearkernel.{parts[0]}"):
        found, parts = importlib.import_module(f"nearkernel.{parts[0]}"), parts[1:]
    for part in parts:
        fields = getattr(found, "__dataclass_fields__", {})  # those without a default are no attributes
        if part.startswith("_") or not (hasattr(found, part) or part in fields):
            return False
        found = getattr(found, part, None)
    return True


def test_names_of_the_documents_page_are_looked_up():
    assert all(
        map(_public, ("solve", "dynamics.solve", "estimators.KernelMachine", "results.Guarantee.loss"))
    )
    assert not any(map(_public, ("solved", "dynamics.solved", "results.Guarantee.gain", "_api")))


def test_speeds_of_the_comparison_are_those_of_the_benchmarks():
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    assert text == script("speeds").page(text), "run `python docs/speeds.py`"


def test_how_to_cite_agrees_with_the_citation_file():
    text = (ROOT / "docs/cite.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for field in ("title", "version", "license"):
        value = re.search(rf'^{field}: "?(.*?)"?$', citation, re.MULTILINE)[1]
        assert re.search(rf"^  {field}\s*= {{{re.escape(value)}}}", text, re.MULTILINE), field
    assert f"version: {nk.__version__}\n" in citation
