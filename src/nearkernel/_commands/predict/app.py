"""The options of `nearkernel predict`. Everything heavy is imported inside the command."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from ..._base.files import missing
from ..options import (
    OUTPUT,
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
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to predict (csv, xlsx, parquet), or array (npz; default: y). May be repeated: each target "
            "is predicted from the other columns, into a separate folder.",
            show_default=False,
        ),
    ] = None,
    drop: Drop = None,
    task: TaskOption = Task.auto,
    test_fraction: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Fraction of the rows held out for testing.")
    ] = 0.2,
    max_train: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Maximum number of training rows. [default: 50000; 1500 for NNGP and NTK, whose time is cubic]",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop if the table needs repair, and list the problems.")
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Classes: weight rare classes as much as frequent ones.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            help="File for the model, e.g. model.nk; `nearkernel apply` uses it.", show_default=False
        ),
    ] = None,
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
            help="gd: learning rate, for the loss 1/2 sum (z - y)^2 of the standardized target.",
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
            help="Also predict one network of finite width, to this order. [default: off]",
            show_default=False,
            rich_help_panel=FINITE,
        ),
    ] = None,
    train: Annotated[
        bool,
        typer.Option("--train", help="Also train that network, and compare.", rich_help_panel=FINITE),
    ] = False,
    width: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Neurons per hidden layer of that network. [default: 512]",
            show_default=False,
            rich_help_panel=FINITE,
        ),
    ] = None,
    curve: Annotated[
        bool,
        typer.Option(
            "--curve", help="Also predict how the error would fall with more rows (see nearkernel curve)."
        ),
    ] = False,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict a column of a table, and compare the model with infinitely wide networks.

    Holds out a fraction of the rows, chooses an average of kernel machines on the others (Auto), and compares it with
    the exact theory of infinitely wide networks (NNGP and NTK), linear models, boosted trees and the plain baseline. It
    handles missing values, dates, categories and ids, and the report says how. Writes report.html, predictions.csv and
    result.json; --save keeps the model.

    Examples:

    `nearkernel predict digits`

    `nearkernel predict houses.csv --target price --save model.nk --curve`

    `nearkernel predict houses.csv --target price --target rent`

    `nearkernel predict diabetes --algorithm flow --time 0.01 --out early`

    `nearkernel predict diabetes --activation tanh --depth 1 --order 2 --train`

    `nearkernel predict digits --network cnn --max-train 200`
    """
    from .reading.sources import check_save, check_source

    check_source(data)
    check_save(save)
    from .command import Options, predict_and_report

    targets = tuple(dict.fromkeys(target or ()))
    options = Options(
        data=data,
        target=targets[0] if targets else None,
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
        strict=strict,
        balanced=balanced,
        save=None if save is None else str(save),
        curve=curve,
    )
    predict_and_report(options, targets, out, print_json=json)


def apply(
    model: Annotated[
        Path,
        typer.Argument(help="A file written by `nearkernel predict --save` or nk.save.", show_default=False),
    ],
    data: Annotated[
        str, typer.Argument(help="New rows: a .csv, .tsv, .xlsx, .parquet or .npz file.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File for the predictions.", rich_help_panel=OUTPUT)] = Path(
        "predictions.csv"
    ),
    coverage: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Numeric targets: probability of the intervals.")
    ] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Also write this column of the new rows. May be repeated; row numbers and ids are always written.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop if new rows contain kinds of values that training rows did not."),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict new rows with a saved model.

    Writes one line per row: its number (as in a spreadsheet, where the names are row 1), its id, the prediction, and
    the probability of each class or an interval. If the file contains the target, the score is shown, too. A model
    file contains only data: loading it runs no code.

    Examples:

    `nearkernel apply model.nk new.csv`

    `nearkernel apply model.nk new.csv --out predictions.csv --coverage 0.8 --keep street --keep city`
    """
    from .reading.sources import check_save, check_source

    if not model.is_file():
        raise ValueError(missing(model))
    check_source(data, embedded=False)
    check_save(out, "--out")
    from .apply import apply_and_write

    apply_and_write(model, data, out, coverage, strict, as_json=json, keep=tuple(keep or ()))
