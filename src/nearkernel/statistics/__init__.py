"""What do all networks do, on average over their starts?"""

from ._critical import Critical as Critical
from ._critical import critical as critical
from ._fluctuations import Fluctuations as Fluctuations
from ._forecast import Forecast as Forecast
from ._forecast import forecast as forecast
from ._measure import Estimate as Estimate
from ._measure import measure as measure
from ._observables import extrapolated as extrapolated
from ._observables import observables as observables
from ._phases import PhaseDiagram as PhaseDiagram
from ._phases import phase_diagram as phase_diagram
from ._posterior import Posterior as Posterior
from ._posterior import posterior as posterior
from ._propagate import Layer as Layer
from ._propagate import Propagation as Propagation
from ._propagate import propagate as propagate
