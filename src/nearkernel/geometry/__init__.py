"""Geometry of losses and functions: curvature, spectra, class structure, linear regions, entropy."""

from .._base.rooms import moved as _moved
from .._run import quietly as _quietly
from .capacity.metric_entropy import EntropyBounds as EntropyBounds
from .capacity.metric_entropy import ellipsoid_entropy as ellipsoid_entropy
from .capacity.metric_entropy import ellipsoid_width as ellipsoid_width
from .capacity.metric_entropy import kernel_axes as kernel_axes
from .capacity.metric_entropy import lipschitz_entropy as lipschitz_entropy
from .capacity.metric_entropy import set_entropy as set_entropy
from .capacity.metric_entropy import set_packing as set_packing
from .capacity.regularity import LipschitzBoundsResult as LipschitzBoundsResult
from .capacity.regularity import lipschitz_bounds as lipschitz_bounds
from .capacity.regularity import sampling_width as sampling_width
from .capacity.stable_width import LipschitzExtension as LipschitzExtension
from .capacity.stable_width import StablePairResult as StablePairResult
from .capacity.stable_width import stable_pair as stable_pair
from .curvature.classes import ClassSplit as ClassSplit
from .curvature.classes import FeatureSplit as FeatureSplit
from .curvature.classes import feature_classes as feature_classes
from .curvature.classes import gauss_newton_classes as gauss_newton_classes
from .curvature.classes import gradient_classes as gradient_classes
from .curvature.neural_collapse import CollapseResult as CollapseResult
from .curvature.neural_collapse import collapse as collapse
from .curvature.neural_collapse import last_layer as last_layer
from .curvature.operators import EmpiricalFisher as EmpiricalFisher
from .curvature.operators import Fisher as Fisher
from .curvature.operators import GaussNewton as GaussNewton
from .curvature.operators import Hessian as Hessian
from .curvature.projection import projection_dims as projection_dims
from .curvature.projection import random_projection as random_projection
from .curvature.projection import sobolev_axes as sobolev_axes
from .curvature.spectra import Eigenpairs as Eigenpairs
from .curvature.spectra import SpectralDensityResult as SpectralDensityResult
from .curvature.spectra import gradient_share as gradient_share
from .curvature.spectra import sharpness as sharpness
from .curvature.spectra import spectral_density as spectral_density
from .curvature.spectra import top_eigenpairs as top_eigenpairs
from .curvature.symmetric import AbstractOperator as AbstractOperator
from .linear_regions.boundaries import mean_boundary as mean_boundary
from .linear_regions.boundaries import measure_boundary as measure_boundary
from .linear_regions.cell import CellResult as CellResult
from .linear_regions.cell import cell as cell
from .linear_regions.laws import RegionBoundsResult as RegionBoundsResult
from .linear_regions.laws import mean_crossings as mean_crossings
from .linear_regions.laws import measure_crossings as measure_crossings
from .linear_regions.laws import region_bounds as region_bounds
from .linear_regions.line import CrossingsResult as CrossingsResult
from .linear_regions.line import breakpoints as breakpoints
from .linear_regions.line import crossings as crossings
from .linear_regions.plane import Region as Region
from .linear_regions.plane import RegionsResult as RegionsResult
from .linear_regions.plane import regions as regions

_RECORDS = (
    "Collapse",
    "Crossings",
    "RegionBounds",
    "Regions",
    "SpectralDensity",
    "StablePair",
)
_EXAMPLES = ("sawtooth", "zaslavsky", "lipschitz_code", "lipschitz_decode")
_OLD = {name: f"geometry.{name}Result" for name in _RECORDS} | {
    name: f"examples.{name}" for name in _EXAMPLES
}
__getattr__ = _moved(__name__, _OLD)
