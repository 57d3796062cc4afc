"""What do all networks do, on average over their starts?"""

from ._forecast import Forecast as Forecast
from ._forecast import forecast as forecast
from ._measure import Estimate as Estimate
from ._measure import measure as measure
from ._posterior import Posterior as Posterior
from ._posterior import posterior as posterior
