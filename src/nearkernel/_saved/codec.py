"""A fitted model as JSON and named arrays, and back: only classes of a fixed list are made, and none is called."""

from __future__ import annotations

import collections
import enum
import functools
import math
from typing import Any, NoReturn

import numpy as np

from .names import class_of, field_of, tag_of

_NUMBERS = "biufcUS"


class Unsaved(TypeError):
    """An object that a model file cannot hold."""


class Encoder:
    """Turns objects into JSON nodes; arrays are put aside in `arrays`, by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # so that no number of an object is given twice
        self._owner = "the model"

    def node(self, value: object, name: str = "") -> object:
        """`value` as JSON; `name` is that of the attribute it is found in."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.node(each, name) for each in value]
        if type(value) is tuple:
            return {"tuple": [self.node(each, name) for each in value]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {
                "named": self._class(type(value), name),
                "values": [self.node(each, name) for each in value],
            }
        if isinstance(value, dict) and type(value) in (dict, collections.Counter):
            kind = "counter" if type(value) is collections.Counter else "dict"
            return {kind: [[self.node(k, name), self.node(v, name)] for k, v in value.items()]}
        if isinstance(value, np.generic):
            return {"scalar": self._aside(np.asarray(value), name)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                return {
                    "objects": [self.node(each, name) for each in value.ravel()],
                    "shape": list(value.shape),
                }
            return {"array": self._aside(value, name)}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if _is_jax(value):
            return {"jax": self._aside(np.asarray(value), name)}
        if isinstance(value, enum.Enum):
            return {"enum": self._class(type(value), name), "name": value.name}
        return self._object(value, name)

    def _object(self, value: object, name: str) -> object:
        from ..dynamics.linear.solution import KeptCross

        if id(value) in self._seen:
            return {"same": self._seen[id(value)]}
        activation = _named_activation(value)
        if activation is not None:
            return {"activation": activation}
        text = self._class(type(value), name)
        number = self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        outside, self._owner = self._owner, type(value).__name__
        kept = {key: each for key, each in vars(value).items() if not _follows(value, key)}
        if isinstance(value, KeptCross):
            kept["_last"] = None  # what was last predicted is no part of a model
        state = [[key, self.node(each, key)] for key, each in kept.items()]
        self._owner = outside
        return {"object": text, "id": number, "state": state}

    def _class(self, cls: type, name: str) -> str:
        tag = tag_of(cls)
        if tag is None:
            kind = (
                "a function"
                if cls.__name__ in ("function", "PjitFunction", "ufunc", "method")
                else _path(cls)
            )
            raise Unsaved(
                f"`{name or 'model'}` of {self._owner} is {kind}, which a model file cannot hold: use names and "
                "numbers, and estimators of nearkernel."
            )
        return tag

    def _aside(self, array: np.ndarray, name: str) -> str:
        if array.dtype.kind not in _NUMBERS:
            raise Unsaved(
                f"`{name}` of {self._owner} holds {array.dtype}, which a model file cannot hold: use numbers or text."
            )
        key = f"{len(self.arrays)}"
        self.arrays[key] = array
        return key


class Decoder:
    """Builds objects from what `Encoder` wrote. Objects get their attributes; no method of theirs is called."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays
        self._made: dict[int, object] = {}

    def value(self, node: object) -> object:
        if isinstance(node, list):
            return [self.value(each) for each in node]
        if not isinstance(node, dict):
            return node
        kind = next(iter(node))
        return getattr(self, f"_{kind}")(node) if kind in _KINDS else self._unknown(kind)

    def _unknown(self, kind: str) -> NoReturn:
        raise ValueError(f"it contains {kind!r}, which this version does not support")

    def _float(self, node: dict) -> float:
        return float(node["float"])

    def _tuple(self, node: dict) -> tuple:
        return tuple(self.value(each) for each in node["tuple"])

    def _named(self, node: dict) -> tuple:
        cls = class_of(node["named"])
        if not issubclass(cls, tuple):
            self._unknown(node["named"])
        return tuple.__new__(cls, [self.value(each) for each in node["values"]])

    def _dict(self, node: dict) -> dict:
        return {self.value(k): self.value(v) for k, v in node["dict"]}

    def _counter(self, node: dict) -> collections.Counter:
        return collections.Counter({self.value(k): self.value(v) for k, v in node["counter"]})

    def _scalar(self, node: dict) -> object:
        return self._arrays[node["scalar"]][()]

    def _array(self, node: dict) -> np.ndarray:
        return self._arrays[node["array"]]

    def _objects(self, node: dict) -> np.ndarray:
        objects = np.empty(len(node["objects"]), dtype=object)
        objects[:] = [self.value(each) for each in node["objects"]]
        return objects.reshape(node["shape"])

    def _dtype(self, node: dict) -> np.dtype:
        dtype = np.dtype(str(node["dtype"]))
        return dtype if dtype.kind in _NUMBERS else self._unknown(dtype.str)

    def _jax(self, node: dict) -> object:
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True):
            return jnp.asarray(self._arrays[node["jax"]])

    def _enum(self, node: dict) -> object:
        cls: Any = class_of(node["enum"])
        if not issubclass(cls, enum.Enum):
            self._unknown(node["enum"])
        return cls[node["name"]]

    def _activation(self, node: dict) -> object:
        from .. import activations

        return activations.get(str(node["activation"]))

    def _same(self, node: dict) -> object:
        return self._made[node["same"]]

    def _object(self, node: dict) -> object:
        cls = class_of(node["object"])
        if issubclass(cls, enum.Enum | BaseException | tuple):
            self._unknown(node["object"])
        made: Any = object.__new__(cls)
        self._made[node["id"]] = made
        for key, each in node["state"]:
            if not isinstance(key, str) or key.startswith("__"):
                self._unknown(str(key))
            made.__dict__[field_of(key)] = self.value(each)
        return made


_KINDS = (
    "float", "tuple", "named", "dict", "counter", "scalar", "array", "objects", "dtype", "jax", "enum", "activation",
    "same", "object",
)  # fmt: skip


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _follows(value: object, key: str) -> bool:
    """Whether an attribute is what a `cached_property` has kept: it is computed again where it is needed."""
    return any(isinstance(vars(each).get(key), functools.cached_property) for each in type(value).__mro__)


def _named_activation(value: object) -> str | None:
    """The name under which `nk.activations.get` gives this very object."""
    from ..activations.averages.series import Series
    from ..activations.by_name import get, names
    from ..activations.formula import Formula

    if not isinstance(value, Series):
        return None  # the others are plain numbers
    known = [value.function.text] if isinstance(value.function, Formula) else names()
    return next((name for name in known if get(name) == value), None)


def _is_jax(value: object) -> bool:
    import jax

    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
