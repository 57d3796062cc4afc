"""A command made from the fields of a class."""

import dataclasses
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from nearkernel._commands.declared import argument, command, option


@dataclasses.dataclass(frozen=True)
class Options:
    data: Annotated[str, argument("The data.")]
    kind: Annotated[Literal["a", "b"], option("The kind.")] = "a"
    drop: Annotated[tuple[str, ...], option("Left out.")] = ()
    target: Annotated[str | None, option("One.")] = None
    quick: Annotated[bool, option("Less.")] = False
    kept: tuple[str, ...] = ("not typed",)

    def __post_init__(self):
        if self.quick and self.kind == "b":
            raise ValueError("--quick has no kind b.")


@pytest.fixture
def typed():
    """What the command got for some words."""
    app, got = typer.Typer(), []

    @app.command()
    @command
    def run(*, target: Annotated[tuple[str, ...], option("Several.")] = (), options: Options) -> None:
        """Run."""
        got.append((target, options))

    def ask(*words):
        done = CliRunner().invoke(app, words)
        return got.pop() if done.exit_code == 0 and got else done

    return ask


def test_fields_are_typed_and_given_as_their_class(typed):
    assert typed("x") == ((), Options("x"))
    words = ("x", "--kind", "b", "--drop", "u", "--drop", "v", "--debug")
    assert typed(*words) == ((), Options("x", "b", ("u", "v")))
    assert isinstance(typed("x", "--quick", "--kind", "b").exception, ValueError)


def test_a_parameter_of_the_function_comes_before_a_field_of_its_name(typed):
    assert typed("x", "--target", "u", "--target", "v") == (("u", "v"), Options("x"))


def test_the_help_has_each_option_once(typed):
    shown = typed("--help").stdout
    assert all(shown.count(f"--{name} ") == 1 for name in ("kind", "drop", "target", "quick", "debug"))
    assert "--kept" not in shown and "--no-quick" not in shown and shown.count("[default: ") == 1
