"""Signatures and docstrings as the site shows them, from the source alone: nothing is imported."""

import copy
import re
import sys
import textwrap
from pathlib import Path

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from site_hooks import NAMES

_CODE = re.compile(r"(```.*?```|`[^`]*`|^ {4}.*?$)", re.MULTILINE | re.DOTALL)
_SIGNS = {">=": "≥", "<=": "≤", "->": "→"}
_RECORDS = {"equinox.Module", "typing.NamedTuple"}
_NO_FIELD = re.compile(
    r"(?:\w+\.)?(?:ClassVar|AbstractClassVar|AbstractVar)\b"
)  # a constant, or what subclasses have
_PUBLIC = {name.rpartition(".")[2] for name in NAMES}


class Signatures(griffe.Extension):
    """Records get the signature that their fields make; the theory of a file stands below the first name from it."""

    def on_package(self, *, pkg, **options):
        items = list(everything(pkg))
        for item in items:
            if item.docstring:
                item.docstring.value = literal(item.docstring.value)
            if item.is_function:
                for one in item.parameters:
                    one.default = constant(one.default, pkg)
        lines = {item: [*reversed(item.mro()), item] for item in items if item.is_class}
        # All are looked at before any is changed: a signature that is made here is none that is inherited.
        signatures = {item: parameters(line) for item, line in lines.items()}
        for item, found in signatures.items():
            inherit(item, lines[item])
            above = next((one for one in reversed(lines[item][:-1]) if one.name in _PUBLIC), None)
            item.bases = [griffe.ExprName(above.name, parent=above.parent)] if above else []
            if found:
                item.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*found)))
            elif "__init__" in item.members:
                item.del_member("__init__")
            # Results with private fields are made by verbs alone: without its decorator griffe makes no signature.
            if "**Fields" in text_of(item) and any(
                name[0] == "_" for one in lines[item] for name in annotated(one)
            ):
                item.decorators = []
        add_theory(pkg)


def everything(parent):
    """All modules, classes and functions of a package."""
    for item in list(parent.members.values()):
        if not item.is_alias:
            yield item
            yield from everything(item)


def annotated(item) -> list[str]:
    """The names of the attributes of a class that have an annotation."""
    return [name for name, one in item.members.items() if one.is_attribute and one.annotation]


def text_of(item) -> str:
    return item.docstring.value if item.docstring else ""


def parameters(line) -> list[griffe.Parameter]:
    """How a class is made: as written, or by its fields; nothing for what only verbs make."""
    made = [item.members["__init__"] for item in line if "__init__" in item.members]
    written = [init.parameters for init in made if init.is_function]  # it may be an attribute
    if written:
        return [] if "**Fields" in text_of(line[-1]) else list(written[-1])
    record = any(base.canonical_path in _RECORDS for item in line for base in item.bases)
    first = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return [first, *fields(line)] if record else []


def inherit(item, line) -> None:
    """What a result has from classes that the site does not show."""
    for above in line[:-1]:
        for name, member in above.members.items():
            hidden = above.name in _PUBLIC or name[0] == "_" or name in item.members or not member.docstring
            if not hidden and "**Fields" in text_of(item) and f"`{name}`" not in text_of(item):
                own = copy.copy(member)
                own.parent = item
                item.set_member(name, own)


def fields(line) -> list[griffe.Parameter]:
    """Those of a class and of what it inherits from, as parameters."""
    found = {}
    for item in line:
        for name, field in item.members.items():
            if (
                field.is_attribute
                and field.annotation
                and "instance-attribute" in field.labels
                and not _NO_FIELD.match(str(field.annotation))
                and name[0] != "_"
            ):
                given, by_name = default(field.value)
                kind = (
                    griffe.ParameterKind.keyword_only
                    if by_name
                    else griffe.ParameterKind.positional_or_keyword
                )
                found[name] = griffe.Parameter(name, annotation=field.annotation, kind=kind, default=given)
    return sorted(found.values(), key=lambda one: one.kind is griffe.ParameterKind.keyword_only)


def default(value):
    """What a field is if it is not given, `0.5` or the default within `eqx.field(...)`; whether it needs its name."""
    if not isinstance(value, griffe.ExprCall) or not value.canonical_path.endswith(".field"):
        return value, False
    given = {argument.name: argument.value for argument in value.arguments}
    return given.get("default", "..." if "default_factory" in given else None), given.get("kw_only") == "True"


def constant(value, pkg):
    """The value of a constant of the package in place of its name."""
    if not isinstance(value, griffe.ExprName) or not value.canonical_path.startswith(f"{pkg.name}."):
        return value
    try:
        found = pkg[value.canonical_path.removeprefix(f"{pkg.name}.")]
    except KeyError:  # imported by another name
        return value
    return found.value if found.is_attribute else value


def literal(text: str) -> str:
    """Outside of code `<f, g>` is an inner product, not HTML, and signs that are typed as two are one."""
    parts = _CODE.split(text)
    for k, part in list(enumerate(parts))[::2]:
        part = re.sub(r"<(?=[A-Za-z/])", "&lt;", part)
        parts[k] = re.sub("|".join(_SIGNS), lambda sign: _SIGNS[sign[0]], part)
    return "".join(parts)


def add_theory(pkg) -> None:
    """What a file says beyond its first line, its formulas above all, below the first name that comes from it."""
    told = set()
    for name in NAMES:
        item = pkg[name].final_target
        head, _, theory = text_of(item.parent).partition("\n\n")
        if theory and item.docstring and item.parent.path not in told:
            told.add(item.parent.path)
            title = head.strip().rstrip(".:").replace('"', "'").replace("\n", " ")
            item.docstring.value += f'\n\n???+ abstract "{title}"\n\n' + textwrap.indent(theory, "    ")
