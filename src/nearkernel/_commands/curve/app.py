"""`nearkernel curve`. Everything heavy is imported inside the command."""

from pathlib import Path

from ..declared import command
from ..options import Json, Out
from .options import Options


@command
def curve(options: Options, out: Out = Path("out"), json: Json = False) -> None:
    """Predict how the error falls with the number of rows, without holding any out.

    Computes, from one kernel matrix of an infinitely wide network, the expected test error for every number of rows,
    with error bars, and the gain from twice as many rows. Writes report.html, curve.png and curve.json.

    Examples:

    `nearkernel curve digits --tune`

    `nearkernel curve houses.csv --target price --tune --check 3`
    """
    from .command import curve_and_report

    curve_and_report(options, out, json)
