"""Old names of constructions, which are now in `nearkernel.theory`."""

from ._base.rooms import public as _public

__getattr__, __dir__ = _public(__name__, __file__)
