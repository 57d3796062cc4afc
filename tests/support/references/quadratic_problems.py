"""The problems that claims about quadratic models are checked on, for tests: one place for both."""

from nearkernel.claims._claim import slope as slope
from nearkernel.claims.features._problems import *  # noqa: F403
from nearkernel.claims.features._problems import DIRECTIONS as DIRECTIONS
