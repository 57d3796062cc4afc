"""The kernel between new inputs and the training set: made once for all times at which one asks for them."""

from collections.abc import Iterator

import numpy as np

from ..._run.memory import rows_that_fit
from .tangent import AbstractTangent

_KEPT = 2**28  # bytes that are kept at most


class KeptCross:
    """k(x_new, x), kept for the last `x_new` if it is not large."""

    def __init__(self, tangent: AbstractTangent, x: np.ndarray):
        self._tangent, self._x = tangent, x
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def parts(self, x_new: np.ndarray, row_bytes: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows and the kernel of these rows, in pieces that fit into memory."""
        if self._last is not None and np.array_equal(self._last[0], x_new):
            yield slice(None), self._last[1]
            return
        chunk = rows_that_fit(row_bytes)
        for at in range(0, len(x_new), chunk):
            part = slice(at, at + chunk)
            cross = self._tangent.cross(x_new[part], self._x)
            if len(x_new) <= chunk and cross.nbytes <= _KEPT:
                self._last = x_new.copy(), cross
            yield part, cross
