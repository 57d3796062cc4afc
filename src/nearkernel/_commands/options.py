"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import nearkernel as nk

from .completion import activations, data_sets
from .declared import argument, option

if TYPE_CHECKING:
    from ..activations import AbstractActivation

NETWORK, TRAINING, OUTPUT = "The network", "Training", "Output"
MOST_LAYERS = 1000

Depth = Annotated[int, option("Number of hidden layers.", NETWORK, min=1, max=MOST_LAYERS)]
Activation = Annotated[
    str,
    option(
        "relu, tanh, erf, gelu, silu, mish, ..., or a formula like 'tanh(z) + 0.1*z^2'.",
        NETWORK,
        autocompletion=activations,
    ),
]
WeightVar = Annotated[
    float | None,
    option("Variance of the weights, times their fan-in. [default: 2 for relu, else 1.5]", NETWORK, min=0),
]
BiasVar = Annotated[float, option("Variance of the biases.", NETWORK, min=0)]
_DATA = "digits, diabetes, breast_cancer, wine or iris; or a .csv, .tsv, .xlsx, .parquet or .npz file."
DataSet = Annotated[str, argument(_DATA, autocompletion=data_sets)]
Target = Annotated[str | None, option("Column to predict (csv, parquet), or array (npz; default: y).")]
Task = Annotated[
    Literal["auto", "regression", "classification"],
    option("auto: labels, and integers with at most 20 values, are classes."),
]
Algorithm = Annotated[
    Literal["flow", "gd", "ridge"],
    option("flow: gradient flow. gd: gradient descent. ridge: the minimum with weight decay.", TRAINING),
]
Time = Annotated[float | None, option("flow: training time. [default: to convergence]", TRAINING, min=0)]
Steps = Annotated[int | None, option("gd: number of steps. [default: to convergence]", TRAINING, min=1)]
RidgeStrength = Annotated[
    float | None, option("ridge: strength of the weight decay. [default: 0.01]", TRAINING, min=0)
]
Drop = Annotated[tuple[str, ...], option("Column to leave out; may be repeated.")]
Seed = Annotated[int, option("Seed of all random numbers.", min=0)]
Out = Annotated[Path, option("Folder for report.html and the other files.", OUTPUT)]
Json = Annotated[bool, option("Print one JSON document instead of text.", OUTPUT)]


def default_weight_var(activation: str) -> float:
    """What `WeightVar` promises: a relu loses half of the variance it is given."""
    return 2.0 if "relu" in activation else 1.5


def activation_of(name: str) -> AbstractActivation:
    """The activation that was typed."""
    try:
        return nk.activations.get(name)
    except ValueError as error:
        raise ValueError(str(error).replace("`activation`", "--activation")) from error
