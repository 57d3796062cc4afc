"""Kernel matrices that do not fit in memory: products, iterations, blocks on disk, clusters."""

from .._run import quietly as _quietly
from .._run.executor import on_cluster as on_cluster
from .building import build as build
from .fingerprint import Named as Named
from .planning import Cost as Cost
from .planning import PlanResult as PlanResult
from .planning import plan as plan
from .rates import Rates as Rates
from .rates import measure_rates as measure_rates
from .store import KernelStore as KernelStore
from .store import open_store as open_store
