"""A command from its declaration: a frozen class has a field per option, which is its type, default, flag and help.

The function of a command takes such a class; `command` gives it to Typer with the fields of the class in its place.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from .._base.settings import flag

_LIST = list[str] | None  # how Typer calls words that may be repeated


def option(help: str, panel: str | None = None, *names: str, **more: Any) -> OptionInfo:
    """What stands beside a type, as in `depth: Annotated[int, option("Number of layers.", min=1)] = 3`.

    `names` are flags other than that of the field; `more` are arguments of `typer.Option`.
    """
    return typer.Option(..., *names, help=help, rich_help_panel=panel, **more)


def argument(help: str, **more: Any) -> ArgumentInfo:
    """The same for what is typed without a flag."""
    return typer.Argument(help=help, show_default=False, **more)


Debug = Annotated[bool, option("Show where an error comes from.", "Output")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """`function` as Typer takes it: `--debug` is added, and a class of options among its parameters is made of what
    was typed. A parameter of the function comes before a field of its name.
    """
    own = inspect.signature(function, eval_str=True).parameters
    shown: dict[str, inspect.Parameter] = {}
    classes: dict[str, tuple[Any, list[str]]] = {}
    for name, each in own.items():
        if dataclasses.is_dataclass(each.annotation):
            fields = {field.name: field for field in _fields(each.annotation) if field.name not in own}
            classes[name] = each.annotation, list(fields)
            shown |= fields
        else:
            shown[name] = _parameter(name, each.annotation, each.default)
    shown["debug"] = _parameter("debug", Debug, False)
    lists = [name for name, each in shown.items() if each.annotation == _LIST]

    @functools.wraps(function)
    def run(**typed: Any) -> None:
        del typed["debug"]
        typed |= {name: tuple(typed[name] or ()) for name in lists}
        for name, (kind, names) in classes.items():
            typed[name] = kind(**{field: typed.pop(field) for field in names})
        function(**typed)

    run.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: each.annotation for name, each in shown.items()}
    return run


def _fields(kind: Any) -> Iterator[inspect.Parameter]:
    """The fields of a class that can be typed."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if typing.get_origin(hints[field.name]) is Annotated:
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield _parameter(field.name, hints[field.name], default)


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """As Typer reads it. Flags have no `--no-`; a default of None is not shown, since the help says what happens."""
    said: Any = inspect.Parameter.empty
    if typing.get_origin(kind) is Annotated:
        kind, said = typing.get_args(kind)
        said = copy.copy(said)
        if kind == tuple[str, ...]:
            kind, default = _LIST, default or None
        if default is not inspect.Parameter.empty:
            said.default = default
        said.show_default = said.show_default and default is not None
        if default is False and not said.param_decls:
            said.param_decls = (flag(name),)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=said, annotation=kind)
