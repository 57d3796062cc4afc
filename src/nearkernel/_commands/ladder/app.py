"""The options of `nearkernel ladder`. Everything heavy is imported inside the command."""

from pathlib import Path
from typing import Annotated

import typer

from ..completion import smooth_activations
from ..options import NETWORK, TRAINING, Debug, Json, Out, Seed


def ladder(
    points: Annotated[int, typer.Option(min=2, max=2000, help="Number of training points.")] = 60,
    test_points: Annotated[
        int, typer.Option(min=1, help="Number of test points, where distances are measured.")
    ] = 60,
    dim: Annotated[int, typer.Option(min=1, help="Number of features of an input.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, help="Number of data sets and initializations.")] = 1,
    seed: Seed = 0,
    depth: Annotated[
        int, typer.Option(min=1, max=100, help="Number of hidden layers.", rich_help_panel=NETWORK)
    ] = 2,
    width: Annotated[
        int,
        typer.Option(
            min=1, help="Neurons per hidden layer, for the sweep over alpha.", rich_help_panel=NETWORK
        ),
    ] = 256,
    activation: Annotated[
        str,
        typer.Option(
            help="tanh, gelu, erf, silu, mish, ..., or a formula like 'tanh(z) + 0.1*z^2': smooth.",
            rich_help_panel=NETWORK,
            autocompletion=smooth_activations,
        ),
    ] = "tanh",
    alphas: Annotated[
        str, typer.Option(help="Lazy scales alpha to train at, separated by commas.", rich_help_panel=NETWORK)
    ] = "1,4,16,64",
    widths: Annotated[
        str, typer.Option(help="Widths to train at; empty for none.", rich_help_panel=NETWORK)
    ] = "64,256,1024",
    alpha: Annotated[
        float, typer.Option(min=0, help="Lazy scale alpha of the sweep over widths.", rich_help_panel=NETWORK)
    ] = 8.0,
    tol: Annotated[
        float,
        typer.Option(
            help="Training stops when the residual has fallen to this fraction.", rich_help_panel=TRAINING
        ),
    ] = 1e-6,
    max_steps: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of steps of gradient descent.", rich_help_panel=TRAINING),
    ] = 200_000,
    rich: Annotated[
        bool,
        typer.Option(
            "--rich",
            help="Add the rich limit, infinitely wide networks that learn features. Takes minutes with many points.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    out: Out = Path("out"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare trained networks with their predictions, order by order.

    Trains networks by gradient descent and predicts each without training: order 0 is the linearized network, order 1
    adds learned features, order 2 the next order. Plots their distances against the lazy scale alpha (outputs times
    alpha, so that parameters move less) and the width. With --rich, also shows the limit of wide networks of the same
    richness, 1/(alpha sqrt(width)), to all orders. Writes report.html, ladder.png, ladder.svg and ladder.json.

    Examples:

    `nearkernel ladder`

    `nearkernel ladder --rich --points 12 --depth 1 --width 1024 --alphas 0.03,0.1,0.3,1 --widths "" --tol 1e-2`

    `nearkernel ladder --seeds 3 --points 100 --alphas 1,2,4,8,16,32,64 --widths 64,128,256,512,1024`
    """
    from .command import ladder_and_report
    from .options import settings

    chosen = settings(
        activation,
        alphas,
        widths,
        alpha,
        tol,
        points=points,
        test_points=test_points,
        dim=dim,
        depth=depth,
        width=width,
        seeds=seeds,
        seed=seed,
        max_steps=max_steps,
        rich=rich,
    )
    ladder_and_report(chosen, out, print_json=json)
