"""Text files in other encodings: read if their first bytes name the encoding, else refused with how to convert them."""

from __future__ import annotations

import codecs
import shlex

# The longer marks first: that of UTF-32 begins as that of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def utf8(data: bytes, name: str) -> bytes:
    """The text of the file `name` in UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode("utf-8")
            except UnicodeError:
                raise ValueError(
                    f"{name} begins as {encoding.upper()} text, but goes on otherwise: save it again as UTF-8."
                ) from None
    if b"\0" in data[:4096]:
        raise ValueError(
            f"{name} has zero bytes, so it is not text, or UTF-16 without a byte order mark. For the latter: "
            f"{_conversion('UTF-16LE', name)}."
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} is not UTF-8 (byte 0x{data[error.start]:02x} in line {line}), perhaps Latin-1 or Windows-1252: "
            f"{_conversion('WINDOWS-1252', name)}."
        ) from None
    return data


def _conversion(encoding: str, name: str) -> str:
    return f"convert it with `iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > new.csv`"
