"""`nearkernel inspect`. Everything heavy is imported inside the command."""

from pathlib import Path

from ..declared import command
from ..options import Json, Out
from .options import Options


@command
def inspect(options: Options, out: Out = Path("out"), json: Json = False) -> None:
    """Predict the training of a network, and check how far the prediction can be trusted.

    Predicts the loss and the outputs of full-batch gradient descent from the network's tangent kernel, without
    training, and checks each prediction against the network itself at the predicted weights. Writes report.html,
    inspection.json and inspection.png.

    Examples:

    `nearkernel inspect net.py:network digits --shape 1,8,8`

    `nearkernel inspect net.py:network digits --loss cross_entropy --steps 200 --pieces 6`
    """
    from .command import inspect_and_report

    inspect_and_report(options, out, json)
