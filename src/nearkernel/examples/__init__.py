"""Small worked examples of the theory."""

from .. import _quietly as _quietly
from ..geometry._region_laws import zaslavsky as zaslavsky
from ._lipschitz import lipschitz_code as lipschitz_code
from ._lipschitz import lipschitz_decode as lipschitz_decode
from ._sawtooth import sawtooth as sawtooth
from ._walk import walk_density as walk_density
