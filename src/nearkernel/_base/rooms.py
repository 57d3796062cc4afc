"""Names of the last release: they still work, and say what they are called now."""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def moved(room: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a room: `names` leads from old names to new ones, "statistics.CriticalResult"."""

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        new = names[name]
        short = room.replace("nearkernel", "nk", 1)
        warnings.warn(
            f"{short}.{name} is now nk.{new}; the old name will be removed in 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        module, _, last = new.rpartition(".")
        return getattr(importlib.import_module(f"nearkernel.{module}" if module else "nearkernel"), last)

    return found


def renamed(**names: str) -> Callable[[_F], _F]:
    """Arguments of a function by their old names: `@renamed(X="x")`."""

    def decorator(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old in kwargs:
                    warnings.warn(
                        f"`{old}` of {function.__name__} is now `{new}`; the old name will be removed in 0.4.",
                        DeprecationWarning,
                        stacklevel=2,
                    )
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        wrapped.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return wrapped  # type: ignore[return-value]

    return decorator
