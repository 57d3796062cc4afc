"""`nearkernel advise`. Everything heavy is imported inside the command."""

from pathlib import Path

from ..declared import command
from ..options import Json, Out
from .options import Options


@command
def advise(options: Options, out: Out = Path("out"), json: Json = False) -> None:
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
    from .command import advise_and_report

    advise_and_report(options, out, json)
