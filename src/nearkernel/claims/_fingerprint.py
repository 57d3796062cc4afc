"""A hash of the source that decides a claim's numbers and verdict."""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._base.old_names import OLD

_ROOMS = {each.stem for each in Path(__file__).parents[1].iterdir()} | {
    each.rpartition(".")[2] for each in OLD
}
_SHOWN = {"source", "formula", "figure", "draw"}


def fingerprint(path: Path, name: str) -> str:
    """A hash of what `run` of the claim `name` in the file `path` reaches: its own and shared definitions.

    What decides no number is left out, so a change of it keeps verdicts: docstrings, comments, formatting, imports,
    annotations, the file where a definition lies, the room of a public name, and of a claim its source, its formula
    and its figure. The library that the claim is about is left out too; its version stands beside the verdicts.
    """
    seen: set[tuple[Path, str]] = set()
    waiting, found = [(path, name)], set()
    while waiting:
        if (place := waiting.pop()) in seen:
            continue
        seen.add(place)
        definitions, imported = _contents(place[0], path.parents[1])
        if place[1] in imported:
            waiting.append(imported[place[1]])
        for statement in definitions.get(place[1], ()):
            text, names = _spelled_once(statement)
            found.add(text)
            waiting += [(place[0], each) for each in names]
    return hashlib.sha256("\0".join(sorted(found)).encode()).hexdigest()[:12]


@functools.cache
def _contents(path: Path, package: Path) -> tuple[dict[str, list[ast.stmt]], dict[str, tuple[Path, str]]]:
    """What a file defines, by name, and what it imports from other files of claims: where from, and its name there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: dict[str, tuple[Path, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "__init__").split("."))
            source = folder.with_suffix(".py")
            if source.is_relative_to(package) and source.exists():
                imported |= {each.asname or each.name: (source, each.name) for each in node.names}
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in _Deciding().visit(tree).body:
        for each in _defined(statement):
            definitions.setdefault(each, []).append(statement)
    return definitions, imported


def _defined(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}


class _Deciding(ast.NodeTransformer):
    """Removes what decides no number."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        words = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if words else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any(isinstance(base, ast.Name) and base.id == "Claim" for base in node.bases):
            node.decorator_list = []
            decides = lambda each: not isinstance(each, ast.Expr) and not _defined(each) & _SHOWN
            node.body = [each for each in node.body if decides(each)]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Public names without their room, and by their new name."""
        inner, room = node.value, ""
        if isinstance(inner, ast.Attribute) and inner.attr in _ROOMS:
            room, inner = inner.attr, inner.value
        if not (isinstance(inner, ast.Name) and inner.id == "nk"):
            return self.generic_visit(node)
        now = OLD.get(f"nearkernel.{room}".rstrip("."), {}).get(node.attr, (node.attr,))[0]
        return ast.Attribute(inner, now.rpartition(".")[2], node.ctx)


@functools.cache
def _spelled_once(statement: ast.stmt) -> tuple[str, set[str]]:
    """A statement as text, and the names in it."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return "".join(_spelled(statement)), names - {"Claim"}


def _spelled(node: Any) -> Iterator[str]:
    """The tree as text, the same from every version of Python."""
    if isinstance(node, list):
        for each in node:
            yield from _spelled(each)
            yield ","
    elif isinstance(node, ast.AST):
        yield f"{type(node).__name__}("
        for name, value in ast.iter_fields(node):
            if value not in (None, []) and name not in ("ctx", "kind"):
                yield f"{name}="
                yield from _spelled(value)
        yield ")"
    else:
        yield repr(node)
