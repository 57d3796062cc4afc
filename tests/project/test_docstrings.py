"""Every parameter of a public function, class or method is documented, and nothing else is documented as one.

Classes that users only read have **Fields:**; theirs must exist.
"""

import enum
import importlib
import inspect
import re

import nearkernel as nk


def public() -> dict[str, object]:
    """All public functions and classes by name, each once."""
    rooms = [name for name in dir(nk) if inspect.ismodule(getattr(nk, name))]
    found: dict[str, object] = {}
    for room in [*rooms, "lab", ""]:
        module = importlib.import_module(f"nearkernel.{room}".rstrip("."))
        for name in dir(module):
            value = getattr(module, name)
            ours = callable(value) and value.__module__.startswith("nearkernel")
            if ours and not any(value is other for other in found.values()):
                found[f"{room or 'nk'}.{name}"] = value
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


def in_a_line(text: str) -> set[str]:
    """Names that head the parts of a section in one paragraph: "**Arguments:** `a`: first; `b`: second."."""
    block = re.search(r"\*\*Arguments:\*\*(.*?)(?=\n\n\*\*|\n\n```|\Z)", text, re.DOTALL)
    return set(re.findall(r"(?:\A|;)\s*`(\w+)`", block[1])) if block and "\n- " not in block[1] else set()


PUBLIC = public()
# Claims have statements instead, experiments have sentences of the page: other tests read both.
_SAID_ELSEWHERE = ("claims.", "lab.")


def test_names_of_arguments_are_read():
    text = "One line.\n\n**Arguments:**\n\n- `a`: first, of `c`.\n- `b` > 0 and `d`: more\n  lines.\n\n**Returns:** e."
    assert listed(text, "Arguments") == {"a", "b", "d"} and not in_a_line(text)
    assert in_a_line("**Arguments:** `a`: first, of `c`; `b`: second.\n\n**Returns:** `d`.") == {"a", "b"}


def test_every_parameter_is_documented():
    wrong = []
    for name, value in PUBLIC.items():
        text = text_of(value)
        if not text:
            wrong.append(f"{name} has no docstring")
        elif inspect.isclass(value) and (issubclass(value, enum.Enum | Exception) or "**Fields" in text):
            known = set(dir(value)) | set(getattr(value, "__dataclass_fields__", {}))
            wrong += [f"{name} has no field {each}" for each in listed(text, "Fields") - known]
        else:
            missing = [each for each in parameters(value) if not re.search(rf"`{each}\b", text)]
            if name.startswith(_SAID_ELSEWHERE):
                missing = []
            strange = (listed(text, "Arguments") | in_a_line(text)) - parameters(value)
            wrong += [f"{name} does not document {each}" for each in missing]
            wrong += [f"{name} has no parameter {each}" for each in strange]
    assert not wrong, "\n".join(wrong)


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


def test_every_parameter_of_a_method_is_documented():
    """By the method, by the one that it overrides, or by its class."""
    wrong, found = [], methods()
    assert {"results.Solution.predict", "kernels.AbstractKernel.diag", "results.Verdict.of"} <= set(found)
    for name, (kind, function) in found.items():
        if name.startswith(_SAID_ELSEWHERE):
            continue
        method = name.rpartition(".")[2]
        texts = [vars(base)[method].__doc__ or "" for base in kind.__mro__ if method in vars(base)]
        if not any(texts):
            wrong.append(f"{name} has no docstring")
        said = "\n".join([*texts, *(base.__doc__ or "" for base in kind.__mro__ if base is not object)])
        missing = [
            each for each in parameters(function) - {"self", "cls"} if not re.search(rf"`{each}\b", said)
        ]
        wrong += [f"{name} does not document {each}" for each in missing]
    assert not wrong, "\n".join(wrong)
