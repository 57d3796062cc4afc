"""The command line. Everything heavy is imported inside a command, so that `--help` answers at once."""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.completion import completion_init
from typer.core import TyperGroup

from . import __version__
from ._base.extra import MissingExtra, needing
from ._base.printable import printable
from ._commands import completion as _completion
from ._commands.advise.app import advise
from ._commands.claims.app import app as claims_app
from ._commands.curve.app import curve
from ._commands.declared import argument, command, option
from ._commands.inspect.app import inspect
from ._commands.kernel.app import app as kernel_app
from ._commands.ladder.app import ladder
from ._commands.options import Json
from ._commands.predict.app import apply, predict
from ._commands.streams import print_json, typing
from ._run.programs import VARIABLE
from ._run.random_state import random_state_kept

EXIT_CODES = (
    "Exit codes: 0, success; 1, a claim is refuted, a matrix is damaged, a tolerance was not reached, or "
    "an unexpected error; 2, bad input; 130, interrupted."
)


class OneLineErrors(TyperGroup):
    """Bad input costs the user one line on stderr and exit code 2; a traceback comes only with --debug."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> Any:
        typed = sys.argv[1:] if args is None else list(args)
        try:
            # Libraries that draw tables draw random numbers, too.
            with typing(typed), random_state_kept(), needing(f"nearkernel {' '.join(typed[:1])}".rstrip()):
                code = super().main(typed, *others, **{**extra, "standalone_mode": False}) or 0
            message = "interrupted: nothing was written" if code == 130 else ""
        except typer.TyperException as error:
            code, message = 2, _usage_error(error, typed)
        except (ValueError, TypeError, OSError, MemoryError, MissingExtra) as error:
            code, message = 2, f"error: {error or type(error).__name__}"
            _show_trace(typed)
        except Exception as error:
            code, message = 1, f"error: unexpected {error!r}; --debug shows where."
            _show_trace(typed)
        if message:
            print(printable(" ".join(message.split())), file=sys.stderr)
        sys.exit(code)


def _usage_error(error: typer.TyperException, typed: Sequence[str]) -> str:
    """Typer's message, with the option and its value as they were typed; none where it has shown the help instead."""
    message = error.format_message()
    if isinstance(error, typer.BadParameter) and error.param is not None:
        for here, after in zip(typed, [*typed[1:], ""], strict=True):
            option, _, joined = here.partition("=")
            if option in error.param.opts and option.startswith("-"):
                message = f"{option} {joined or after}: {error.message.removeprefix('Value error, ')}"
    message = message.replace(": Value error, ", ": ").removesuffix(".")
    return f"error: {message}{'' if message.endswith('?') else '.'} See --help." if message else ""


def _show_trace(typed: Sequence[str]) -> None:
    if "--debug" in typed:
        traceback.print_exc()


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,  # `nearkernel completion` shows the script and leaves files alone
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


@app.callback()
def nearkernel(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="With --version: versions of nearkernel and its dependencies, as JSON."),
    ] = False,
) -> None:
    """Predict what neural networks do after training, without training them.

    Example: `nearkernel predict digits`
    """
    if json and not version:
        raise ValueError("--json goes after the command, e.g. `nearkernel predict digits --json`.")
    if version and json:
        from ._base.versions import versions

        print_json(versions())
    elif version:
        print(f"nearkernel {__version__}")
    if version:
        raise typer.Exit


@command
def lab(
    port: Annotated[
        int | None, option("Port to listen on. [default: 8642, or any free port]", min=1, max=65535)
    ] = None,
    host: Annotated[
        str, option("Address to listen on; any address other than the default lets other machines connect.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        tuple[str, ...],
        option(
            "A host name or address at which others may reach this machine; may be repeated.", metavar="NAME"
        ),
    ] = (),
    browser: Annotated[bool, option("Open a browser.")] = True,
    export: Annotated[
        Path | None,
        option(
            "Write pages that open from disk, with precomputed results, instead of serving them.",
            metavar="FOLDER",
        ),
    ] = None,
    page: Annotated[
        tuple[str, ...],
        option("With --export, a page to write; may be repeated. [default: all]", metavar="NAME"),
    ] = (),
    json: Json = False,
) -> None:
    """Open a web page of live experiments: sliders, figures, and networks that are actually trained.

    Everything runs on this machine, and nothing is loaded from anywhere else. Press Ctrl-C to stop.

    Examples:

    `nearkernel lab`

    `nearkernel lab --port 9000 --no-browser`

    `nearkernel lab --host 0.0.0.0 --allow-host lab.example --no-browser`

    `nearkernel lab --export lecture --page catapult --page circle`
    """
    if page and export is None:
        raise ValueError(
            "--page needs --export; to open one page, add its name to the address, e.g. /catapult."
        )
    if export is not None:
        from .lab.export import write

        write(export, page, json)
        return
    from .lab.server.serve import serve

    serve(host, port, browser, json, allow_host)


@command
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("Which shell.")], json: Json = False
) -> None:
    """Print a script for shell completion of commands, options and names. It writes no files.

    Examples:

    `eval "$(nearkernel completion bash)"`, in ~/.bashrc

    `eval "$(nearkernel completion zsh)"`, in ~/.zshrc after compinit

    `nearkernel completion fish | source`, in ~/.config/fish/config.fish
    """
    text = _completion.script(shell)
    if json:
        print_json({"shell": shell, "script": text})
    else:
        sys.stdout.write(text)


for each in (predict, apply, curve, inspect, advise, ladder, lab):
    app.command()(each)
app.add_typer(kernel_app, name="kernel")
app.add_typer(claims_app, name="claims")
app.command()(completion)
completion_init()


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows "?" for "±"
    os.environ.setdefault(VARIABLE, "1")
    app(prog_name="nearkernel")
