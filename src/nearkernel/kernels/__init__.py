"""Kernels: NNGP and tangent kernels of networks, classical kernels, and the constructions that kernels define."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .base import AbstractKernel as AbstractKernel
    from .classical.mahalanobis import Mahalanobis as Mahalanobis
    from .classical.mapped import ARD as ARD
    from .classical.mapped import Periodic as Periodic
    from .classical.stationary import RBF as RBF
    from .classical.stationary import Laplace as Laplace
    from .classical.stationary import Linear as Linear
    from .classical.stationary import Matern as Matern
    from .classical.stationary import Polynomial as Polynomial
    from .empirical.ntk import EmpiricalNTK as EmpiricalNTK
    from .features import FeatureKernel as FeatureKernel
    from .features import RandomFeatures as RandomFeatures
    from .wide.network import NNGP as NNGP
    from .wide.network import NTK as NTK
    from .wide.network import layer_kernels as layer_kernels
    from .wide.network import nngp_and_ntk as nngp_and_ntk
else:
    __getattr__, __dir__ = _public(__name__, __file__)
