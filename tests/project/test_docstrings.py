"""Every parameter of a public function, class or method is documented, and nothing else is documented as one.

Classes that users only read have **Fields:**; theirs must exist. Claims have statements
instead, which other tests read.
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


def methods() -> dict[str, tuple[type, object]]:
    """All public methods that exported classes define, with their class."""
    found = {}
    for name, value in PUBLIC.items():
        for method, raw in vars(value).items() if inspect.isclass(value) else ():
            if method.startswith("_") or type(raw).__module__.startswith("sklearn."):  # set_score_request
                continue
            function = inspect.unwrap(getattr(value, method))  # Equinox and decorators wrap it
            if inspect.isfunction(function) or inspect.ismethod(function):
                found[f"{name}.{method}"] = (value, function)
    return found


METHODS = methods()


def test_methods_are_found():
    assert {"dynamics.Solution.predict", "kernels.AbstractKernel.diag", "dynamics.Verdict.of"} <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_documented(name):
    """By the method, by the one that it overrides, or by its class."""
    kind, function = METHODS[name]
    method = name.rpartition(".")[2]
    texts = [vars(base)[method].__doc__ or "" for base in kind.__mro__ if method in vars(base)]
    assert any(texts), f"{name} has no docstring"
    said = "\n".join([*texts, *(base.__doc__ or "" for base in kind.__mro__ if base is not object)])
    given = parameters(function) - {"self", "cls"}
    missing = {each for each in given if not re.search(rf"`{each}\b", said)}
    assert not missing, f"{name} does not document {sorted(missing)}"
