"""Predict what a neural network does after training, without training it, and check it against real training."""

from typing import TYPE_CHECKING

from ._base.rooms import public as _public

__version__ = "0.2.0"

if TYPE_CHECKING:
    from . import activations as activations
    from . import claims as claims
    from . import dynamics as dynamics
    from . import estimators as estimators
    from . import forecasts as forecasts
    from . import geometry as geometry
    from . import kernels as kernels
    from . import layers as layers
    from . import models as models
    from . import results as results
    from . import scale as scale
    from . import statistics as statistics
    from . import theory as theory
    from ._base.status import Status as Status
    from ._base.status import StatusKind as StatusKind
    from ._run.cache import cache as cache
    from ._run.precision import precision as precision
    from ._run.progress import progress as progress
    from ._saved.verbs import load as load
    from ._saved.verbs import save as save
    from .dynamics.algorithms.adaptive import Adam as Adam
    from .dynamics.algorithms.adaptive import Optax as Optax
    from .dynamics.algorithms.regime import regime as regime
    from .dynamics.algorithms.sgd import SGD as SGD
    from .dynamics.algorithms.spectral import DirectOptimization as DirectOptimization
    from .dynamics.algorithms.spectral import GradientDescent as GradientDescent
    from .dynamics.algorithms.spectral import GradientFlow as GradientFlow
    from .dynamics.algorithms.spectral import Ridge as Ridge
    from .dynamics.inspection.inspect import inspect as inspect
    from .dynamics.simulation.simulate import Record as Record
    from .dynamics.simulation.simulate import simulate as simulate
    from .dynamics.solving import solve as solve
    from .forecasts.conditioning import posterior as posterior
    from .forecasts.curves.curve import learning_curve as learning_curve
    from .forecasts.forecasting import forecast as forecast
    from .forecasts.infinite_width.theory import InfiniteWidth as InfiniteWidth
    from .forecasts.mean_field.theory import MeanField as MeanField
    from .forecasts.order_half.theory import Kinks as Kinks
    from .forecasts.order_one.theory import FiniteWidth as FiniteWidth
    from .models.expansion.features import FeatureModel as FeatureModel
    from .models.expansion.quadratic import QuadraticModel as QuadraticModel
    from .models.expansion.taylor import expand as expand
    from .models.interop.function import from_function as from_function
    from .models.interop.jax_libraries import from_network as from_network
    from .models.interop.pytorch import from_torch as from_torch
    from .models.interop.pytorch import to_torch as to_torch
    from .models.interop.trainable import LoRA as LoRA
    from .models.networks.maximal_update import MaximalUpdate as MaximalUpdate
    from .models.networks.mlp import MLP as MLP
    from .models.networks.network import Network as Network
    from .models.networks.presets import CNN as CNN
    from .models.networks.presets import ResMLP as ResMLP
    from .models.networks.presets import Transformer as Transformer
    from .models.networks.richness import richness as richness
    from .models.networks.scaled import Scaled as Scaled
    from .statistics.depth.critical import critical as critical
    from .statistics.measuring import measure as measure
    from .statistics.width.propagation import propagate as propagate
else:
    __getattr__, __dir__ = _public(__name__, __file__)
