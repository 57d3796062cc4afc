"""The files of the page, read once; each is also kept compressed, for the plotting library is large."""

import dataclasses
import functools
import gzip
import importlib.util
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@dataclasses.dataclass(frozen=True)
class File:
    kind: str
    plain: bytes
    packed: bytes

    def body(self, packed: bool) -> bytes:
        return self.packed if packed else self.plain

    def headers(self, packed: bool) -> Mapping[str, str]:
        return {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if packed else {})}


@functools.cache
def static() -> Mapping[str, File]:
    """Files by name: those of the lab, the look that it shares with the reports, and the plotting library."""
    own = [
        path for path in files(__package__).joinpath("static").iterdir() if Path(path.name).suffix in _TYPES
    ]
    look = files("nearkernel").joinpath("_look", "look.css")
    return {path.name: _read(path.name, path.read_bytes()) for path in (*own, look)}


@functools.cache
def plotly() -> File:
    found = importlib.util.find_spec("plotly")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "package_data" / "plotly.min.js"
    return _read(path.name, path.read_bytes())


def _read(name: str, content: bytes) -> File:
    return File(_TYPES[Path(name).suffix], content, gzip.compress(content, 6, mtime=0))
