"""LaTeX as MathML, which browsers show by themselves, with the spaces and signs that the converter gets wrong."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from .._base.extra import needing

_MATH = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", _MATH[1:-1])
_TIGHT = ("‖", "|", "/", "⟨", "⟩")
_DOTS = ("…", "⋯")
_LETTERS = ("∞",)  # letters that the converter takes for operators
_LIMITS = ("max", "min", "sup", "inf", "lim")
_UNDER = ("argmin", "argmax")
_PRIMES = {"′": "′", "″": "′′", "‴": "′′′"}  # one sign for two is hardly seen


def typeset(latex: str, display: str = "inline") -> str:
    with needing("a formula"):
        from latex2mathml.converter import convert
    root = ElementTree.fromstring(convert(latex, display=display))
    for each in list(root.iter()):
        _sign(each)
        _prime(each)
        _limit(each, display)
    for row in [each for each in root.iter() if each.tag in (f"{_MATH}mrow", f"{_MATH}math")]:
        _signed(row)
        _spaced(row)
    return ElementTree.tostring(root, encoding="unicode")


def _sign(each: ElementTree.Element) -> None:
    """Norms that neither grow nor sink, quotients without gaps, dots and infinity without the spaces of operators."""
    if each.text in _TIGHT and each.get("stretchy") != "true":
        each.tag = f"{_MATH}mo"
        each.attrib |= {"stretchy": "false", "lspace": "0", "rspace": "0"}
    elif each.text in _DOTS:
        each.attrib |= {"lspace": "0.1em", "rspace": "0.1em"}
    elif each.text == "~":
        each.tag, each.text = f"{_MATH}mo", "∼"
    elif each.text in _LETTERS or (
        each.tag == f"{_MATH}mo" and each.text not in _LIMITS and _is_function(each)
    ):
        each.tag = f"{_MATH}mi"
        each.attrib.clear()


def _prime(each: ElementTree.Element) -> None:
    """A prime stands beside its letter: as a superscript it is raised twice, and tiny."""
    if each.tag != f"{_MATH}msup" or each[1].text not in _PRIMES:
        return
    each.tag, each[1].tag, each[1].text = f"{_MATH}mrow", f"{_MATH}mo", _PRIMES[each[1].text]
    each[1].attrib |= {"lspace": "0", "rspace": "0"}


def _limit(each: ElementTree.Element, display: str) -> None:
    """What is minimized over stands below argmin."""
    if display == "block" and each.tag == f"{_MATH}msub" and each[0].text in _UNDER:
        each.tag = f"{_MATH}munder"


def _signed(row: ElementTree.Element) -> None:
    """A minus that begins a term is a sign, without the spaces of a difference."""
    for one, other in pairwise(list(row)):
        if (
            other.tag == one.tag == f"{_MATH}mo"
            and other.text in ("−", "-")
            and one.text not in (")", "]", "|")
        ):
            other.set("form", "prefix")


def _spaced(row: ElementTree.Element) -> None:
    """Thin spaces around the names of functions."""
    for k, (one, other) in reversed(list(enumerate(pairwise(list(row)), 1))):
        near = not {f"{_MATH}mo", f"{_MATH}mspace"} & {one.tag, other.tag}
        if near and (_is_function(one) or _is_function(other)):
            row.insert(k, ElementTree.Element(f"{_MATH}mspace", width="0.17em"))


def _is_function(item: ElementTree.Element) -> bool:
    """`log`, also with an index."""
    name = item[0] if item.tag in (f"{_MATH}msub", f"{_MATH}msup", f"{_MATH}munder") else item
    return name.tag in (f"{_MATH}mi", f"{_MATH}mo") and bool(re.fullmatch("[A-Za-z]{2,}", name.text or ""))
