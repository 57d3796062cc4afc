"""Activations with their Gaussian averages."""

from .._run import quietly as _quietly
from .averages.series import Series as Series
from .base import AbstractActivation as AbstractActivation
from .base import Moments as Moments
from .base import dual as dual
from .base import moments as moments
from .by_name import get as get
from .by_name import names as names
from .closed import Erf as Erf
from .closed import Gaussian as Gaussian
from .closed import Gelu as Gelu
from .closed import PiecewiseLinear as PiecewiseLinear
from .closed import Sine as Sine
from .monomial import Monomial as Monomial
