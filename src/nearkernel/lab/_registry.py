"""The experiments, in the order of the page."""

import importlib
import inspect

from .._spelling import nearest
from ._experiment import Experiment

NAMES = (
    "regression",
    "criticality",
    "catapult",
    "quadratic",
    "circle",
    "regions",
    "bias",
    "deep-linear",
)


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
