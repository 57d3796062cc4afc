"""The signatures that the site shows are those that Python sees: names, kinds and defaults of every public name.

`docs/site_signatures.py` makes them from the source, without importing it.
"""

import ast
import enum
import functools
import html
import importlib
import inspect
import math
import re
import sys

import griffe
import pytest

from support.docs_scripts import DOCS, script

hooks = script("site_hooks")
NAMES = sorted(set(hooks.NAMES.values()))  # pages with anchors: each name once, also those that `nk` repeats
NOT_SHOWN = inspect.Parameter.empty  # a default that no text stands for


def real(name: str) -> object:
    """What `nk.name` is."""
    found = importlib.import_module("nearkernel")
    for part in name.split("."):
        path = f"{found.__name__}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(path)
    return found


def signature(value: object) -> list[tuple]:
    """Name, kind and default of each parameter that is not private."""
    return [
        (one.name, one.kind.description, one.default)
        for one in inspect.signature(value).parameters.values()
        if not one.name.startswith("_")
    ]


def only_returned(value: object) -> bool:
    """Members of an enumeration, errors, and results, whose docstring lists fields instead: users make none."""
    return inspect.isclass(value) and (
        issubclass(value, enum.Enum | Exception) or "**Fields" in (value.__doc__ or "")
    )


def meant(default: object) -> object:
    """The value that a text stands for, as far as it says one."""
    if default is None:
        return NOT_SHOWN
    try:
        return eval(str(default), {"math": math, "inf": math.inf})
    except NameError:
        return str(default)


@functools.cache
def shown_package():
    extensions = griffe.load_extensions(DOCS / "site_signatures.py")
    return griffe.load(
        "nearkernel", search_paths=[DOCS.parent / "src"], extensions=extensions, resolve_aliases=True
    )


def shown(item) -> list[tuple]:
    return [
        (one.name, one.kind.value, NOT_SHOWN if "variadic" in one.kind.value else meant(one.default))
        for one in item.parameters
    ]


def agrees(ours: list[tuple], theirs: list[tuple]) -> bool:
    """Defaults that only run-time knows, a function or the result of one, must only be there in both."""
    if [one[:2] for one in ours] != [one[:2] for one in theirs]:
        return False
    for (*_, text), (*_, value) in zip(ours, theirs, strict=True):
        plain = value is NOT_SHOWN or isinstance(value, int | float | str | tuple | None)
        if (text is NOT_SHOWN) != (value is NOT_SHOWN) or (plain and text != value):
            return False
    return True


@pytest.mark.parametrize("place", NAMES)
def test_the_site_shows_the_signature_that_python_sees(place):
    name = place.partition("#nearkernel.")[2]
    value, item = real(name), shown_package()[name].final_target
    if not callable(value):
        return
    if item.is_class:
        init = item.members.get("__init__")
        ours = shown(init)[1:] if init is not None else []
        theirs = [] if only_returned(value) and not ours else signature(value)
        assert agrees(ours, theirs), (ours, theirs)
        for method, one in item.members.items():
            one = one.final_target if one.is_alias else one
            if one.is_function and one.docstring and (method == "__call__" or method[0] != "_"):
                bound = inspect.getattr_static(value, method)
                theirs = signature(getattr(value, method) if isinstance(bound, classmethod) else bound)
                ours = shown(one)[isinstance(bound, classmethod) :]
                assert agrees(ours, theirs), (method, ours, theirs)
    else:
        assert agrees(shown(item), signature(value)), (shown(item), signature(value))


@pytest.mark.parametrize("page", sorted({place.partition("#")[0] for place in NAMES}))
def test_pages_of_the_built_site_have_these_signatures(page):
    """The names of parameters in the pages that `make docs` built."""
    path = DOCS.parent / "site" / page
    if not path.exists():
        pytest.skip("the site is not built: make docs")
    blocks = re.split(r'<h3 id="nearkernel\.([\w.]+)"', path.read_text("utf-8"))[1:]
    found = dict(zip(blocks[::2], blocks[1::2], strict=True))
    assert set(found) == {
        place.partition("#nearkernel.")[2] for place in NAMES if place.startswith(f"{page}#")
    }
    for name, block in found.items():
        value, head = real(name), block.partition('<div class="doc doc-contents')[0]
        codes = re.findall(r'<div class="doc-signature[^>]*>(.*?)</div>', head, re.DOTALL)
        texts = [html.unescape(re.sub(r"<[^>]+>", "", code)).strip() for code in codes]
        if not callable(value) or (only_returned(value) and all(text.endswith("()") for text in texts)):
            continue
        names = [one for one, *_ in signature(value)]
        assert [set(names_of(text)) for text in texts or ["f()"]][-1:] == [set(names)], (name, texts)
        assert all(set(names_of(text)) <= set(names) for text in texts), (name, texts)  # overloads


def names_of(text: str) -> list[str]:
    """Those of the parameters of a signature."""
    written = ast.parse(f"def {text}: pass").body[0].args
    plain = (*written.posonlyargs, *written.args, *written.kwonlyargs)
    return [one.arg for one in (*plain, written.vararg, written.kwarg) if one]


def test_what_is_no_field_is_not_shown_as_one(tmp_path):
    """Constants of a class and fields that only its subclasses have; a field that needs its name needs it here, too."""
    (tmp_path / "made.py").write_text(
        "import equinox as eqx\nfrom typing import ClassVar\nMOST = 12\n\n"
        "class Base(eqx.Module):\n    unit: eqx.AbstractClassVar[str]\n    seed: eqx.AbstractVar[int]\n"
        "    kind: ClassVar[str] = 'a'\n\n"
        "class Last(Base):\n    size: float\n    most: int = eqx.field(default=3, kw_only=True)\n    seed: int = 0\n"
        "    unit = 'time'\n\n    def at(self, time: float = MOST):\n        'Later.'\n",
        "utf-8",
    )
    # The extension adds theory to names of nearkernel, which this package has none of.
    signatures = sys.modules.get("site_signatures") or script("site_signatures")
    pkg = griffe.load("made", search_paths=[tmp_path])
    line = [pkg["Base"], pkg["Last"]]
    found = [(one.name, one.kind.value, one.default) for one in signatures.fields(line)]
    either, by_name = "positional or keyword", "keyword-only"
    assert found == [("size", either, None), ("seed", either, "0"), ("most", by_name, "3")]
    assert signatures.constant(pkg["Last.at"].parameters[1].default, pkg) == "12"
