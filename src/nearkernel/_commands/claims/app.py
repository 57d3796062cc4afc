"""The options of `nearkernel claims`. Everything heavy is imported inside a command."""

from pathlib import Path
from typing import Annotated

import typer

from ..completion import claims
from ..options import OUTPUT, Debug, Json, Seed

app = typer.Typer(
    no_args_is_help=True, help="Statements of the theory, checked by experiment: list, show, run."
)


@app.command("list")
def list_claims(json: Json = False, debug: Debug = False) -> None:
    """List all claims by topic, in one sentence each."""
    from .command import list_claims as run_list

    run_list(json)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A name from `claims list`.", show_default=False, autocompletion=claims)
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show one claim: statement, source, formula, settings with their flags, and the experiment as Python."""
    from .command import show as run_show

    run_show(name, json)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of claims; a single claim may be followed by its settings, --name value.",
            show_default=False,
            autocompletion=claims,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all claims.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller experiments: seconds per claim.")] = False,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Number of claims to run in parallel.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html, and figures (PNG, SVG), CSV and JSON of each claim. [default: none]",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
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

    code = run_claims(chosen(names or (), everything, quick), seed, out, jobs, json)
    if code == 130:
        raise SystemExit(code)  # the message is printed
    raise typer.Exit(code)
