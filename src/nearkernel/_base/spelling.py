"""A hint for a misspelled name. It imports nothing heavy, so that a server without JAX can give it."""

import difflib
from collections.abc import Sequence


def nearest(value: object, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else ()
    return f" Did you mean {close[0]!r}?" if close else ""
