"""Activations with their Gaussian averages."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .base import AbstractActivation as AbstractActivation
    from .by_name import get as get
    from .by_name import names as names
else:
    __getattr__, __dir__ = _public(__name__, __file__)
