"""Kernel matrices that do not fit in memory: products, iterations, blocks on disk, clusters."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .._run.executor import on_cluster as on_cluster
    from .building import build as build
    from .fingerprint import Named as Named
    from .planning import plan as plan
    from .rates import measure_rates as measure_rates
    from .store import open_store as open_store
else:
    __getattr__, __dir__ = _public(__name__, __file__)
