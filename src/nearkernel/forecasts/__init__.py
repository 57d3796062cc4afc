"""Forecasts: the distribution of all networks after training, by theories of infinite and finite width."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from ..dynamics.algorithms.regime import regime as regime
    from .conditioning import posterior as posterior
    from .curves.curve import learning_curve as learning_curve
    from .curves.task import KernelTask as KernelTask
    from .curves.task import power_law_task as power_law_task
    from .curves.task import sphere_task as sphere_task
    from .forecasting import forecast as forecast
    from .infinite_width.theory import InfiniteWidth as InfiniteWidth
    from .mean_field.theory import MeanField as MeanField
    from .order_half.theory import Kinks as Kinks
    from .order_one.theory import FiniteWidth as FiniteWidth
    from .theory import AbstractTheory as AbstractTheory
    from .theory import Needs as Needs
    from .theory import Problem as Problem
else:
    __getattr__, __dir__ = _public(__name__, __file__)
