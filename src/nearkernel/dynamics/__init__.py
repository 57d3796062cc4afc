"""Training: algorithms, their exact solutions, their simulation, and regimes of learning."""

from .. import _quietly as _quietly
from .._moved import moved as _moved
from ._abstract_solution import AbstractSolution as AbstractSolution
from ._abstract_solution import Prediction as Prediction
from ._adaptive import Adam as Adam
from ._adaptive import Optax as Optax
from ._algorithms import AbstractAlgorithm as AbstractAlgorithm
from ._algorithms import DirectOptimization as DirectOptimization
from ._algorithms import GradientDescent as GradientDescent
from ._algorithms import GradientFlow as GradientFlow
from ._algorithms import Ridge as Ridge
from ._algorithms import SpectralAlgorithm as SpectralAlgorithm
from ._algorithms import TimedAlgorithm as TimedAlgorithm
from ._catapult import CatapultPath as CatapultPath
from ._catapult import catapult as catapult
from ._evidence import TunedKernel as TunedKernel
from ._evolve import FunctionSpaceSolution as FunctionSpaceSolution
from ._feature_learning import FeatureLearning as FeatureLearning
from ._first_gradient import first_gradient as first_gradient
from ._fluctuation import StationarySGD as StationarySGD
from ._fluctuation import fluctuation_observables as fluctuation_observables
from ._fluctuation import gradient_moment as gradient_moment
from ._fluctuation import sgd_stationary as sgd_stationary
from ._fluctuation import sgd_until_stationary as sgd_until_stationary
from ._implicit_bias import implicit_minimizer as implicit_minimizer
from ._implicit_bias import implicit_potential as implicit_potential
from ._inspect import inspect as inspect
from ._inspection import Inspection as Inspection
from ._iterative import MachineSolution as MachineSolution
from ._iterative import NystromSolution as NystromSolution
from ._kernel_margin import KernelMarginResult as KernelMarginResult
from ._kernel_margin import kernel_margin as kernel_margin
from ._kernel_margin import normalized_margin as normalized_margin
from ._leave_one_out import LeaveOneOut as LeaveOneOut
from ._losses import AbstractLoss as AbstractLoss
from ._losses import CrossEntropy as CrossEntropy
from ._losses import Huber as Huber
from ._losses import Squared as Squared
from ._margin import MarginPath as MarginPath
from ._margin import MaxMarginResult as MaxMarginResult
from ._margin import margin_flow as margin_flow
from ._margin import max_margin as max_margin
from ._movement import MovementResult as MovementResult
from ._movement import movement as movement
from ._nearly import NearlyKernelSolution as NearlyKernelSolution
from ._one_step import OneStepFeaturesResult as OneStepFeaturesResult
from ._one_step import OneStepNetwork as OneStepNetwork
from ._one_step import one_step_features as one_step_features
from ._orders import Unbounded as Unbounded
from ._phase import Phase as Phase
from ._phase import learning_rate_phase as learning_rate_phase
from ._phase import phase_boundaries as phase_boundaries
from ._phase import phase_of as phase_of
from ._projectors import Projectors as Projectors
from ._recursive import RecursiveFeaturesResult as RecursiveFeaturesResult
from ._recursive import recursive_features as recursive_features
from ._regime import RegimeResult as RegimeResult
from ._regime import regime as regime
from ._ridges import Ridges as Ridges
from ._sample_space import SampleSpaceRun as SampleSpaceRun
from ._sample_space import sample_space_descent as sample_space_descent
from ._sgd_solution import SGDSolution as SGDSolution
from ._simulate import Record as Record
from ._simulate import Trajectory as Trajectory
from ._simulate import simulate as simulate
from ._solution import Solution as Solution
from ._solvable import has_kinks as has_kinks
from ._solve import solve as solve
from ._solvers import ConjugateGradients as ConjugateGradients
from ._solvers import Direct as Direct
from ._solvers import EigenPro as EigenPro
from ._solvers import Nystrom as Nystrom
from ._solvers import Richardson as Richardson
from ._stochastic import SGD as SGD
from ._subspace import average_gradient_outer_product as average_gradient_outer_product
from ._subspace import subspace_overlap as subspace_overlap
from ._tune import Tuned as Tuned
from ._tune import tune as tune
from ._verdict import Verdict as Verdict

_RECORDS = ("MaxMargin", "Movement", "OneStepFeatures", "RecursiveFeatures")
_OLD = {name: f"dynamics.{name}Result" for name in _RECORDS} | {
    "phase": "learning_rate_phase",
    "walk_density": "examples.walk_density",
}
__getattr__ = _moved(__name__, _OLD)
