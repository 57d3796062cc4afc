"""Text files in the usual encodings, as UTF-8."""

from __future__ import annotations

import codecs

# The longer marks first: that of UTF-32 begins as that of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PACKED = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive or an Excel file"),
    (b"PAR1", "Parquet"),
)
_UNPACK = "unpack it, or give it the ending it should have (.xlsx, .npz, .parquet)"


def utf8(data: bytes, name: str) -> tuple[bytes, str]:
    """The text of the file `name` in UTF-8, and its encoding if that had to be guessed."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(
                data, encoding, name, f"begins as {encoding.upper()} text, but continues differently"
            ), ""
    for mark, what in _PACKED:
        if data.startswith(mark):
            raise ValueError(f"{name} is {what}, not text: {_UNPACK}.")
    if b"\0" in data[:4096]:
        encoding = "utf-16-le" if data[1:4096:2].count(0) >= data[:4096:2].count(0) else "utf-16-be"
        text = _decoded(data, encoding, name, "has zero bytes, so it is not text")
        if b"\0" in text[:4096] or text[:4096].count(b"\n") == 0:
            raise ValueError(f"{name} has zero bytes, so it is not text: save it again as UTF-8.")
        return text, encoding.upper()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace").encode("utf-8"), "Windows-1252"
    return data, ""


def _decoded(data: bytes, encoding: str, name: str, problem: str) -> bytes:
    try:
        return data.decode(encoding).encode("utf-8")
    except UnicodeError:
        raise ValueError(f"{name} {problem}: save it again as UTF-8.") from None
