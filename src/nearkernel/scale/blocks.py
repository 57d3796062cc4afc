"""The description of a stored matrix: what stands in the `zarr.json` files, and nothing else is accepted there.

Strangers' stores are opened too, so nothing in them is believed: numbers are checked before memory is taken for them,
and no codec is looked up or run.
"""

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path

FORMAT = 2
MATRIX, INPUTS = "matrix", "x"
MOST_BLOCKS = 10**6
_MOST_BYTES = 2**24  # of a description
DTYPES = ("float64", "float32")


@dataclasses.dataclass(frozen=True)
class About:
    """What a matrix was made of, and how it is cut."""

    format: int
    version: str  # of nearkernel
    python: str
    kernel: str
    data: str  # hash of the inputs
    points: int
    features: int
    block: int
    dtype: str
    settings: dict | None

    def seal(self) -> str:
        """A checksum of all of it, which the blocks carry too."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def attributes(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "seal": self.seal()}

    def side(self) -> int:
        """Blocks from top to bottom."""
        return -(-self.points // self.block)

    def count(self) -> int:
        return self.side() * (self.side() + 1) // 2


def read_about(path: Path) -> About:
    """The description of the store at `path`, checked in every field; one line about what is wrong with it."""
    if not (path / "zarr.json").is_file():
        raise _foreign(path)
    root = _json(path, "zarr.json")
    attributes = root.get("attributes")
    if not isinstance(attributes, dict) or "format" not in attributes:
        raise _foreign(path)
    if attributes["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {_short(attributes['format'])}, but this nearkernel reads format {FORMAT}: build the "
            "matrix again, at another path."
        )
    names = [field.name for field in dataclasses.fields(About)]
    root.pop("consolidated_metadata", None)
    expected = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    if root != expected or {*names, "seal"} != {*attributes}:
        raise _damaged(path, "zarr.json")
    about = About(**{name: attributes[name] for name in names})
    try:
        sealed = attributes["seal"] == about.seal()
    except RecursionError:  # lists in lists in lists
        sealed = False
    if not sealed or not _plausible(about):
        raise _damaged(path, "zarr.json")
    for name, array in arrays(about).items():
        if _json(path, f"{name}/zarr.json") != _array(*array):
            raise _damaged(path, f"{name}/zarr.json")
    return about


def arrays(about: About) -> dict[str, tuple[tuple[int, int], tuple[int, int], str]]:
    """(shape, shape of a chunk, type) of each array of a store."""
    inputs, n = (about.points, about.features), about.points
    return {MATRIX: ((n, n), (about.block,) * 2, about.dtype), INPUTS: (inputs, inputs, "float64")}


def _plausible(about: About) -> bool:
    counts = (about.points, about.features, about.block)
    words = (about.version, about.python, about.kernel, about.data)
    return (
        all(type(count) is int and 0 < count < 2**40 for count in counts)
        and all(type(word) is str for word in words)
        and about.dtype in DTYPES
        and (about.settings is None or type(about.settings) is dict)
        and about.count() <= MOST_BLOCKS
    )


def _array(shape: tuple[int, int], chunk: tuple[int, int], dtype: str) -> dict[str, object]:
    """The description of an array, as Zarr writes it: the codecs are named here, and no others are read."""
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    inside = {"chunk_shape": [*chunk], "codecs": codecs, "index_codecs": codecs, "index_location": "end"}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [*shape],
        "data_type": dtype,
        "fill_value": "NaN",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*chunk]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "sharding_indexed", "configuration": inside}],
        "attributes": {},
        "storage_transformers": [],
    }


def _json(path: Path, name: str) -> dict[str, object]:
    file = path / name
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if file.stat().st_size <= _MOST_BYTES:
            content = json.loads(file.read_bytes())
            if isinstance(content, dict):
                return content
    raise _damaged(path, name)


def _foreign(path: Path) -> ValueError:
    return ValueError(f"{path} is not a kernel matrix of nearkernel.")


def _damaged(path: Path, name: str) -> ValueError:
    return ValueError(
        f"{path / name} is damaged or was not written by nearkernel: restore that file from a backup, or build the "
        "matrix again at another path."
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
