"""The options of `nearkernel predict`. Everything heavy is imported inside the command."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from .._options import (
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


class Kind(enum.StrEnum):
    mlp = "mlp"
    cnn = "cnn"
    cnn_flatten = "cnn-flatten"


FINITE = "A network of finite width"


def predict(
    data: DataSet,
    target: Target = None,
    drop: Drop = None,
    task: TaskOption = Task.auto,
    test_fraction: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Share of the rows held out for testing.")
    ] = 0.2,
    max_train: Annotated[
        int, typer.Option(min=2, help="Most training rows; time grows with their cube.")
    ] = 5000,
    seed: Seed = 0,
    network: Annotated[
        Kind,
        typer.Option(
            help="mlp: fully connected. For images (digits, or .npz with x (n, height, width[, channels])) also cnn: "
            "convolutions, then the mean over the image; cnn-flatten: convolutions, then a dense layer."
        ),
    ] = Kind.mlp,
    depth: Depth = 3,
    activation: Activation = "relu",
    weight_var: WeightVar = None,
    bias_var: BiasVar = 0.1,
    algorithm: AlgorithmOption = Algorithm.flow,
    time: Time = None,
    lr: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="gd: learning rate, for the loss 1/2 sum (z - y)^2 of the standardised target.",
            show_default=False,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    steps: Steps = None,
    ridge: RidgeStrength = None,
    order: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2,
            help="Predict one network of finite width too, to this order. [default: not]",
            show_default=False,
            rich_help_panel=FINITE,
        ),
    ] = None,
    train: Annotated[
        bool,
        typer.Option("--train", help="Train that network for real, and compare.", rich_help_panel=FINITE),
    ] = False,
    width: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Its neurons per hidden layer. [default: 512]",
            show_default=False,
            rich_help_panel=FINITE,
        ),
    ] = None,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What would wide networks, trained on these data, answer? Nothing is trained, unless --train asks for it.

    Holds out a share of the rows, predicts them by the exact theory of infinitely wide networks (NNGP and NTK) and by
    a linear model, and prints how good each is. Writes report.html, predictions.csv and result.json.

    Examples:

    `nearkernel predict digits`

    `nearkernel predict houses.csv --target price --activation erf --depth 2`

    `nearkernel predict diabetes --algorithm flow --time 0.01 --out early`

    `nearkernel predict diabetes --activation tanh --depth 1 --order 2 --train`

    `nearkernel predict digits --network cnn --max-train 200`
    """
    from .command import Options, predict_and_report

    options = Options(
        data=data,
        target=target,
        drop=tuple(drop or ()),
        task=task.value,
        test_fraction=test_fraction,
        max_train=max_train,
        seed=seed,
        network=network.value,
        depth=depth,
        activation=activation,
        weight_var=weight_var,
        bias_var=bias_var,
        algorithm=algorithm.value,
        time=time,
        lr=lr,
        steps=steps,
        ridge=ridge,
        order=order,
        train=train,
        width=width,
    )
    predict_and_report(options, out, print_json=json)
