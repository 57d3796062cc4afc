"""Is it true? Statements of the theory, each with the experiment that would show it wrong.

    nearkernel claims run catapult-phases

One file per claim, in folders by topic. `claims.find(name)` gives its class, whose fields are the settings.
"""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .._base.settings import Setting as Setting
    from .._base.settings import setting as setting
    from ._claim import Claim as Claim
    from ._claim import Result as Result
    from ._erratum import Erratum as Erratum
    from ._registry import every as every
    from ._registry import find as find
    from ._row import Row as Row
    from ._row import at_least as at_least
    from ._row import at_most as at_most
    from ._row import exact as exact
    from ._row import refuted as refuted
    from ._row import statistical as statistical
    from ._row import unlike as unlike
else:
    __getattr__, __dir__ = _public(__name__, __file__)
