"""Training: algorithms, their exact solutions, their simulation, and regimes of learning."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .algorithms.adaptive import Adam as Adam
    from .algorithms.adaptive import Optax as Optax
    from .algorithms.losses import AbstractLoss as AbstractLoss
    from .algorithms.losses import CrossEntropy as CrossEntropy
    from .algorithms.losses import Huber as Huber
    from .algorithms.losses import Squared as Squared
    from .algorithms.sgd import SGD as SGD
    from .algorithms.spectral import AbstractAlgorithm as AbstractAlgorithm
    from .algorithms.spectral import DirectOptimization as DirectOptimization
    from .algorithms.spectral import GradientDescent as GradientDescent
    from .algorithms.spectral import GradientFlow as GradientFlow
    from .algorithms.spectral import Ridge as Ridge
    from .algorithms.spectral import SpectralAlgorithm as SpectralAlgorithm
    from .algorithms.spectral import TimedAlgorithm as TimedAlgorithm
    from .inspection.inspect import inspect as inspect
    from .linear.solvers import ConjugateGradients as ConjugateGradients
    from .linear.solvers import Direct as Direct
    from .linear.solvers import EigenPro as EigenPro
    from .linear.solvers import Nystrom as Nystrom
    from .linear.solvers import Richardson as Richardson
    from .linear.tune import tune as tune
    from .simulation.simulate import Record as Record
    from .simulation.simulate import simulate as simulate
    from .solving import solve as solve
else:
    __getattr__, __dir__ = _public(__name__, __file__)
