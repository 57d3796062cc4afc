"""Functions of the package with their types checked while tests run: `NEARKERNEL_TYPES=1 pytest`.

Public functions answer bad arguments themselves, and tests read what they answer. So an argument of a wrong type is
an error only if the function takes it: whatever a function accepts, its annotation must allow. Shapes of jaxtyping are
compared within a call; lists and tables count as the arrays that they become. Numbers of NumPy are numbers.
"""

import ast
import dataclasses
import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
import types
import typing
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from beartype import BeartypeConf, FrozenDict
from beartype.door import is_bearable
from beartype.roar import BeartypeException
from jaxtyping import AbstractArray, jaxtyped

# Rooms whose annotations are true.
ROOMS = (
    "_base",
    "_run",
    "_saved",
    "_plots",
    "activations",
    "estimators",
    "geometry",
    "kernels",
    "models.expansion",
    "models.interop",
    "scale",
)
_PREFIXES = tuple(f"nearkernel.{room}." for room in ROOMS)
_CONF = BeartypeConf(
    hint_overrides=FrozenDict(
        {
            int: int | np.integer,
            float: float | int | np.number,
            bool: bool | np.bool_,
            complex: complex | float | int | np.number,
        }
    )
)


class Untrue(Exception):
    """An annotation that a value contradicts."""


def install() -> None:
    """From now on, modules of nearkernel are imported with their types checked."""
    loaded = [name for name in sys.modules if name.partition(".")[0] == "nearkernel"]
    assert not loaded, f"imported before their types could be checked: {loaded}"
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path, target=None):
        # beartype asks `ArrayLike` itself while it holds a lock.
        if name == "nearkernel._base.types" or not f"{name}.".startswith(_PREFIXES):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Decorates functions and classes; no bytecode is kept, since that of untyped runs has the same place."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(Path(path).read_bytes(), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.decorator_list.append(ast.copy_location(ast.Name("__typed__", ast.Load()), node))
            elif isinstance(node, ast.ClassDef):
                node.decorator_list.insert(0, ast.copy_location(ast.Name("__typed__", ast.Load()), node))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__typed__"] = typed
        super().exec_module(module)


def typed(thing):
    """A function whose arguments and result are checked, or a class whose fields are."""
    if inspect.isclass(thing):
        return _class(thing)
    if not inspect.isfunction(thing) or not thing.__annotations__ or inspect.isgeneratorfunction(thing):
        return thing  # a generator looks at its arguments later
    signature = inspect.signature(thing)
    names = [p.name for p in signature.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]
    several = {p.name for p in signature.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    where = f"{thing.__module__}.{thing.__qualname__}"
    hints = functools.cache(lambda: _hints(thing.__annotations__, thing.__globals__))

    @functools.wraps(thing)
    def checked(*args, **kwargs):
        __tracebackhide__ = True
        known = hints()
        if not known:
            return thing(*args, **kwargs)
        with jaxtyped("context"):
            wrong = None
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if name in known and name not in several and not allows(known[name], value):
                    wrong = f"`{name}` of {where} is {known[name]}, and takes {_shown(value)}"
            result = thing(*args, **kwargs)
            if wrong:
                raise Untrue(wrong)
            if "return" in known and result is not NotImplemented and not allows(known["return"], result):
                raise Untrue(f"{where} returns {_shown(result)}, not {known['return']}")
            return result

    return checked


def _class(cls: type) -> type:
    """Fields are checked after the class has looked at them itself."""
    if not dataclasses.is_dataclass(cls):
        return cls
    hints = functools.cache(
        lambda: _hints(vars(cls).get("__annotations__", {}), vars(sys.modules[cls.__module__]))
    )

    def check(self) -> None:
        for name, hint in hints().items():
            value = vars(self).get(name)
            if name in vars(self) and not allows(hint, value):
                raise Untrue(f"field `{name}` of {cls.__qualname__} is {hint}, and takes {_shown(value)}")

    before = "__check_init__" if issubclass(cls, eqx.Module) else "__init__"
    own = vars(cls).get(before)

    def checked(self, *args, **kwargs) -> None:
        if own is not None:
            own(self, *args, **kwargs)
        check(self)

    if own is not None:
        checked = functools.wraps(own)(checked)
    if own is not None or before == "__check_init__":
        type.__setattr__(cls, before, checked)
    return cls


def allows(hint: object, value: object) -> bool:
    """Whether an annotation allows a value; lists and tables of numbers count as arrays."""
    if isinstance(value, jax.ShapeDtypeStruct | jax.core.AbstractValue) or type(value) is object:
        return True  # what stands for an array while JAX looks for shapes
    try:
        if _has_shape(hint) and not hasattr(value, "shape") and _becomes_array(value):
            value = np.asarray(value)
        return is_bearable(value, hint, conf=_CONF)
    except BeartypeException:
        return True  # a hint that cannot be checked at run time
    except (TypeError, ValueError):
        return False  # no array


def _becomes_array(value: object) -> bool:
    return hasattr(value, "__array__") or isinstance(value, list | tuple | float | int)


def _has_shape(hint: object) -> bool:
    if inspect.isclass(hint) and not isinstance(hint, types.GenericAlias):
        return issubclass(hint, AbstractArray)
    return any(map(_has_shape, typing.get_args(hint)))


def _hints(annotations: dict[str, object], scope: dict[str, object]) -> dict[str, object]:
    """Annotations that say something. A name that only type checkers import is not looked for."""
    known = {}
    for name, hint in annotations.items():
        try:
            hint = eval(hint, scope) if isinstance(hint, str) else hint
        except NameError:
            continue
        abstract = typing.get_origin(hint) is typing.ClassVar or "AbstractVar" in str(hint)
        if hint is not typing.Any and not abstract and not isinstance(hint, typing.TypeVar):
            known[name] = type(None) if hint is None else hint
    return known


def _shown(value: object) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__qualname__} of shape {shape}" if shape is not None else f"{value!r:.200}"
