"""Statistics of random and trained networks over initializations and data."""

from .. import _quietly as _quietly
from .._moved import moved as _moved
from ._adapted import Adapted as Adapted
from ._adapted import adapted_mean as adapted_mean
from ._average_variance import average_variance as average_variance
from ._block import BlockFlow as BlockFlow
from ._clouds import Clouds as Clouds
from ._concentration import ConcentrationResult as ConcentrationResult
from ._concentration import LargestEigenvalueResult as LargestEigenvalueResult
from ._concentration import concentration as concentration
from ._concentration import largest_eigenvalue as largest_eigenvalue
from ._concentration import matrix_bernstein as matrix_bernstein
from ._concentration import matrix_chernoff as matrix_chernoff
from ._concentration import matrix_chernoff_below as matrix_chernoff_below
from ._coordinates import CoordinateCheckResult as CoordinateCheckResult
from ._coordinates import coordinate_check as coordinate_check
from ._critical import CriticalResult as CriticalResult
from ._critical import critical as critical
from ._curve_record import Extrapolation as Extrapolation
from ._curve_record import LearningCurveResult as LearningCurveResult
from ._curve_record import TrainedCurve as TrainedCurve
from ._deep_linear import best_prior_var as best_prior_var
from ._deep_linear import deep_linear_log_evidence as deep_linear_log_evidence
from ._deep_linear import effective_depth as effective_depth
from ._deep_linear import limiting_scale as limiting_scale
from ._deep_linear_posterior import DeepLinearPosteriorResult as DeepLinearPosteriorResult
from ._deep_linear_posterior import deep_linear_posterior as deep_linear_posterior
from ._deep_linear_table import ModelRow as ModelRow
from ._deep_linear_table import ModelTable as ModelTable
from ._deep_linear_table import deep_linear_table as deep_linear_table
from ._depth_losses import DepthLossesResult as DepthLossesResult
from ._depth_losses import depth_losses as depth_losses
from ._expected_loss import ExpectedLoss as ExpectedLoss
from ._finite_forecast import Contribution as Contribution
from ._finite_forecast import FiniteForecast as FiniteForecast
from ._finite_forecast import StandardErrors as StandardErrors
from ._finite_posterior import FinitePosterior as FinitePosterior
from ._finite_posterior import WidthEvidenceResult as WidthEvidenceResult
from ._finite_posterior import width_evidence as width_evidence
from ._first_move import first_move as first_move
from ._fluctuations import Fluctuations as Fluctuations
from ._forecast import WideForecast as WideForecast
from ._forecast import forecast as forecast
from ._gaussian_product import GaussianProductResult as GaussianProductResult
from ._gaussian_product import gaussian_product as gaussian_product
from ._gaussianity import GaussianityResult as GaussianityResult
from ._gaussianity import gaussianity as gaussianity
from ._gradient_spread import GradientSpreadResult as GradientSpreadResult
from ._gradient_spread import gradient_spread as gradient_spread
from ._guarantee import Guarantee as Guarantee
from ._guarantee import convergence_guarantee as convergence_guarantee
from ._input_gradient import InputGradientResult as InputGradientResult
from ._input_gradient import input_gradient as input_gradient
from ._kink_forecast import KinkForecast as KinkForecast
from ._learning_curve import learning_curve as learning_curve
from ._learning_rate import LearningRatesResult as LearningRatesResult
from ._learning_rate import learning_rates as learning_rates
from ._marchenko_pastur import Comparison as Comparison
from ._marchenko_pastur import MarchenkoPasturResult as MarchenkoPasturResult
from ._marchenko_pastur import gram_spectrum as gram_spectrum
from ._marchenko_pastur import marchenko_pastur as marchenko_pastur
from ._measure import Estimate as Estimate
from ._measure import measure as measure
from ._measure_posterior import PosteriorDraws as PosteriorDraws
from ._measure_posterior import measure_posterior as measure_posterior
from ._neurons import SampledNeurons as SampledNeurons
from ._observables import extrapolated as extrapolated
from ._observables import observables as observables
from ._paths import path_sum as path_sum
from ._phases import PhaseDiagramResult as PhaseDiagramResult
from ._phases import phase_diagram as phase_diagram
from ._population import SampledSpectrumResult as SampledSpectrumResult
from ._population import kernel_bulk as kernel_bulk
from ._population import sampled_spectrum as sampled_spectrum
from ._posterior import PosteriorResult as PosteriorResult
from ._posterior import posterior as posterior
from ._propagate import Layer as Layer
from ._propagate import Propagation as Propagation
from ._propagate import propagate as propagate
from ._relu_change import relu_ntk_change as relu_ntk_change
from ._relu_moments import ReluMomentsResult as ReluMomentsResult
from ._relu_moments import relu_moments as relu_moments
from ._relu_ntk import ReluNTKResult as ReluNTKResult
from ._relu_ntk import relu_ntk as relu_ntk
from ._rich import RichForecast as RichForecast
from ._rich_records import Kernels as Kernels
from ._rich_records import Neurons as Neurons
from ._rich_records import Spread as Spread
from ._sample_law import sample_law as sample_law
from ._sampled_forecast import SampledForecast as SampledForecast
from ._scaling import ComputeOptimalResult as ComputeOptimalResult
from ._scaling import ScalingExponentsResult as ScalingExponentsResult
from ._scaling import compute_optimal as compute_optimal
from ._scaling import population_law as population_law
from ._scaling import scaling_exponents as scaling_exponents
from ._sgd_forecast import StochasticForecast as StochasticForecast
from ._smallest import SmallestEigenvalueResult as SmallestEigenvalueResult
from ._smallest import smallest_eigenvalue as smallest_eigenvalue
from ._task import KernelTask as KernelTask
from ._task import power_law_task as power_law_task
from ._task import sphere_task as sphere_task
from ._trained_observables import trained_observables as trained_observables

_RECORDS = (
    "ComputeOptimal",
    "Concentration",
    "CoordinateCheck",
    "Critical",
    "DeepLinearPosterior",
    "DepthLosses",
    "GaussianProduct",
    "Gaussianity",
    "GradientSpread",
    "InputGradient",
    "LargestEigenvalue",
    "LearningCurve",
    "LearningRates",
    "MarchenkoPastur",
    "PhaseDiagram",
    "Posterior",
    "ReluNTK",
    "SampledSpectrum",
    "ScalingExponents",
    "SmallestEigenvalue",
    "WidthEvidence",
)
_OLD = {name: f"statistics.{name}Result" for name in _RECORDS} | {"Forecast": "statistics.WideForecast"}
__getattr__ = _moved(__name__, _OLD)
