"""What a stored matrix was made of, as text that is the same in every process."""

import dataclasses
import hashlib
from typing import Any

import numpy as np


def hash_array(array: np.ndarray) -> str:
    """Of shape, type and every byte."""
    array = np.ascontiguousarray(array)
    found = hashlib.sha256(f"{array.shape}{array.dtype.str}".encode())
    found.update(array.data)
    return found.hexdigest()[:32]


def describe(thing: Any) -> str:
    """A kernel, its settings, its activations and its parameters: arrays by their bytes, functions by their code."""
    if isinstance(thing, type):
        return thing.__qualname__
    if dataclasses.is_dataclass(thing):
        fields = (
            f"{field.name}={describe(getattr(thing, field.name))}" for field in dataclasses.fields(thing)
        )
        return f"{type(thing).__qualname__}({', '.join(fields)})"
    if isinstance(thing, dict):
        return "{" + ", ".join(f"{key}: {describe(thing[key])}" for key in sorted(thing)) + "}"
    if isinstance(thing, tuple | list):
        return f"({', '.join(map(describe, thing))})"
    if isinstance(thing, bool | str | None):
        return repr(thing)
    if np.ndim(thing) == 0 and (isinstance(thing, int | float) or hasattr(thing, "dtype")):
        return repr(float(thing))
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return f"array {hash_array(np.asarray(thing))}"
    if callable(thing):
        return _describe_function(thing)
    return repr(thing)


def _describe_function(function: Any) -> str:
    """By name and code, with what it closes over: the same file gives the same text."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    constants = [constant for constant in code.co_consts if isinstance(constant, int | float | str | None)]
    parts = (code.co_code.hex(), repr(constants), repr(code.co_names), describe(cells))
    return f"{name} {hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}"
