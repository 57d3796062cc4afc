"""Public names of a module: each is imported when it is first used, and old names lead to new ones.

A module lists what it offers once, as imports for type checkers:

    if TYPE_CHECKING:
        from .classical.stationary import RBF as RBF
    else:
        __getattr__, __dir__ = public(__name__, __file__)
"""

import ast
import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from .old_names import OLD
from .spelling import nearest

_F = TypeVar("_F", bound=Callable)


def public(
    module: str, path: str, elsewhere: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `module`, whose file `path` lists its names.

    `elsewhere` maps names that programs rely on, and that live in a module above, to that module.
    """
    listed = functools.cache(lambda: _listed(Path(path).read_text(encoding="utf-8")))
    offered = functools.cache(lambda: sorted(listed()))

    def get(name: str) -> object:
        if name == "__all__":  # asked for by `from module import *`
            return offered()
        if name in listed():
            package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
            source, original = listed()[name]
            quiet()
            value = importlib.import_module(source, package)
            if original:
                value = getattr(value, original)
        elif name in (elsewhere or {}):
            return getattr(importlib.import_module((elsewhere or {})[name]), name)
        elif name in OLD.get(module, {}):
            return _renamed_object(module, name)
        else:
            hint = "" if name.startswith("_") else nearest(name, offered())
            raise AttributeError(f"module {module!r} has no attribute {name!r}.{hint}")
        setattr(sys.modules[module], name, value)
        return value

    return get, offered


def public_object(name: str) -> Callable[..., object]:
    """`nk.name`: for a module below that recommends a name of one above."""
    return getattr(importlib.import_module("nearkernel"), name)


def quiet() -> None:
    """Imports JAX without touching the random numbers of the host program."""
    importlib.import_module("nearkernel._run.quietly")


def _listed(source: str) -> dict[str, tuple[str, str]]:
    """Names in the `if TYPE_CHECKING:` block of `source`: the module of each, and its name there ("" for a module)."""
    names = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test):
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    prefix = "." * node.level + (node.module or "")
                    for each in node.names:
                        is_module = node.module is None
                        names[each.asname or each.name] = (
                            (f"{prefix}{each.name}", "") if is_module else (prefix, each.name)
                        )
    return names


def _renamed_object(module: str, name: str) -> object:
    new, removed = OLD[module][name]
    short = module.replace("nearkernel", "nk", 1)
    warnings.warn(
        f"{short}.{name} is now nk.{new}; the old name will be removed in {removed}.",
        DeprecationWarning,
        stacklevel=3,
    )
    room, _, last = new.rpartition(".")
    return getattr(importlib.import_module(f"nearkernel.{room}" if room else "nearkernel"), last)


def renamed(removed: str = "0.4", /, **names: str) -> Callable[[_F], _F]:
    """Arguments of a function by their old names, until release `removed`: `@renamed(X="x")`.

    A class takes them as arguments, and has attributes of these names, too.
    """

    def warn(of: str, old: str) -> None:
        warnings.warn(
            f"`{old}` of {of} is now `{names[old]}`; the old name will be removed in {removed}.",
            DeprecationWarning,
            stacklevel=3,
        )

    def attribute(of: str, old: str) -> property:
        def get(self: object) -> object:
            warn(of, old)
            return getattr(self, names[old])

        return property(get)

    def decorator(function: _F) -> _F:
        target: Callable = getattr(function, "__init__") if isinstance(function, type) else function  # noqa: B009

        @functools.wraps(target)
        def wrapped(*args, **kwargs):
            for old in names.keys() & kwargs.keys():
                warn(function.__name__, old)
                kwargs[names[old]] = kwargs.pop(old)
            return target(*args, **kwargs)

        wrapped.__signature__ = inspect.signature(target)  # type: ignore[attr-defined]
        if not isinstance(function, type):
            return wrapped  # type: ignore[return-value]
        function.__init__ = wrapped  # type: ignore[misc]
        for old in names:
            setattr(function, old, attribute(function.__name__, old))
        return function

    return decorator
