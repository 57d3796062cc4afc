"""The options of `nearkernel curve`. Everything heavy is imported inside the command."""

from pathlib import Path
from typing import Annotated

import typer

from .._completion import data_sets
from .._options import TRAINING, Activation, BiasVar, Debug, Depth, Drop, Json, Out, Seed, WeightVar
from .._predict.app import Algorithm, Task


def curve(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, diabetes, breast_cancer, wine or iris; or a .csv, .parquet or .npz file.",
            show_default=False,
            autocompletion=data_sets,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Column to predict (csv, parquet), or array (npz: y unless said).", show_default=False
        ),
    ] = None,
    drop: Drop = None,
    task: Annotated[
        Task, typer.Option(help="auto: labels and whole numbers of at most 20 values are classes.")
    ] = Task.auto,
    max_rows: Annotated[int, typer.Option(min=8, help="Most rows; time grows with their cube.")] = 2000,
    check: Annotated[
        int, typer.Option(min=0, max=100, help="Fit for real so often at each size, on random subsets.")
    ] = 0,
    seed: Seed = 0,
    depth: Depth = 3,
    activation: Activation = "relu",
    weight_var: WeightVar = None,
    bias_var: BiasVar = 0.1,
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            help="flow: gradient flow. gd: gradient descent. ridge: down to the minimum with weight decay.",
            rich_help_panel=TRAINING,
        ),
    ] = Algorithm.ridge,
    time: Annotated[
        float | None,
        typer.Option(
            min=0, help="flow: how long. [default: to the end]", show_default=False, rich_help_panel=TRAINING
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(min=0, help="gd: learning rate.", show_default=False, rich_help_panel=TRAINING),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="gd: how many. [default: to the end]", show_default=False, rich_help_panel=TRAINING
        ),
    ] = None,
    ridge: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="ridge: strength of the weight decay. [default: 0.01]",
            show_default=False,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose the ridge, or the time of flow, by leave-one-out.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """How much would more data help? The error over the number of rows, without holding any out.

    From one kernel matrix of an infinitely wide network: the expected test error for every number of rows, with error
    bars, and what twice the rows would bring. Writes report.html, curve.png and curve.json.

    Examples:

    `nearkernel curve digits --tune`

    `nearkernel curve houses.csv --target price --tune --check 3`
    """
    from .._predict.options import Options
    from .command import curve_and_report

    options = Options(
        data=data,
        target=target,
        drop=tuple(drop or ()),
        task=task.value,
        test_fraction=0.0,
        max_train=max_rows,
        seed=seed,
        depth=depth,
        activation=activation,
        weight_var=weight_var,
        bias_var=bias_var,
        algorithm=algorithm.value,
        time=time,
        lr=lr,
        steps=steps,
        ridge=ridge,
    )
    curve_and_report(options, check, tune, out, print_json=json)
