"""Statistics of random and trained networks over initializations and data."""

from .._base.rooms import moved as _moved
from .._run import quietly as _quietly
from ..forecasts.curves.curve import learning_curve as learning_curve
from ..forecasts.curves.limit_law import sample_law as sample_law
from ..forecasts.curves.record import Extrapolation as Extrapolation
from ..forecasts.curves.record import LearningCurveResult as LearningCurveResult
from ..forecasts.curves.record import TrainedCurve as TrainedCurve
from ..forecasts.curves.scaling import ComputeOptimalResult as ComputeOptimalResult
from ..forecasts.curves.scaling import ScalingExponentsResult as ScalingExponentsResult
from ..forecasts.curves.scaling import compute_optimal as compute_optimal
from ..forecasts.curves.scaling import population_law as population_law
from ..forecasts.curves.scaling import scaling_exponents as scaling_exponents
from ..forecasts.curves.task import KernelTask as KernelTask
from ..forecasts.curves.task import power_law_task as power_law_task
from ..forecasts.curves.task import sphere_task as sphere_task
from ..forecasts.forecasting import WideForecast as WideForecast
from ..forecasts.forecasting import forecast as forecast
from ..forecasts.infinite_width.any_loss import SampledForecast as SampledForecast
from ..forecasts.infinite_width.stochastic import StochasticForecast as StochasticForecast
from ..forecasts.mean_field.forecast import RichForecast as RichForecast
from ..forecasts.mean_field.records import Kernels as Kernels
from ..forecasts.mean_field.records import Neurons as Neurons
from ..forecasts.mean_field.records import Spread as Spread
from ..forecasts.mean_field.theory import Clouds as Clouds
from ..forecasts.observables import trained_observables as trained_observables
from ..forecasts.order_half.forecast import KinkForecast as KinkForecast
from ..forecasts.order_one.depth_losses import DepthLossesResult as DepthLossesResult
from ..forecasts.order_one.depth_losses import depth_losses as depth_losses
from ..forecasts.order_one.forecast import Contribution as Contribution
from ..forecasts.order_one.forecast import FiniteForecast as FiniteForecast
from ..forecasts.order_one.forecast import StandardErrors as StandardErrors
from ..forecasts.order_one.theory import SampledNeurons as SampledNeurons
from ..forecasts.outputs.expected_loss import ExpectedLoss as ExpectedLoss
from ..forecasts.posteriors.adapted import Adapted as Adapted
from ..forecasts.posteriors.adapted import adapted_mean as adapted_mean
from ..forecasts.posteriors.finite_width import FinitePosterior as FinitePosterior
from ..forecasts.posteriors.finite_width import WidthEvidenceResult as WidthEvidenceResult
from ..forecasts.posteriors.finite_width import width_evidence as width_evidence
from ..forecasts.posteriors.kernel_posterior import PosteriorResult as PosteriorResult
from ..forecasts.posteriors.kernel_posterior import posterior as posterior
from ..forecasts.posteriors.sampled import PosteriorDraws as PosteriorDraws
from ..forecasts.posteriors.sampled import measure_posterior as measure_posterior
from .bounds.concentration import ConcentrationResult as ConcentrationResult
from .bounds.concentration import LargestEigenvalueResult as LargestEigenvalueResult
from .bounds.concentration import concentration as concentration
from .bounds.concentration import largest_eigenvalue as largest_eigenvalue
from .bounds.concentration import matrix_bernstein as matrix_bernstein
from .bounds.concentration import matrix_chernoff as matrix_chernoff
from .bounds.concentration import matrix_chernoff_below as matrix_chernoff_below
from .bounds.convergence import Guarantee as Guarantee
from .bounds.convergence import convergence_guarantee as convergence_guarantee
from .bounds.lowest_eigenvalue import SmallestEigenvalueResult as SmallestEigenvalueResult
from .bounds.lowest_eigenvalue import smallest_eigenvalue as smallest_eigenvalue
from .bounds.sample_spectrum import SampledSpectrumResult as SampledSpectrumResult
from .bounds.sample_spectrum import kernel_bulk as kernel_bulk
from .bounds.sample_spectrum import sampled_spectrum as sampled_spectrum
from .depth.block import BlockFlow as BlockFlow
from .depth.critical import CriticalResult as CriticalResult
from .depth.critical import critical as critical
from .depth.learning_rate import LearningRatesResult as LearningRatesResult
from .depth.learning_rate import learning_rates as learning_rates
from .depth.phases import PhaseDiagramResult as PhaseDiagramResult
from .depth.phases import phase_diagram as phase_diagram
from .exact.deep_linear import best_prior_var as best_prior_var
from .exact.deep_linear import deep_linear_log_evidence as deep_linear_log_evidence
from .exact.deep_linear import effective_depth as effective_depth
from .exact.deep_linear import limiting_scale as limiting_scale
from .exact.deep_linear_posterior import DeepLinearPosteriorResult as DeepLinearPosteriorResult
from .exact.deep_linear_posterior import deep_linear_posterior as deep_linear_posterior
from .exact.deep_linear_table import ModelRow as ModelRow
from .exact.deep_linear_table import ModelTable as ModelTable
from .exact.deep_linear_table import deep_linear_table as deep_linear_table
from .exact.gaussian_product import GaussianProductResult as GaussianProductResult
from .exact.gaussian_product import gaussian_product as gaussian_product
from .exact.input_gradient import InputGradientResult as InputGradientResult
from .exact.input_gradient import input_gradient as input_gradient
from .exact.relu_change import relu_ntk_change as relu_ntk_change
from .exact.relu_moments import ReluMomentsResult as ReluMomentsResult
from .exact.relu_moments import relu_moments as relu_moments
from .exact.relu_ntk import ReluNTKResult as ReluNTKResult
from .exact.relu_ntk import relu_ntk as relu_ntk
from .exact.relu_paths import path_sum as path_sum
from .measuring import Estimate as Estimate
from .measuring import measure as measure
from .moves.coordinates import CoordinateCheckResult as CoordinateCheckResult
from .moves.coordinates import coordinate_check as coordinate_check
from .moves.first_move import first_move as first_move
from .special.marchenko_pastur import Comparison as Comparison
from .special.marchenko_pastur import MarchenkoPasturResult as MarchenkoPasturResult
from .special.marchenko_pastur import gram_spectrum as gram_spectrum
from .special.marchenko_pastur import marchenko_pastur as marchenko_pastur
from .width.average_variance import average_variance as average_variance
from .width.fluctuations import Fluctuations as Fluctuations
from .width.gaussianity import GaussianityResult as GaussianityResult
from .width.gaussianity import gaussianity as gaussianity
from .width.gradient_spread import GradientSpreadResult as GradientSpreadResult
from .width.gradient_spread import gradient_spread as gradient_spread
from .width.observables import extrapolated as extrapolated
from .width.observables import observables as observables
from .width.propagation import Layer as Layer
from .width.propagation import Propagation as Propagation
from .width.propagation import propagate as propagate

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
