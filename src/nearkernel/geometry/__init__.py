"""Geometry of losses and functions: curvature, spectra, class structure, linear regions, entropy."""

from .. import _quietly as _quietly
from .._moved import moved as _moved
from ._boundaries import mean_boundary as mean_boundary
from ._boundaries import measure_boundary as measure_boundary
from ._cell import CellResult as CellResult
from ._cell import cell as cell
from ._classes import ClassSplit as ClassSplit
from ._classes import FeatureSplit as FeatureSplit
from ._classes import feature_classes as feature_classes
from ._classes import gauss_newton_classes as gauss_newton_classes
from ._classes import gradient_classes as gradient_classes
from ._collapse import CollapseResult as CollapseResult
from ._collapse import collapse as collapse
from ._collapse import last_layer as last_layer
from ._curvature import EmpiricalFisher as EmpiricalFisher
from ._curvature import Fisher as Fisher
from ._curvature import GaussNewton as GaussNewton
from ._curvature import Hessian as Hessian
from ._entropy import EntropyBounds as EntropyBounds
from ._entropy import ellipsoid_entropy as ellipsoid_entropy
from ._entropy import ellipsoid_width as ellipsoid_width
from ._entropy import kernel_axes as kernel_axes
from ._entropy import lipschitz_entropy as lipschitz_entropy
from ._entropy import set_entropy as set_entropy
from ._entropy import set_packing as set_packing
from ._line import CrossingsResult as CrossingsResult
from ._line import breakpoints as breakpoints
from ._line import crossings as crossings
from ._operator import AbstractOperator as AbstractOperator
from ._plane import Region as Region
from ._plane import RegionsResult as RegionsResult
from ._plane import regions as regions
from ._projection import projection_dims as projection_dims
from ._projection import random_projection as random_projection
from ._projection import sobolev_axes as sobolev_axes
from ._region_laws import RegionBoundsResult as RegionBoundsResult
from ._region_laws import mean_crossings as mean_crossings
from ._region_laws import measure_crossings as measure_crossings
from ._region_laws import region_bounds as region_bounds
from ._regularity import LipschitzBoundsResult as LipschitzBoundsResult
from ._regularity import lipschitz_bounds as lipschitz_bounds
from ._regularity import sampling_width as sampling_width
from ._spectra import Eigenpairs as Eigenpairs
from ._spectra import SpectralDensityResult as SpectralDensityResult
from ._spectra import gradient_share as gradient_share
from ._spectra import sharpness as sharpness
from ._spectra import spectral_density as spectral_density
from ._spectra import top_eigenpairs as top_eigenpairs
from ._stable_width import LipschitzExtension as LipschitzExtension
from ._stable_width import StablePairResult as StablePairResult
from ._stable_width import stable_pair as stable_pair

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
