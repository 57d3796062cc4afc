"""Options that several commands share."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from .completion import activations, data_sets

NETWORK, TRAINING, OUTPUT = "The network", "Training", "Output"
MOST_LAYERS = 1000


class Task(enum.StrEnum):
    auto = "auto"
    regression = "regression"
    classification = "classification"


class Algorithm(enum.StrEnum):
    flow = "flow"
    gd = "gd"
    ridge = "ridge"


Depth = Annotated[
    int, typer.Option(min=1, max=MOST_LAYERS, help="Number of hidden layers.", rich_help_panel=NETWORK)
]
Activation = Annotated[
    str,
    typer.Option(
        help="relu, tanh, erf, gelu, silu, mish, ..., or a formula like 'tanh(z) + 0.1*z^2'.",
        rich_help_panel=NETWORK,
        autocompletion=activations,
    ),
]
WeightVar = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Variance of the weights, times their fan-in. [default: 2 for relu, else 1.5]",
        show_default=False,
        rich_help_panel=NETWORK,
    ),
]
BiasVar = Annotated[float, typer.Option(min=0, help="Variance of the biases.", rich_help_panel=NETWORK)]
DataSet = Annotated[
    str,
    typer.Argument(
        help="digits, diabetes, breast_cancer, wine or iris; or a .csv, .tsv, .xlsx, .parquet or .npz file.",
        show_default=False,
        autocompletion=data_sets,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(help="Column to predict (csv, parquet), or array (npz; default: y).", show_default=False),
]
TaskOption = Annotated[
    Task, typer.Option(help="auto: labels, and integers with at most 20 values, are classes.")
]
AlgorithmOption = Annotated[
    Algorithm,
    typer.Option(
        help="flow: gradient flow. gd: gradient descent. ridge: the minimum with weight decay.",
        rich_help_panel=TRAINING,
    ),
]
Time = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="flow: training time. [default: to convergence]",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="gd: number of steps. [default: to convergence]",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
RidgeStrength = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="ridge: strength of the weight decay. [default: 0.01]",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be repeated.", show_default=False),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Out = Annotated[
    Path, typer.Option(help="Folder for report.html and the other files.", rich_help_panel=OUTPUT)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of text.", rich_help_panel=OUTPUT)
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show where an error comes from.", rich_help_panel=OUTPUT)
]


def default_weight_var(activation: str) -> float:
    """What `WeightVar` promises: a relu loses half of the variance it is given."""
    return 2.0 if "relu" in activation else 1.5
