"""What a stored matrix was made of, as text that is the same in every process.

Two kernels with the same text are the same kernel. So what has no content to compare is refused: a name or an address
could stand for two things.
"""

import dataclasses
import functools
import hashlib
import types
from collections.abc import Callable, Iterable

import jax
import numpy as np

from .._base.types import Unchecked
from .code import class_parts, code_parts, function_parts, inner_name, is_cached, package_of, public_name

_PLAIN = (bool, int, float, complex, str, bytes)


@dataclasses.dataclass(frozen=True)
class Named:
    """A function that stores identify by a name instead of its content.

    For functions that a store cannot compare, such as compiled functions and those that contain a lock, a file or a
    generator. A store trusts the name: change it when the function changes.

    **Arguments:** `name`; `function`, called unchanged: `nk.kernels.FeatureKernel(nk.scale.Named("spline, v2",
    phi))`.
    """

    name: str
    function: Callable

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"`name` of nk.scale.Named must be a non-empty string; got {self.name!r}.")
        if not callable(self.function):
            raise TypeError(
                f"`function` of nk.scale.Named must be a function; got {type(self.function).__name__}."
            )

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)


def hash_array(array: np.ndarray) -> str:
    """Of shape, type and every byte."""
    array = np.ascontiguousarray(array)
    digest = hashlib.sha256(f"{array.shape}{array.dtype.str}".encode())
    digest.update(array.data)
    return digest.hexdigest()[:32]


def describe(kernel: object) -> str:
    """A kernel with its settings, activations and parameters: arrays by their bytes, functions by their content."""
    try:
        return _Describer().text(kernel)
    except _NoContent as error:
        what = error.args[0]
    except RecursionError:
        what = "something nested too deeply"
    raise ValueError(
        f"`kernel`: a store cannot tell it from another kernel, because it contains {what}. Wrap the function that "
        'contains it, as in nk.scale.Named("a name", function), and change the name whenever the function changes.'
    )


class _NoContent(Exception):
    """Something that cannot be compared, in words."""


class _Describer:
    """One walk through one object."""

    def __init__(self) -> None:
        self._open: list[int] = []  # what contains what is described now: functions may call each other
        self._done: dict[int, tuple[str, object]] = {}  # the objects too, so that their ids stay theirs

    def text(self, thing: object) -> str:
        if thing is None or thing is Ellipsis or thing is NotImplemented:
            return repr(thing)
        if type(thing) in _PLAIN:
            return _plain(thing)
        if id(thing) in self._done:
            return self._done[id(thing)][0]
        if id(thing) in self._open:
            return f"<{len(self._open) - self._open.index(id(thing))} up>"
        self._open.append(id(thing))
        content = self._content(thing)
        self._open.pop()
        self._done[id(thing)] = content, thing
        return content

    def _content(self, thing: Unchecked) -> str:
        if isinstance(thing, Named):
            return f"Named({thing.name!r})"
        if isinstance(thing, np.generic | jax.Array) or type(thing) is np.ndarray:
            return self._array(thing)
        if type(thing) in (tuple, list):
            return f"({', '.join(map(self.text, thing))})"
        if type(thing) is dict:
            pairs = sorted((self.text(key), self.text(value)) for key, value in thing.items())
            return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        if type(thing) in (set, frozenset):
            return f"{{{', '.join(sorted(map(self.text, thing)))}}}"
        if isinstance(thing, types.CodeType):
            return _hashed(map(self.text, code_parts(thing)))
        if isinstance(thing, jax.tree_util.PyTreeDef):
            return f"tree {_hashed(map(self.text, (thing.node_data(), thing.children())))}"
        if isinstance(thing, types.ModuleType) and (version := package_of(thing.__name__)) is not None:
            return f"module {thing.__name__}{version}"
        if isinstance(thing, type):
            return self._class(thing)
        return self._function(thing) if callable(thing) else self._object(thing)

    def _array(self, thing: Unchecked) -> str:
        if jax.dtypes.issubdtype(thing.dtype, jax.dtypes.prng_key):
            return f"key {jax.random.key_impl(thing)} {hash_array(np.asarray(jax.random.key_data(thing)))}"
        array = np.asarray(thing)
        if array.dtype.hasobject:
            return f"objects {array.shape} {self.text(array.tolist())}"
        kind = str(array.dtype.descr if array.dtype.names else array.dtype.name)
        if array.ndim == 0 and array.dtype.kind in "biuf":
            return f"{kind} {array.item()!r}"
        return f"array {kind} {hash_array(array)}"

    def _function(self, thing: object) -> str:
        if name := public_name(thing):
            return name
        if isinstance(thing, functools.partial):
            return f"partial({', '.join(map(self.text, (thing.func, thing.args, thing.keywords)))})"
        if isinstance(thing, types.MethodType):
            return f"{self.text(thing.__self__)}.{self.text(thing.__func__)}"
        if isinstance(thing, types.FunctionType):
            parts = (f"{word} {self.text(part)}" for word, part in function_parts(thing))
            return f"{inner_name(thing) or thing.__name__} {_hashed(parts)}"
        if isinstance(thing, types.BuiltinMethodType) and not isinstance(thing.__self__, types.ModuleType):
            return f"{self.text(thing.__self__)}.{thing.__name__}"
        if type(thing).__module__.partition(".")[0] in ("jaxlib", "functools"):
            inside = getattr(thing, "__wrapped__", None)  # jax.jit and functools.cache change no value
            if inside is not None:
                return self.text(inside)
        return self._object(thing)

    def _class(self, thing: type) -> str:
        name = public_name(thing)
        if name.startswith("nearkernel."):
            return thing.__qualname__
        return name or f"{thing.__name__} {_hashed(f'{w} {self.text(p)}' for w, p in class_parts(thing))}"

    def _object(self, thing: object) -> str:
        """By its class and its state: the fields of a dataclass, or else what pickling keeps."""
        of = self.text(type(thing))
        if dataclasses.is_dataclass(thing):
            names = [field.name for field in dataclasses.fields(thing)]
            names += sorted(set(getattr(thing, "__dict__", ())) - set(names))
            own, fields = type(thing).__module__.startswith("nearkernel."), []
            for name in names:
                value = getattr(thing, name, None)
                # An id of flax says which instance it is, not what it holds.
                if not is_cached(type(thing), name) and type(value).__module__ != "flax.ids":
                    fields.append(f"{name}={(own and _number(value)) or self.text(value)}")
            return f"{of}({', '.join(fields)})"
        try:
            made = thing.__reduce_ex__(2)
        except Exception:
            made = ""
        if isinstance(made, str):  # "", or a name that says nothing of the content
            raise _NoContent(
                f"a {type(thing).__module__}.{type(thing).__qualname__}, whose content is hidden"
            )
        maker, arguments, state, *items = (*made, None, None, None)[:5]
        if isinstance(state, dict):
            state = {key: value for key, value in state.items() if not is_cached(type(thing), key)} or None
        items = [each and list(each) for each in items]
        return f"{of} {_hashed(map(self.text, (maker, arguments, state, items)))}"


def _plain(thing: object) -> str:
    text = repr(thing)
    return text if len(text) <= 200 else f"{type(thing).__name__} {_hashed([text])}"


def _number(value: Unchecked) -> str:
    """A setting of a kernel by its value, so that a length of 2 is one of 2.0; "" for what is not a number."""
    if isinstance(value, bool | np.bool_) or np.ndim(value):
        return ""
    if isinstance(value, int | float) or (
        isinstance(value, np.generic | np.ndarray | jax.Array)
        and jax.dtypes.issubdtype(value.dtype, np.number)
    ):
        number = complex(value)
        return repr(number.real) if number == value and not number.imag else ""
    return ""


def _hashed(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
