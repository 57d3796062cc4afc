"""The command line. Everything heavy is imported inside a command, so that `--help` answers at once."""

import enum
import io
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from ._claims.app import app as claims_app
from ._kernel.app import app as kernel_app
from ._options import (
    NETWORK,
    OUTPUT,
    TRAINING,
    Activation,
    BiasVar,
    Debug,
    Depth,
    Drop,
    ThreeFiles,
    WeightVar,
)


class OneLineErrors(TyperGroup):
    """Bad input costs the user one line on stderr and exit code 2; a traceback comes only with --debug."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> Any:
        typed = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(typed, *others, **{**extra, "standalone_mode": False}) or 0
            message = "interrupted: nothing was written" if code == 130 else ""
        except typer.TyperException as error:
            code, message = 2, _usage_error(error, typed)
        except (ValueError, TypeError, OSError, MemoryError) as error:
            code, message = 2, f"error: {error or type(error).__name__}"
            _show_trace(typed)
        except Exception as error:
            code, message = 1, f"error: unexpected {error!r}; --debug shows where."
            _show_trace(typed)
        if message:
            print(" ".join(message.split()), file=sys.stderr)
        sys.exit(code)


def _usage_error(error: typer.TyperException, typed: Sequence[str]) -> str:
    """Typer's message, with the option and its value as they were typed; none where it has shown the help instead."""
    message = error.format_message()
    if isinstance(error, typer.BadParameter) and error.param is not None:
        for here, after in zip(typed, [*typed[1:], ""], strict=True):
            option, _, joined = here.partition("=")
            if option in error.param.opts and option.startswith("-"):
                message = f"{option} {joined or after}: {error.message.removeprefix('Value error, ')}"
    return f"error: {message.removesuffix('.')}. See --help." if message else ""


def _show_trace(typed: Sequence[str]) -> None:
    if "--debug" in typed:
        traceback.print_exc()


class Task(enum.StrEnum):
    auto = "auto"
    regression = "regression"
    classification = "classification"


class Algorithm(enum.StrEnum):
    flow = "flow"
    gd = "gd"
    ridge = "ridge"


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"nearkernel {__version__}")
        raise typer.Exit


@app.callback()
def nearkernel(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop."),
    ] = False,
) -> None:
    """Predict what neural networks do after training, without training them.

    Example: `nearkernel predict digits`
    """


_FINITE = "A network of finite width"


@app.command()
def predict(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, diabetes, breast_cancer, wine or iris; or a .csv, .parquet or .npz file.",
            show_default=False,
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
    test_fraction: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Share of the rows held out for testing.")
    ] = 0.2,
    max_train: Annotated[
        int, typer.Option(min=2, help="Most training rows; time grows with their cube.")
    ] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split into training and test rows.")] = 0,
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
    ] = Algorithm.flow,
    time: Annotated[
        float | None,
        typer.Option(
            min=0, help="flow: how long. [default: to the end]", show_default=False, rich_help_panel=TRAINING
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="gd: learning rate, for the loss 1/2 sum (z - y)^2 of the standardised target.",
            show_default=False,
            rich_help_panel=TRAINING,
        ),
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
    order: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2,
            help="Predict one network of finite width too, to this order. [default: not]",
            show_default=False,
            rich_help_panel=_FINITE,
        ),
    ] = None,
    train: Annotated[
        bool,
        typer.Option("--train", help="Train that network for real, and compare.", rich_help_panel=_FINITE),
    ] = False,
    width: Annotated[
        int, typer.Option(min=1, max=100_000, help="Its neurons a hidden layer.", rich_help_panel=_FINITE)
    ] = 512,
    out: ThreeFiles = Path("out"),
    json: Annotated[
        bool, typer.Option("--json", help="Print result.json instead of the table.", rich_help_panel=OUTPUT)
    ] = False,
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
    """
    from ._predict.command import Options, predict_and_report

    options = Options(
        data=data,
        target=target,
        drop=tuple(drop or ()),
        task=task.value,
        test_fraction=test_fraction,
        max_train=max_train,
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
        order=order,
        train=train,
        width=width,
    )
    predict_and_report(options, out, print_json=json)


@app.command()
def advise(
    activation: Activation = "relu",
    depth: Depth = 20,
    width: Annotated[
        int, typer.Option(min=1, max=100_000, help="Neurons in each of them.", rich_help_panel=NETWORK)
    ] = 512,
    data: Annotated[
        str | None,
        typer.Option(
            help="Inputs to be learnt from: digits, diabetes, ... or a .csv, .parquet or .npz file.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of --data that is to be predicted.", show_default=False)
    ] = None,
    drop: Drop = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=1e-9,
            help="Say which width brings networks trained on a few rows of --data so close to infinite width (mean in "
            "deviations, variance relative).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random networks.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the two files.", rich_help_panel=OUTPUT)] = Path(
        "out"
    ),
    json: Annotated[
        bool, typer.Option("--json", help="Print advice.json instead of the text.", rich_help_panel=OUTPUT)
    ] = False,
    debug: Debug = False,
) -> None:
    """How should a deep network be initialized, and how fast may it be trained?

    Prints the critical initialization as PyTorch, Flax and Keras spell it, stable learning rates, how much networks
    of this depth and width differ from draw to draw, and what the frameworks' defaults would do to signals and
    gradients, predicted and measured on random networks. Writes advice.json and advice.png.

    Examples:

    `nearkernel advise --activation gelu --depth 20 --width 512`

    `nearkernel advise --activation tanh --depth 50 --width 256 --data houses.csv --target price`

    `nearkernel advise --activation gelu --depth 3 --width 256 --data diabetes --tolerance 0.05`
    """
    from ._advise.command import Options, advise_and_report

    options = Options(
        activation=activation,
        depth=depth,
        width=width,
        data=data,
        target=target,
        drop=tuple(drop or ()),
        seed=seed,
        tolerance=tolerance,
    )
    advise_and_report(options, out, print_json=json)


@app.command()
def ladder(
    points: Annotated[int, typer.Option(min=2, max=2000, help="Training points.")] = 60,
    test_points: Annotated[int, typer.Option(min=1, help="Test points, where distances are measured.")] = 60,
    dim: Annotated[int, typer.Option(min=1, help="Features of an input.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, help="How many data sets and initializations.")] = 1,
    depth: Annotated[
        int, typer.Option(min=1, max=100, help="Number of hidden layers.", rich_help_panel=NETWORK)
    ] = 2,
    width: Annotated[
        int, typer.Option(min=1, help="Neurons in each, for the sweep over alpha.", rich_help_panel=NETWORK)
    ] = 256,
    activation: Annotated[
        str, typer.Option(help="tanh, gelu, erf, silu, sin, ...: smooth.", rich_help_panel=NETWORK)
    ] = "tanh",
    alphas: Annotated[
        str, typer.Option(help="Lazy scales to train at, separated by commas.", rich_help_panel=NETWORK)
    ] = "1,4,16,64",
    widths: Annotated[
        str, typer.Option(help="Widths to train at; empty for none.", rich_help_panel=NETWORK)
    ] = "64,256,1024",
    alpha: Annotated[
        float, typer.Option(min=0, help="Lazy scale of the sweep over widths.", rich_help_panel=NETWORK)
    ] = 8.0,
    tol: Annotated[
        float,
        typer.Option(help="Share of the residual at which training is over.", rich_help_panel=TRAINING),
    ] = 1e-6,
    max_steps: Annotated[
        int, typer.Option(min=1, help="Most steps of gradient descent.", rich_help_panel=TRAINING)
    ] = 200_000,
    out: ThreeFiles = Path("out"),
    json: Annotated[
        bool, typer.Option("--json", help="Print ladder.json instead of the table.", rich_help_panel=OUTPUT)
    ] = False,
    debug: Debug = False,
) -> None:
    """How far is a really trained network from its prediction, order by order?

    Trains networks by gradient descent and predicts each without training: order 0 is the linearized network, order 1
    adds learned features, order 2 the next order. Shows their distances over the lazy scale alpha (outputs times alpha,
    so that parameters move less) and over the width. Writes ladder.png, ladder.svg and ladder.json.

    Examples:

    `nearkernel ladder`

    `nearkernel ladder --seeds 3 --points 100 --alphas 1,2,4,8,16,32,64 --widths 64,128,256,512,1024`
    """
    from ._ladder.command import ladder_and_report
    from ._ladder.options import settings

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
        max_steps=max_steps,
    )
    ladder_and_report(chosen, out, print_json=json)


app.add_typer(kernel_app, name="kernel")
app.add_typer(claims_app, name="claims")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows "?" for "±"
    app()
