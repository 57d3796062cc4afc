"""The options of `nearkernel curve`. Everything heavy is imported inside the command."""

from pathlib import Path
from typing import Annotated

import typer

from ..options import (
    TRAINING,
    Activation,
    Algorithm,
    AlgorithmOption,
    BiasVar,
    DataSet,
    Debug,
    Depth,
    Drop,
    Json,
    Out,
    RidgeStrength,
    Seed,
    Steps,
    Target,
    Task,
    TaskOption,
    Time,
    WeightVar,
)


def curve(
    data: DataSet,
    target: Target = None,
    drop: Drop = None,
    task: TaskOption = Task.auto,
    max_rows: Annotated[
        int, typer.Option(min=8, help="Maximum number of rows; the time grows with its cube.")
    ] = 2000,
    check: Annotated[
        int, typer.Option(min=0, max=100, help="Number of real fits at each size, on random subsets.")
    ] = 0,
    seed: Seed = 0,
    depth: Depth = 3,
    activation: Activation = "relu",
    weight_var: WeightVar = None,
    bias_var: BiasVar = 0.1,
    algorithm: AlgorithmOption = Algorithm.ridge,
    time: Time = None,
    lr: Annotated[
        float | None,
        typer.Option(min=0, help="gd: learning rate.", show_default=False, rich_help_panel=TRAINING),
    ] = None,
    steps: Steps = None,
    ridge: RidgeStrength = None,
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
    """Predict how the error falls with the number of rows, without holding any out.

    Computes, from one kernel matrix of an infinitely wide network, the expected test error for every number of rows,
    with error bars, and the gain from twice as many rows. Writes report.html, curve.png and curve.json.

    Examples:

    `nearkernel curve digits --tune`

    `nearkernel curve houses.csv --target price --tune --check 3`
    """
    from ..predict.options import Options
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
