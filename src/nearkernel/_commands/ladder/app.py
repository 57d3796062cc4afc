"""`nearkernel ladder`. Everything heavy is imported inside the command."""

from pathlib import Path

from ..declared import command
from ..options import Json, Out
from .options import Options


@command
def ladder(options: Options, out: Out = Path("out"), json: Json = False) -> None:
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

    ladder_and_report(options.settings(), out, json)
