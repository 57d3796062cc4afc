"""What functions and classes are made of: the content that decides what they compute.

A library's function counts by its public name and the version of its package. A user's counts by its code with
constants, defaults, what it closes over, and the globals it reads; line numbers, comments and file names do not count.
"""

import builtins
import dataclasses
import dis
import functools
import importlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Every kernel computes with these, and stores of other kernels do not name their versions either.
_COMMON = frozenset(("nearkernel", "jax", "jaxlib", "numpy", "scipy", "equinox"))
_GLOBAL = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_SKIPPED = frozenset(
    """__module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __annotate__ __annotate_func__
    __annotations_cache__ __abstractmethods__ _abc_impl __abstractvars__ __abstractclassvars__ __dataclass_params__
    __dataclass_fields__ __match_args__ __parameters__ __orig_bases__ __static_attributes__ __firstlineno__
    __type_params__ __slotnames__""".split()
)


def package_of(module: str) -> str | None:
    """What to add to names of `module`: the version of an installed package, if that counts; None for a user's code."""
    top = module.partition(".")[0]
    if top in _COMMON:
        return ""
    package = sys.modules.get(top)
    file = str(getattr(package, "__file__", None) or next(iter(getattr(package, "__path__", ())), ""))
    if top in sys.stdlib_module_names and (not file or _within(file, "stdlib", "platstdlib")):
        return ""
    if package is None or not {"site-packages", "dist-packages"} & set(Path(file).parts):
        return None
    version = getattr(package, "__version__", None)
    return f" {version}" if isinstance(version, str) else None


def _within(file: str, *places: str) -> bool:
    return any(Path(file).is_relative_to(sysconfig.get_path(place)) for place in places)


def public_name(thing: object) -> str:
    """Of a function or class that an installed package offers under it, else ""."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return ""
    version, holder = package_of(module), sys.modules.get(module)
    if version is None:
        return ""
    for part in name.split("."):
        holder = getattr(holder, part, None)
    return f"{module}.{name}{version}" if holder is thing else ""


def inner_name(function: types.FunctionType) -> str:
    """Of a function that an installed package has made, such as what jax.vmap returns, else ""."""
    module = function.__globals__.get("__name__")
    version = package_of(module) if isinstance(module, str) else None
    return "" if version is None else f"{module}.{function.__code__.co_qualname}{version}"


def function_parts(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """(word, content) of all that decides what a function computes."""
    yield "defaults", function.__defaults__
    yield "keywords", function.__kwdefaults__
    code, cells = function.__code__, {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            cells[name] = "a cell that is still empty"
    if inner_name(function):
        yield "closure", cells
        return
    yield "python", sys.version_info[:2]
    yield "code", code
    seen, attributes = {**_globals(code, function.__globals__), **cells}, _attributes(code)
    for name, value in sorted(seen.items()):
        if not isinstance(value, types.ModuleType):
            yield name, value
            continue
        for path, part in _reached(value, attributes, set()):
            yield f"{name} {path}", part


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _attributes(code: types.CodeType) -> set[str]:
    return {name for each in _codes(code) for name in each.co_names}


def _globals(code: types.CodeType, scope: dict[str, Any]) -> dict[str, object]:
    """What the names of globals, builtins and imports in `code` stand for now."""
    values: dict[str, object] = {}
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname in _GLOBAL:
                here = scope.get(step.argval, vars(builtins).get(step.argval, "a name without a value"))
                values[step.argval] = here
            elif step.opname == "IMPORT_NAME":
                values[f"import {step.argval}"] = _imported(step.argval, scope.get("__package__") or "")
    return values


def _imported(name: str, package: str) -> types.ModuleType | str:
    """A module that a function imports when it is called; a relative one is looked for in its `package`."""
    for full in (name, f"{package}.{name}".rstrip("."), package):
        if full in sys.modules:
            return sys.modules[full]
    try:
        return importlib.import_module(name)
    except ImportError:
        return "a module that is not there"


def _reached(module: types.ModuleType, names: set[str], met: set[int]) -> Iterator[tuple[str, object]]:
    """An installed module by its name, a user's by those of its contents that are named."""
    met.add(id(module))
    if package_of(module.__name__) is not None:
        yield "", module
        return
    for name in sorted(names & vars(module).keys()):
        part = vars(module)[name]
        if not isinstance(part, types.ModuleType):
            yield name, part
        elif id(part) not in met:
            yield from ((f"{name}.{rest}", content) for rest, content in _reached(part, names, met))


def code_parts(code: types.CodeType) -> tuple:
    """The content of compiled code, without places in files."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, getattr(code, "co_exceptiontable", b""), counts, names, code.co_consts


def class_parts(cls: type) -> Iterator[tuple[str, object]]:
    """(word, content) of a user's class: its bases, methods, constants and defaults."""
    yield "bases", (*cls.__bases__, type(cls))
    for name, value in sorted(vars(cls).items()):
        if name in _SKIPPED or isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
            continue
        if isinstance(value, types.FunctionType) and value.__code__.co_qualname.startswith("__create_fn__"):
            continue  # written by dataclasses, from the fields
        if isinstance(value, property):
            value = (value.fget, value.fset, value.fdel)
        elif isinstance(value, functools.cached_property):
            value = value.func
        elif isinstance(value, staticmethod | classmethod):
            value = (type(value).__name__, value.__func__)
        yield name, value
    for field in vars(cls).get("__dataclass_fields__", {}).values():
        if field.default_factory is not dataclasses.MISSING:
            yield f"default of {field.name}", field.default_factory


def is_cached(cls: type, name: str) -> bool:
    """Whether an attribute is a value that a `cached_property` has kept: it follows from the others."""
    return any(isinstance(vars(each).get(name), functools.cached_property) for each in cls.__mro__)
