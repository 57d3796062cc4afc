"""Small worked examples of the theory."""

from .._run import quietly as _quietly
from ..geometry.constructions.lipschitz import lipschitz_code as lipschitz_code
from ..geometry.constructions.lipschitz import lipschitz_decode as lipschitz_decode
from ..geometry.constructions.random_walk import walk_density as walk_density
from ..geometry.constructions.sawtooth import sawtooth as sawtooth
from ..geometry.linear_regions.laws import zaslavsky as zaslavsky
