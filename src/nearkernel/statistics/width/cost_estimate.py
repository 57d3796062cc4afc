"""What averages over sets of four inputs will take, said before they are made."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from ..._base.warning import warn

Sets = Sequence[tuple[int, ...]]

_FEW = 2000  # sets that are made sooner than their price is known
_LONG = 60.0  # seconds


def announce_price(
    make: Callable[[Sets], object],
    sets: Sets,
    tried: int,
    layers: int,
    inputs: int,
    threads: int,
    layer: str = "hidden layers",
) -> None:
    """Warns if averages over all `sets` in so many layers, or what `layer` says, will take longer than a minute.

    `make` averages over some of them on one of `threads` threads; `tried` many are made for a trial.
    """
    if len(sets) * layers <= _FEW:
        return
    chosen = [sets[int(i)] for i in np.linspace(0, len(sets) - 1, tried)]
    make(chosen[:1])  # compiles
    start = time.perf_counter()
    make(chosen)
    seconds = (time.perf_counter() - start) / tried * len(sets) * layers / threads
    if seconds > _LONG:
        warn(
            f"`order=1` of {inputs} different inputs averages over {len(sets):,} sets of four in each of {layers} "
            f"{layer}: about {_words(seconds)}. Time grows with the fourth power of their number: use fewer."
        )


def _words(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours" if seconds < 172800 else f"{seconds / 86400:.0f} days"
