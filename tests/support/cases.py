"""Which cases of a law run every time, and which only before a change is merged."""

from collections.abc import Collection, Iterable

import pytest


def few(values: Iterable, keep: int | Collection) -> list:
    """Parameters of a test, each of which compiles programs of its own: `make test` takes the first `keep`, or those
    in `keep`; `make test-merge` takes the others."""
    values = list(values)
    kept = values[:keep] if isinstance(keep, int) else [value for value in values if value in keep]
    return [value if any(value is each for each in kept) else _at_a_merge(value) for value in values]


def _at_a_merge(value):
    if hasattr(value, "marks"):
        return value if value.marks else value._replace(marks=[pytest.mark.merge])
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.merge)
