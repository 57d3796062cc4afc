"""Statistics of random and trained networks over initializations and data."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

# Names of modules above that programs know as `nk.statistics.<name>`.
_ELSEWHERE = dict.fromkeys(("posterior", "KernelTask"), "nearkernel.forecasts")

if TYPE_CHECKING:
    from .depth.critical import critical as critical
    from .depth.learning_rate import learning_rates as learning_rates
    from .depth.phases import phase_diagram as phase_diagram
    from .measuring import measure as measure
    from .moves.coordinates import coordinate_check as coordinate_check
    from .moves.first_move import first_move as first_move
    from .width.propagation import propagate as propagate
else:
    __getattr__, __dir__ = _public(__name__, __file__, _ELSEWHERE)
