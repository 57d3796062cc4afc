"""Texts of strangers, such as names of columns, on a terminal or a page: none moves a cursor or turns lines around."""

import html

_INSTEAD = "\N{REPLACEMENT CHARACTER}"
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_TURNS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]  # to the left or the right, until told otherwise
_TABLE = dict.fromkeys((*_CONTROLS, *_TURNS), _INSTEAD) | {ord(each): each for each in "\n\t"}


def printable(text: str) -> str:
    """`text` with a sign in place of each character that is an instruction."""
    return text.translate(_TABLE)


def escape(text: str) -> str:
    """The same, as HTML."""
    return html.escape(printable(text))
