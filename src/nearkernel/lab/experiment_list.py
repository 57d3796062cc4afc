"""The experiments, in the order of the page."""

import importlib
import inspect

from .._base.spelling import nearest
from .experiment import Experiment

GROUPS = {
    "Random networks": ("criticality", "regions"),
    "Kernels": ("circle", "regression", "finite-width"),
    "Features": ("quadratic", "lazy-rich", "catapult", "bias", "deep-linear"),
    "Data": ("learning-curve", "images", "own-data"),
}
NAMES = tuple(name for names in GROUPS.values() for name in names)


def group(name: str) -> str:
    """What a page is about."""
    return next(words for words, names in GROUPS.items() if name in names)


def find(name: str) -> type[Experiment]:
    """The class of an experiment; its fields are the settings."""
    if name not in NAMES:
        raise ValueError(f"no experiment is named {name[:60]!r}.{nearest(name, list(NAMES))}")
    module = importlib.import_module(f"{__package__}.experiments.{name.replace('-', '_')}")
    return next(
        item
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, Experiment) and item.__module__ == module.__name__
    )
