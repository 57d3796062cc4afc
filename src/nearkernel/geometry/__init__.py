"""What shape have the loss and the function? Curvature, spectra, class structure, collapse."""

from ._classes import ClassSplit as ClassSplit
from ._classes import FeatureSplit as FeatureSplit
from ._classes import feature_classes as feature_classes
from ._classes import gauss_newton_classes as gauss_newton_classes
from ._classes import gradient_classes as gradient_classes
from ._collapse import Collapse as Collapse
from ._collapse import collapse as collapse
from ._collapse import last_layer as last_layer
from ._curvature import EmpiricalFisher as EmpiricalFisher
from ._curvature import Fisher as Fisher
from ._curvature import GaussNewton as GaussNewton
from ._curvature import Hessian as Hessian
from ._operator import AbstractOperator as AbstractOperator
from ._spectra import Eigenpairs as Eigenpairs
from ._spectra import SpectralDensity as SpectralDensity
from ._spectra import gradient_share as gradient_share
from ._spectra import overlap as overlap
from ._spectra import sharpness as sharpness
from ._spectra import spectral_density as spectral_density
from ._spectra import top_eigenpairs as top_eigenpairs
