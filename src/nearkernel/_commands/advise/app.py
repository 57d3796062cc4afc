"""The options of `nearkernel advise`. Everything heavy is imported inside the command."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from ..completion import data_sets
from ..options import NETWORK, Activation, Debug, Depth, Drop, Json, Out, Seed


class Block(enum.StrEnum):
    plain = "plain"
    residual = "residual"
    prenorm = "prenorm"
    normalized = "normalized"
    transformer = "transformer"


class Train(enum.StrEnum):
    gd = "gd"
    adam = "adam"


class Framework(enum.StrEnum):
    torch = "torch"
    flax = "flax"
    keras = "keras"


def advise(
    activation: Activation = "relu",
    depth: Depth = 20,
    width: Annotated[
        int, typer.Option(min=1, max=100_000, help="Neurons per hidden layer.", rich_help_panel=NETWORK)
    ] = 512,
    block: Annotated[
        Block,
        typer.Option(
            help="Type of the hidden layers: plain, W s(z); residual, z + W s(z); prenorm, z + W s(LayerNorm(z)); "
            "normalized, W s(LayerNorm(z)); transformer, z + Attention(LayerNorm(z)), then z + W s(V LayerNorm(z)).",
            rich_help_panel=NETWORK,
        ),
    ] = Block.plain,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=1024,
            help="Number of tokens in a transformer's input; rows of --data are cut into this many equal parts. "
            "[default: 64]",
            show_default=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Training inputs: digits, diabetes, ... or a .csv, .parquet or .npz file.",
            show_default=False,
            autocompletion=data_sets,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of --data to predict.", show_default=False)
    ] = None,
    drop: Drop = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=1e-9,
            help="Report the width above which networks trained on a few rows of --data are this close to infinite "
            "width (mean in standard deviations, variance relative).",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        Train | None,
        typer.Option(
            help="Train small networks on rows of --data from each initialization, He's and the frameworks' defaults "
            "included, by gradient descent (gd) or Adam, and compare them on test rows.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, max=1000, help="Networks that --train trains from each initialization.")
    ] = 5,
    framework: Annotated[
        Framework | None,
        typer.Option(help="Print code for this framework only. [default: all]", show_default=False),
    ] = None,
    tuned_width: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Width at which a learning rate was tuned: report how maximal updates (muP) carry it over to --width, "
            "for gradient descent and Adam, with code.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Recommend an initialization and a learning rate for a deep network.

    Prints the critical initialization (for residual blocks, how small their branches must be) as code for PyTorch, Flax
    and Keras, with orthogonal weights where they pay, or says that the default is as good. Also prints learning rates,
    how much networks of this depth and width vary between initializations, and how He's initialization and the
    frameworks' defaults would change signals and gradients, predicted and measured on random networks. --train trains
    them all. Writes report.html, advice.json and advice.png.

    Examples:

    `nearkernel advise --activation gelu --depth 20 --width 512`

    `nearkernel advise --activation tanh --depth 50 --width 256 --data houses.csv --target price`

    `nearkernel advise --block transformer --activation gelu --depth 24 --width 768 --tuned-width 128`

    `nearkernel advise --activation gelu --depth 3 --width 256 --data diabetes --tolerance 0.05`

    `nearkernel advise --activation gelu --depth 24 --width 128 --data digits --train adam --framework torch`

    `nearkernel advise --activation relu --depth 4 --width 1024 --tuned-width 64`
    """
    from .command import Options, advise_and_report

    options = Options(
        activation=activation,
        depth=depth,
        width=width,
        data=data,
        target=target,
        drop=tuple(drop or ()),
        seed=seed,
        tolerance=tolerance,
        block=block.value,
        train=None if train is None else train.value,
        tuned_width=tuned_width,
        tokens=tokens,
        framework=None if framework is None else framework.value,
        seeds=seeds,
    )
    advise_and_report(options, out, print_json=json)
