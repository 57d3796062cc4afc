"""One BLAS thread where more would only wait for each other.

OpenBLAS workers spin for tens of milliseconds after each product, and NumPy and SciPy bring a pool each: for
matrices of a thousand rows the spinning costs more than the second thread gives. While this library works on
such, all pools are set to one thread, and back when the last caller has left.
"""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._base.types import Unchecked

if TYPE_CHECKING:
    import threadpoolctl

_LOCK = threading.Lock()
SMALL = 1500  # rows
_inside = 0
_limiter: Unchecked = None


@functools.cache
def _controller() -> "threadpoolctl.ThreadpoolController":
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


@contextlib.contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """BLAS on one thread within the `with`, for problems of up to 1500 `rows`; larger ones keep their threads."""
    global _inside, _limiter
    if rows > SMALL:
        yield
        return
    with _LOCK:
        if _inside == 0:
            _limiter = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()
