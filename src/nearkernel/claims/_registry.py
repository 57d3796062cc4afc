"""Finds claims by their names: every public module of a topic's folder holds one."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

from .._base.spelling import nearest
from ._claim import Claim


@functools.cache
def modules() -> dict[str, str]:
    """Name -> module of every claim, by topic; nothing but the folders is looked at."""
    found = {}
    package = importlib.import_module(__package__)
    for topic in pkgutil.iter_modules(package.__path__):
        if topic.ispkg:
            inside = importlib.import_module(f"{__package__}.{topic.name}")
            for module in pkgutil.iter_modules(inside.__path__):
                if not module.name.startswith("_"):
                    found[module.name.replace("_", "-")] = f"{__package__}.{topic.name}.{module.name}"
    return found


def find(name: str) -> type[Claim]:
    """The claim of that name."""
    known = modules()
    if name not in known:
        raise ValueError(
            f"no claim is named {name[:60]!r}.{nearest(name[:60], list(known))} See `nearkernel claims list`."
        )
    module = importlib.import_module(known[name])
    for item in vars(module).values():
        if inspect.isclass(item) and issubclass(item, Claim) and item.__module__ == module.__name__:
            return item
    raise TypeError(f"{module.__name__} defines no subclass of Claim.")


def every() -> Iterator[type[Claim]]:
    """The classes of all claims, by topic and name."""
    return (find(name) for name in modules())
