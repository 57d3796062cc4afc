"""Activations with their Gaussian averages."""

from .. import _quietly as _quietly
from ._base import AbstractActivation as AbstractActivation
from ._base import Moments as Moments
from ._base import dual as dual
from ._base import moments as moments
from ._closed import Erf as Erf
from ._closed import Gaussian as Gaussian
from ._closed import Gelu as Gelu
from ._closed import PiecewiseLinear as PiecewiseLinear
from ._closed import Sine as Sine
from ._monomial import Monomial as Monomial
from ._names import get as get
from ._names import names as names
from ._series import Series as Series
