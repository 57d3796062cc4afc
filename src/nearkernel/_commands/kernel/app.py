"""The options of `nearkernel kernel`. Everything heavy is imported inside a command."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from ..options import OUTPUT, Activation, BiasVar, Debug, Depth, Json, WeightVar

app = typer.Typer(no_args_is_help=True, help="Kernel matrices on disk: plan, build, inspect, verify, solve.")

Store = Annotated[Path, typer.Argument(help="The matrix, a folder such as K.zarr.", show_default=False)]
_ARRAYS = "An .npz file with `x` (n, d){more}."
Memory = Annotated[str, typer.Option(help="Memory limit for blocks under construction, e.g. 4GiB.")]


class Kernel(enum.StrEnum):
    ntk = "ntk"
    nngp = "nngp"
    rbf = "rbf"
    laplace = "laplace"


class Dtype(enum.StrEnum):
    float64 = "float64"
    float32 = "float32"


def _refuse_layers(context: typer.Context, kernel: Kernel) -> None:
    """Raises if an option of networks was typed for a kernel that has no layers."""
    if kernel in (Kernel.ntk, Kernel.nngp):
        return
    for name in ("depth", "activation", "weight_var", "bias_var"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(
                f"--{name.replace('_', '-')} belongs to --kernel ntk or nngp, not {kernel.value}."
            )


@app.command()
def build(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help=_ARRAYS.format(more=""), show_default=False)],
    kernel: Annotated[Kernel, typer.Option(help="Which kernel.")],
    out: Annotated[Path, typer.Option(help="Folder for the matrix, e.g. K.zarr.", rich_help_panel=OUTPUT)],
    length: Annotated[
        float | None,
        typer.Option(help="rbf and laplace: their length scale.", show_default=False),
    ] = None,
    depth: Depth = 3,
    activation: Activation = "relu",
    weight_var: WeightVar = None,
    bias_var: BiasVar = 0.0,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler, e.g. tcp://10.0.0.1:8786.", show_default=False),
    ] = None,
    memory: Memory = "2GiB",
    dtype: Annotated[Dtype, typer.Option(help="Data type of the entries.")] = Dtype.float64,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compute a kernel matrix in blocks on disk.

    If the command is stopped at any moment, even by a kill signal, running it again resumes the build. Damaged blocks
    are found by their checksums and recomputed. With --scheduler the workers of a Dask cluster do the work; they must
    have access to the folder.

    Examples:

    `nearkernel kernel build data.npz --kernel ntk --depth 3 --out K.zarr --memory 4GiB`

    `nearkernel kernel build data.npz --kernel rbf --length 5 --out K.zarr --scheduler tcp://10.0.0.1:8786`
    """
    from .command import build as run
    from .settings import kernel_settings

    _refuse_layers(context, kernel)
    settings = kernel_settings(kernel.value, length, depth, activation, weight_var, bias_var)
    run(data, settings, out, scheduler, memory, dtype.value, json)


@app.command()
def info(path: Store, json: Json = False, debug: Debug = False) -> None:
    """Show what a matrix was built from, and how much of it is complete."""
    from .command import info as run

    run(path, json)


@app.command()
def verify(path: Store, json: Json = False, debug: Debug = False) -> None:
    """Check the inputs and every block. Exit code 0 only if nothing is missing or damaged."""
    from .command import verify as run

    raise typer.Exit(run(path, json))


@app.command()
def solve(
    path: Store,
    data: Annotated[
        Path,
        typer.Argument(
            help=_ARRAYS.format(more=", `y` (n,) or (n, out), and optionally `x_new`"), show_default=False
        ),
    ],
    ridge: Annotated[float, typer.Option(min=0, help="The ridge in (K + ridge) a = y.")],
    tol: Annotated[float, typer.Option(help="Relative residual at which to stop.")] = 1e-6,
    max_iterations: Annotated[int, typer.Option(min=1, help="Maximum number of iterations.")] = 1000,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory limit, e.g. 4GiB. [default: half of the free memory]", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the coefficients.", rich_help_panel=OUTPUT)] = Path(
        "coefficients.npz"
    ),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Solve (K + ridge) a = y by conjugate gradients that stream the blocks.

    Writes `coefficients`, the residual at each iteration as `history`, and `prediction` if the data have `x_new`.
    Exit code 1 if the tolerance was not reached; the coefficients are written anyway.

    Example: `nearkernel kernel solve K.zarr data.npz --ridge 0.1 --tol 1e-6`
    """
    from .command import solve as run

    raise typer.Exit(run(path, data, ridge, tol, max_iterations, memory, out, json))


@app.command()
def plan(
    context: typer.Context,
    n: Annotated[int, typer.Option("--n", min=1, max=10**15, help="Number of points.", show_default=False)],
    d: Annotated[
        int, typer.Option("--d", min=1, max=10**5, help="Number of features per point.", show_default=False)
    ],
    kernel: Annotated[Kernel, typer.Option(help="Which kernel.")],
    workers: Annotated[
        int,
        typer.Option(
            min=0, max=10**6, help="Number of single-core processes that build the matrix; 0: this machine."
        ),
    ] = 0,
    machines: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**6,
            help="Number of machines that the workers share. [default: one core per worker]",
            show_default=False,
        ),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Assumed number of solver iterations.")] = 30,
    centers: Annotated[
        int, typer.Option(min=1, max=10**7, help="Number of centers in a pass over the data.")
    ] = 2000,
    length: Annotated[
        float | None,
        typer.Option(help="rbf and laplace: their length scale. [default: sqrt(d)]", show_default=False),
    ] = None,
    depth: Depth = 3,
    activation: Activation = "relu",
    dtype: Annotated[Dtype, typer.Option(help="Data type of the entries.")] = Dtype.float64,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory of one machine, e.g. 64GiB. [default: the free memory here]", show_default=False
        ),
    ] = None,
    entries: Annotated[
        float | None,
        typer.Option(
            help="Kernel entries per second of one core. [default: measured here]", show_default=False
        ),
    ] = None,
    disk: Annotated[
        str | None,
        typer.Option(
            help="Speed of the disk or shared folder, e.g. 2GB/s. [default: measured here]",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Speed of a worker's network. [default: 1.25GB/s]", show_default=False)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate how long a job would take: a matrix on disk, a solution, a pass over centers.

    Unless you give the rates, they are measured on this machine in a few seconds. Workers build a matrix together;
    solvers run on one machine.

    Example: `nearkernel kernel plan --n 10000000 --d 50 --kernel ntk --workers 64`
    """
    from .plan import Given, kernel_settings
    from .plan import plan as run

    _refuse_layers(context, kernel)
    if kernel in (Kernel.rbf, Kernel.laplace) and length is None:
        length = d**0.5
    settings = kernel_settings(kernel.value, length, depth, activation, None, 0.0)
    about = {
        "workers": workers, "machines": machines, "iterations": iterations, "centers": centers, "memory": memory,
        "float32": dtype is Dtype.float32,
    }  # fmt: skip
    run(n, d, settings, Given(entries, disk, network), about, json)
