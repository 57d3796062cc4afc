"""Signatures and docstrings as the site shows them, from the source alone: nothing is imported."""

import re

import griffe

_CODE = re.compile(r"(```.*?```|`[^`]*`|^ {4}.*?$)", re.MULTILINE | re.DOTALL)
_RECORDS = {"equinox.Module", "typing.NamedTuple"}


class Signatures(griffe.Extension):
    """Records get the signature that their fields make."""

    def on_package(self, *, pkg, **options):
        for item in everything(pkg):
            if item.docstring:
                item.docstring.value = literal(item.docstring.value)
            if item.is_class:
                line = [*reversed(item.mro()), item]
                written = any("__init__" in one.members for one in line)
                if not written and any(base.canonical_path in _RECORDS for one in line for base in one.bases):
                    parameters = griffe.Parameters(griffe.Parameter("self"), *fields(line))
                    item.set_member("__init__", griffe.Function("__init__", parameters=parameters, parent=item))


def everything(parent):
    """All modules, classes and functions of a package."""
    for item in list(parent.members.values()):
        if not item.is_alias:
            yield item
            yield from everything(item)


def fields(line) -> list[griffe.Parameter]:
    """Those of a class and of what it inherits from, as parameters."""
    found = {}
    for item in line:
        for name, field in item.members.items():
            if field.is_attribute and "instance-attribute" in field.labels and not name.startswith("_"):
                kind = griffe.ParameterKind.positional_or_keyword
                found[name] = griffe.Parameter(name, annotation=field.annotation, kind=kind, default=default(field.value))
    return list(found.values())


def default(value):
    """What a field is if it is not given: `0.5`, or the default within `eqx.field(...)`."""
    if not isinstance(value, griffe.ExprCall) or not value.canonical_path.endswith(".field"):
        return value
    given = {argument.name: argument.value for argument in value.arguments}
    return given.get("default", "..." if "default_factory" in given else None)


def literal(text: str) -> str:
    """Outside of code `<f, g>` is an inner product, not HTML."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"<(?=[A-Za-z/])", "&lt;", part) for part in parts[::2]]
    return "".join(parts)
