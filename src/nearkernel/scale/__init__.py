"""Kernel matrices that do not fit in memory: products, iterations, blocks on disk, clusters."""

from .. import _quietly as _quietly
from .._executor import on_cluster as on_cluster
from ._build import build as build
from ._fingerprint import Named as Named
from ._plan import Cost as Cost
from ._plan import PlanResult as PlanResult
from ._plan import plan as plan
from ._rates import Rates as Rates
from ._rates import measure_rates as measure_rates
from ._store import KernelStore as KernelStore
from ._store import open_store as open_store
