"""`nearkernel kernel`. Everything heavy is imported inside a command."""

from pathlib import Path
from typing import Annotated

import typer

from ..declared import command, option
from ..options import OUTPUT, Json
from .options import Build, Plan, Solve, Store

app = typer.Typer(no_args_is_help=True, help="Kernel matrices on disk: plan, build, inspect, verify, solve.")


def _refuse_layers(context: typer.Context, kernel: str) -> None:
    """Raises if an option of networks was typed for a kernel that has no layers."""
    if kernel in ("ntk", "nngp"):
        return
    for name in ("depth", "activation", "weight_var", "bias_var"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} belongs to --kernel ntk or nngp, not {kernel}.")


@app.command()
@command
def build(context: typer.Context, options: Build, json: Json = False) -> None:
    """Compute a kernel matrix in blocks on disk.

    If the command is stopped at any moment, even by a kill signal, running it again resumes the build. Damaged blocks
    are found by their checksums and recomputed. With --scheduler the workers of a Dask cluster do the work; they must
    have access to the folder.

    Examples:

    `nearkernel kernel build data.npz --kernel ntk --depth 3 --out K.zarr --memory 4GiB`

    `nearkernel kernel build data.npz --kernel rbf --length 5 --out K.zarr --scheduler tcp://10.0.0.1:8786`
    """
    from .command import build as run

    _refuse_layers(context, options.kernel)
    run(options, json)


@app.command()
@command
def info(path: Store, json: Json = False) -> None:
    """Show what a matrix was built from, and how much of it is complete."""
    from .command import info as run

    run(path, json)


@app.command()
@command
def verify(path: Store, json: Json = False) -> None:
    """Check the inputs and every block. Exit code 0 only if nothing is missing or damaged."""
    from .command import verify as run

    raise typer.Exit(run(path, json))


@app.command()
@command
def solve(
    options: Solve,
    out: Annotated[Path, option("File for the coefficients.", OUTPUT)] = Path("coefficients.npz"),
    json: Json = False,
) -> None:
    """Solve (K + ridge) a = y by conjugate gradients that stream the blocks.

    Writes `coefficients`, the residual at each iteration as `history`, and `prediction` if the data have `x_new`.
    Exit code 1 if the tolerance was not reached; the coefficients are written anyway.

    Example: `nearkernel kernel solve K.zarr data.npz --ridge 0.1 --tol 1e-6`
    """
    from .command import solve as run

    raise typer.Exit(run(options, out, json))


@app.command()
@command
def plan(context: typer.Context, options: Plan, json: Json = False) -> None:
    """Estimate how long a job would take: a matrix on disk, a solution, a pass over centers.

    Unless you give the rates, they are measured on this machine in a few seconds. Workers build a matrix together;
    solvers run on one machine.

    Example: `nearkernel kernel plan --n 10000000 --d 50 --kernel ntk --workers 64`
    """
    from .plan import plan as run

    _refuse_layers(context, options.kernel)
    run(options, json)
