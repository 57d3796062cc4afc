"""Geometry of losses and functions: curvature, spectra, class structure, linear regions, entropy."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .curvature.neural_collapse import collapse as collapse
    from .curvature.operators import EmpiricalFisher as EmpiricalFisher
    from .curvature.operators import Fisher as Fisher
    from .curvature.operators import GaussNewton as GaussNewton
    from .curvature.operators import Hessian as Hessian
    from .curvature.spectra import sharpness as sharpness
    from .curvature.spectra import spectral_density as spectral_density
    from .curvature.spectra import top_eigenpairs as top_eigenpairs
    from .linear_regions.plane import regions as regions
else:
    __getattr__, __dir__ = _public(__name__, __file__)
