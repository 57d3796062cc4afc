"""A network from a file of the user's: FILE.py:NAME."""

from __future__ import annotations

import contextlib
import inspect
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearkernel as nk

from ..._base.files import missing
from ...models import AbstractModel
from ...models.interop.jax_libraries import is_of


def network_of(place: str, example: np.ndarray, trainable: str | None) -> tuple[AbstractModel, Any]:
    """Model and parameters at `place`."""
    found = _named(place)
    if inspect.isfunction(found):
        with _running(place):
            found = found()
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], AbstractModel):
        model, params = found
    elif is_of(found, "torch.nn.modules.module.Module"):
        return nk.from_torch(found, example, trainable=trainable)
    else:
        parts = found if isinstance(found, tuple) else (found,)
        model, params = nk.from_network(*parts[:2], in_shape=example.shape[1:])
    if trainable is not None:
        raise ValueError("--trainable is for PyTorch modules; choose parameters in the file of this network.")
    return model, params


@contextlib.contextmanager
def _running(place: str) -> Iterator[None]:
    """The user's own code: one line that says where, whatever it raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        said = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{place} cannot be run: {type(error).__name__}: {said}{line}.") from error


def _named(place: str) -> Any:
    file, _, name = place.rpartition(":")
    if not file or not name.isidentifier():
        raise ValueError(f"{place!r} must be FILE.py:NAME, such as net.py:network.")
    if not Path(file).is_file():
        raise ValueError(missing(Path(file)))
    with _running(file):
        names = runpy.run_path(file)
    if name not in names:
        known = [each for each in names if not each.startswith("_")]
        raise ValueError(f"{file} has no {name!r}; it has {', '.join(known[-8:]) or 'no names'}.")
    return names[name]
