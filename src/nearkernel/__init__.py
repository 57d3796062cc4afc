"""Predict what a neural network does after training, without training it, and check it against real training."""

from . import activations as activations
from . import dynamics as dynamics
from . import geometry as geometry
from . import kernels as kernels
from . import models as models
from . import scale as scale
from . import statistics as statistics
from ._precision import precision as precision
from .dynamics import SGD as SGD
from .dynamics import DirectOptimization as DirectOptimization
from .dynamics import GradientDescent as GradientDescent
from .dynamics import GradientFlow as GradientFlow
from .dynamics import Record as Record
from .dynamics import Ridge as Ridge
from .dynamics import one_step_features as one_step_features
from .dynamics import phase as phase
from .dynamics import simulate as simulate
from .dynamics import solve as solve
from .models import MLP as MLP
from .models import CubicModel as CubicModel
from .models import FeatureModel as FeatureModel
from .models import QuadraticModel as QuadraticModel
from .models import Scaled as Scaled
from .models import expand as expand
from .models import from_function as from_function
from .statistics import critical as critical
from .statistics import forecast as forecast
from .statistics import measure as measure
from .statistics import phase_diagram as phase_diagram
from .statistics import propagate as propagate

__version__ = "0.1.0"


def __getattr__(name: str):
    if name in ("estimators", "claims"):  # only for those who ask: scikit-learn takes a second to import
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
