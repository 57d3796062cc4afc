"""The options of `nearkernel inspect`. Everything heavy is imported inside the command."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from ..completion import data_sets
from ..options import NETWORK, TRAINING, Debug, Drop, Json, Out, Seed


class Loss(enum.StrEnum):
    squared = "squared"
    cross_entropy = "cross_entropy"


def inspect(
    network: Annotated[
        str,
        typer.Argument(
            help="FILE.py:NAME, a PyTorch module, a network of Flax, Equinox or Keras, a pair (model, params), or a "
            "function that returns one. The file is run.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="digits, diabetes, ... or a .csv, .parquet or .npz file.",
            show_default=False,
            autocompletion=data_sets,
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Column of the data to predict.", show_default=False)
    ] = None,
    drop: Drop = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help="Shape of one input, such as 1,8,8. [default: a row]",
            show_default=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    trainable: Annotated[
        str | None,
        typer.Option(
            help="Parameters of a PyTorch module to train, a pattern such as 'head.*'. [default: all]",
            show_default=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    standardize: Annotated[
        bool,
        typer.Option("--standardize", help="Standardize inputs to mean 0 and variance 1. [default: off]"),
    ] = False,
    train: Annotated[int, typer.Option(min=2, max=5000, help="Number of training rows.")] = 50,
    new: Annotated[int, typer.Option(min=1, max=100_000, help="Number of other rows to predict.")] = 100,
    loss: Annotated[
        Loss, typer.Option(help="The loss, summed over rows.", rich_help_panel=TRAINING)
    ] = Loss.squared,
    lr: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Learning rate of gradient descent; for a mean over rows, divide it by their number. "
            "[default: 1/largest eigenvalue]",
            show_default=False,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Number of steps.", rich_help_panel=TRAINING)
    ] = 100,
    pieces: Annotated[
        int,
        typer.Option(
            min=1, max=50, help="Maximum number of times the network is linearized during training."
        ),
    ] = 1,
    seed: Seed = 0,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the training of a network, and check how far the prediction can be trusted.

    Predicts the loss and the outputs of full-batch gradient descent from the network's tangent kernel, without
    training, and checks each prediction against the network itself at the predicted weights. Writes report.html,
    inspection.json and inspection.png.

    Examples:

    `nearkernel inspect net.py:network digits --shape 1,8,8`

    `nearkernel inspect net.py:network digits --loss cross_entropy --steps 200 --pieces 6`
    """
    from .command import Options, inspect_and_report

    options = Options(
        network=network,
        data=data,
        target=target,
        drop=tuple(drop or ()),
        shape=shape,
        trainable=trainable,
        standardize=standardize,
        train=train,
        new=new,
        loss=loss.value,
        lr=lr,
        steps=steps,
        pieces=pieces,
        seed=seed,
    )
    inspect_and_report(options, out, print_json=json)
