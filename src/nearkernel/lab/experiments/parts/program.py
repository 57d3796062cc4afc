"""Programs that pages show: functions of these experiments as they stand, and the lines that call them."""

import ast
import functools
import importlib
import importlib.util
import inspect
from typing import NamedTuple

_IMPORTS = ("import matplotlib.pyplot as plt", "import numpy as np", "import nearkernel as nk")
_END = """
for axes in plt.gcf().axes:
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles))
    if once:
        axes.legend(once.values(), once.keys())
plt.show()
"""


def program(module: str, lines: str, **values: object) -> str:
    """`lines`, whose braces hold `values`, below what they use of `module`; imports and legends are added."""
    lines = lines.format(**values).strip("\n")
    names = [node for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    found: dict[str, ast.stmt] = {}
    for name in sorted({node.id for node in names} - own):
        _collect(module, name, found)
    found |= {ast.unparse(node): node for node in ast.parse(lines).body if isinstance(node, ast.ImportFrom)}
    imports = {text for text, node in found.items() if isinstance(node, ast.Import | ast.ImportFrom)}
    constants = [text for text, node in found.items() if isinstance(node, ast.Assign)]
    top = "\n".join([*sorted(imports - {*_IMPORTS}), *_IMPORTS])
    if constants:
        top += "\n\n" + "\n".join(constants)
    blocks = [text for text in found if text not in (*imports, *constants)]
    rest = "\n".join(line for line in lines.splitlines() if line not in imports).lstrip("\n")
    return "\n\n\n".join([top, *blocks, rest]) + "\n" + _END


class _Defined(NamedTuple):
    text: str
    node: ast.stmt | None
    uses: frozenset[str]


def _collect(module: str, name: str, found: dict[str, ast.stmt]) -> None:
    """Adds what `name` of a module is, after all that it needs."""
    text, node, uses = _definitions(module).get(name, _Defined("", None, frozenset()))
    if node is None or text in found:
        return
    if isinstance(node, ast.ImportFrom) and node.level:
        source = "." * node.level + (node.module or "")
        _collect(importlib.util.resolve_name(source, module.rpartition(".")[0]), name, found)
        return
    found[text] = node
    for each in sorted(uses):
        _collect(module, each, found)
    found[text] = found.pop(text)


@functools.cache
def _definitions(module: str) -> dict[str, _Defined]:
    """What a module defines and imports, by name."""
    source = inspect.getsource(importlib.import_module(module))
    found: dict[str, _Defined] = {}
    for node in ast.parse(source).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        uses = frozenset(each.id for each in names if isinstance(each.ctx, ast.Load))
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound = {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound = {node.name}
        else:
            targets = [each for part in getattr(node, "targets", ()) for each in ast.walk(part)]
            bound = {each.id for each in targets if isinstance(each, ast.Name)}
        found |= dict.fromkeys(bound, _Defined(text, node, uses))
    return found
