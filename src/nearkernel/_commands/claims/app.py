"""`nearkernel claims`. Everything heavy is imported inside a command."""

from pathlib import Path
from typing import Annotated

import typer

from ..completion import claims
from ..declared import argument, command, option
from ..options import OUTPUT, Json, Seed

app = typer.Typer(
    no_args_is_help=True, help="Statements of the theory, checked by experiment: list, show, run."
)

_NAMES = "Names of claims; a single claim may be followed by its settings, --name value."
_OUT = "Folder for report.html, and figures (PNG, SVG), CSV and JSON of each claim. [default: none]"


@app.command("list")
@command
def list_claims(json: Json = False) -> None:
    """List all claims by topic, in one sentence each."""
    from .command import list_claims as run_list

    run_list(json)


@app.command()
@command
def show(
    name: Annotated[str, argument("A name from `claims list`.", autocompletion=claims)], json: Json = False
) -> None:
    """Show one claim: statement, source, formula, settings with their flags, and the experiment as Python."""
    from .command import show as run_show

    run_show(name, json)


@app.command(context_settings={"ignore_unknown_options": True})
@command
def run(
    names: Annotated[tuple[str, ...], argument(_NAMES, autocompletion=claims)] = (),
    everything: Annotated[bool, option("Run all claims.", None, "--all")] = False,
    quick: Annotated[bool, option("Smaller experiments: seconds per claim.")] = False,
    seed: Seed = 0,
    jobs: Annotated[int, option("Number of claims to run in parallel.", min=1, max=256)] = 1,
    out: Annotated[Path | None, option(_OUT, OUTPUT)] = None,
    json: Json = False,
) -> None:
    """Run experiments and compare them with theory. Exit code 1 if a claim is not confirmed.

    A statistical row agrees within 4 standard errors, any other row within its stated tolerance. The same seed gives
    the same numbers. With --out, a claim that already finished with the same settings, seed and versions is not run
    again, so an interrupted run resumes where it stopped.

    Examples:

    `nearkernel claims run --all --quick --jobs 2 --out out`

    `nearkernel claims run catapult-phases --width 1e6`
    """
    from .command import chosen
    from .command import run as run_claims

    code = run_claims(chosen(names, everything, quick), seed, out, jobs, json)
    if code == 130:
        raise SystemExit(code)  # the message is printed
    raise typer.Exit(code)
