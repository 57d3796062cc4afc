"""Every parameter of a public function or class is documented, and nothing else is documented as one.

Classes that users only read have **Fields:**; theirs must exist. Claims are hashed with their verdicts and left out.
"""

import enum
import importlib
import inspect
import re

import pytest

import nearkernel as nk

MODULES = (
    "activations",
    "models",
    "layers",
    "kernels",
    "scale",
    "dynamics",
    "statistics",
    "geometry",
    "examples",
    "estimators",
)


def public() -> dict[str, object]:
    """All public functions and classes by name, each once."""
    found: dict[str, object] = {
        f"nk.{name}": getattr(nk, name) for name in ("precision", "progress", "save", "load")
    }
    for module in MODULES:
        for name, value in vars(importlib.import_module(f"nearkernel.{module}")).items():
            if callable(value) and not name.startswith("_") and value not in found.values():
                found[f"{module}.{name}"] = value
    return found


def text_of(value: object) -> str:
    """The docstring of a function or of a class itself, not one that it inherits."""
    return inspect.cleandoc(
        vars(value).get("__doc__") or "" if inspect.isclass(value) else value.__doc__ or ""
    )


def parameters(value: object) -> set[str]:
    return {name for name in inspect.signature(value).parameters if not name.startswith("_")}


def listed(text: str, section: str) -> set[str]:
    """Names before the colon of each item of a section that is a list: "- `a`, `b` > 0: ..."."""
    block = re.search(rf"\*\*{section}:\*\*\n\n((?:[-|].*\n(?: .*\n?|\n(?=- ))*)+)", text + "\n")
    heads = re.findall(r"^- ((?:`\w+`[^:;`]*)+)[:;]", block[1], re.MULTILINE) if block else []
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


PUBLIC = public()


def test_names_of_a_list_are_read():
    text = "One line.\n\n**Arguments:**\n\n- `a`: first, of `c`.\n- `b` > 0 and `d`: more\n  lines.\n\n**Returns:** e."
    assert listed(text, "Arguments") == {"a", "b", "d"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_documented(name):
    value = PUBLIC[name]
    text = text_of(value)
    assert text, f"{name} has no docstring"
    if inspect.isclass(value) and (issubclass(value, enum.Enum | Exception) or "**Fields" in text):
        fields = listed(text, "Fields")
        known = set(dir(value)) | set(getattr(value, "__dataclass_fields__", {}))
        assert fields <= known, f"{name} has no {fields - known}"
        return
    missing = {each for each in parameters(value) if not re.search(rf"`{each}\b", text)}
    assert not missing, f"{name} does not document {sorted(missing)}"
    strange = listed(text, "Arguments") - parameters(value)
    assert not strange, f"{name} has no parameter {sorted(strange)}"
