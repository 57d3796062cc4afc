"""`nk.save` and `nk.load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def save(model: object, path: str | os.PathLike) -> None:
    """Writes a fitted estimator to a file of JSON and arrays; `nk.load` restores it to the last bit.

    **Arguments:** `model`, a fitted estimator of `nk.estimators`, or a scikit-learn `Pipeline` of them with scalers;
    `path`, e.g. "model.nk". Custom functions cannot be saved: use names, such as `activation="erf"`.
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    from .file import write_model

    if not isinstance(model, BaseEstimator) or isinstance(model, type):
        raise TypeError(
            f"`model` must be a fitted estimator, e.g. AutoRegressor().fit(x, y); got {_shown(model)}."
        )
    check_is_fitted(model)
    target = _path(path)
    if not target.parent.is_dir():
        raise ValueError(f"`path` {str(target)!r}: the folder {str(target.parent)!r} does not exist.")
    if target.is_dir():
        raise ValueError(f"`path` {str(target)!r} is a folder: name a file, e.g. 'model.nk'.")
    write_model(model, target)


def load(path: str | os.PathLike) -> Any:
    """Reads the fitted estimator that `nk.save`, an estimator's `save` or `nearkernel predict --save` wrote to
    `path`.

    Checksums are verified, and no code from the file is run, so it is safe to load files from untrusted sources.
    """
    from .file import read_model

    return read_model(_path(path))[0]


def _path(path: str | os.PathLike) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be the name of a file, e.g. 'model.nk'; got {_shown(path)}.")
    return Path(path)


def _shown(value: object) -> str:
    from .._base.check import shown

    return shown(value)
