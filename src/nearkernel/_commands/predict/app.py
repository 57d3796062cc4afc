"""`nearkernel predict` and `nearkernel apply`. Everything heavy is imported inside a command."""

from pathlib import Path
from typing import Annotated

from ..._base.files import missing
from ..declared import argument, command, option
from ..options import OUTPUT, Json, Out
from .options import Options
from .reading.sources import check_save, check_source


@command
def predict(
    *,
    target: Annotated[
        tuple[str, ...],
        option(
            "Column to predict (csv, xlsx, parquet), or array (npz; default: y). May be repeated: each target "
            "is predicted from the other columns, into a separate folder."
        ),
    ] = (),
    options: Options,
    out: Out = Path("out"),
    json: Json = False,
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
    from .command import predict_and_report

    predict_and_report(options, tuple(dict.fromkeys(target)), out, json)


@command
def apply(
    model: Annotated[Path, argument("A file written by `nearkernel predict --save` or nk.save.")],
    data: Annotated[str, argument("New rows: a .csv, .tsv, .xlsx, .parquet or .npz file.")],
    out: Annotated[Path, option("File for the predictions.", OUTPUT)] = Path("predictions.csv"),
    coverage: Annotated[
        float, option("Numeric targets: probability of the intervals.", min=0.01, max=0.999)
    ] = 0.9,
    keep: Annotated[
        tuple[str, ...],
        option(
            "Also write this column of the new rows. May be repeated; row numbers and ids are always written."
        ),
    ] = (),
    strict: Annotated[
        bool, option("Stop if new rows contain kinds of values that training rows did not.")
    ] = False,
    json: Json = False,
) -> None:
    """Predict new rows with a saved model.

    Writes one line per row: its number (as in a spreadsheet, where the names are row 1), its id, the prediction, and
    the probability of each class or an interval. If the file contains the target, the score is shown, too. A model
    file contains only data: loading it runs no code.

    Examples:

    `nearkernel apply model.nk new.csv`

    `nearkernel apply model.nk new.csv --out predictions.csv --coverage 0.8 --keep street --keep city`
    """
    if not model.is_file():
        raise ValueError(missing(model))
    check_source(data, embedded=False)
    check_save(out, "--out")
    from .apply import apply_and_write

    apply_and_write(model, data, out, coverage, strict, json, keep)
