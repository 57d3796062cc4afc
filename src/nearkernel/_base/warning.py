"""Warnings that point at the caller's line."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def _ours(filename: str) -> bool:
    """Whether a frame is of this package, or of Equinox, which calls the methods of its modules."""
    return filename.startswith(_PACKAGE) or "equinox" in Path(filename).parts


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line outside of this package that led here, however many functions lie between."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _ours(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
