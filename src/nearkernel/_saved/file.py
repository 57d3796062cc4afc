"""One file per model: a zip archive, not compressed, of `model.json` and NumPy arrays, each with its checksum."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from .._base.files import missing, write_alone
from .._base.types import Unchecked
from .._run.memory import require_fits
from .codec import Decoder, Encoder

FORMAT, VERSION = "nearkernel model", 2
_READ = (1, 2)  # 1 named classes by their modules
_MODEL, _SUM = "model.json", "model.json.sha256"
_DATE = (1980, 1, 1, 0, 0, 0)  # of every entry, so that equal models are equal files


def write_model(model: object, path: Path, about: dict[str, object] | None = None) -> None:
    """`model` and JSON data `about` it in one file, which is whole or absent."""
    write_alone(path, model_bytes(model, about))


def model_bytes(model: object, about: dict[str, object] | None = None) -> bytes:
    """The same as bytes."""
    from .. import __version__

    encoder = Encoder()
    tree = encoder.node(model)
    entries = {f"{name}.npy": _array_bytes(array) for name, array in encoder.arrays.items()}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"nearkernel {__version__}",
        "arrays": {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()},
        "about": about or {},
        "model": tree,
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {_MODEL: text, _SUM: hashlib.sha256(text).hexdigest().encode(), **entries}.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
    return held.getvalue()


def read_model(path: str | os.PathLike) -> tuple[Unchecked, dict[str, Unchecked]]:
    """The model and what was written about it. Nothing that the file holds is run."""
    from sklearn.base import BaseEstimator

    from .._base.check import shown

    file = Path(path)
    if not file.is_file():
        raise ValueError(missing(file))
    if not zipfile.is_zipfile(file):
        raise ValueError(
            f"{file} is not a model file: write one with `nk.save` or `nearkernel predict --save`."
        )
    require_fits(2 * file.stat().st_size, str(file), "use a machine with more memory")
    try:
        document, arrays = _checked(file)
        model = Decoder(arrays).value(document["model"])
        if not isinstance(model, BaseEstimator):
            raise _Refused(f"holds no estimator, but {shown(model)}.")
        return model, document["about"]
    except _Refused as error:
        raise ValueError(f"{file} {error}") from None
    except Exception as error:  # a damaged file raises nearly anything
        raise ValueError(f"{file} is damaged or not a model file: {_one_line(error)}.") from error


class _Refused(Exception):
    pass


def _checked(file: Path) -> tuple[dict[str, Unchecked], dict[str, np.ndarray]]:
    with zipfile.ZipFile(file) as archive:
        if _MODEL not in archive.namelist():
            raise _Refused("is not a model file: write one with `nk.save` or `nearkernel predict --save`.")
        if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
            raise ValueError("it is compressed, which model files are not")
        text = archive.read(_MODEL)
        if hashlib.sha256(text).hexdigest() != archive.read(_SUM).decode():
            raise ValueError("the checksum of model.json is wrong")
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("model.json is not an object")
        for name in ("arrays", "about"):
            if not isinstance(document[name], dict):
                raise ValueError(f"its {name!r} is not an object")
        if document["format"] != FORMAT:
            raise ValueError("its format has another name")
        if document["version"] not in _READ:
            raise _Refused(
                f"has format {document['version']}; this version reads {_READ[0]} to {_READ[-1]}: install the "
                f"nearkernel that wrote it ({document['written_by']}), or a newer one."
            )
        arrays = {}
        for name, expected in document["arrays"].items():
            data = archive.read(name)
            if hashlib.sha256(data).hexdigest() != expected:
                raise ValueError(f"the checksum of {name} is wrong")
            arrays[name.removesuffix(".npy")] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return document, arrays


def _array_bytes(array: np.ndarray) -> bytes:
    held = io.BytesIO()
    np.lib.format.write_array(held, array, allow_pickle=False)  # keeps the order of a Fortran array
    return held.getvalue()


def _one_line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:160].rstrip(".")
