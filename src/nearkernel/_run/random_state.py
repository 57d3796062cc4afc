"""The random numbers of the host program stay its own: their generators are put back where others draw from them."""

import contextlib
import random
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def random_state_kept() -> Iterator[None]:
    """Within a `with`, draws from the global generators of Python and NumPy have no effect on what comes after."""
    python, numpy = random.getstate(), sys.modules.get("numpy.random")
    state = None if numpy is None else numpy.get_state(legacy=False)
    try:
        yield
    finally:
        random.setstate(python)
        if numpy is not None:
            numpy.set_state(state)
