"""Kernels: NNGP and tangent kernels of networks, classical kernels, and the constructions that kernels define."""

from .._base.rooms import moved as _moved
from .._run import quietly as _quietly
from .algebra import Multiple as Multiple
from .algebra import Product as Product
from .algebra import Sum as Sum
from .base import AbstractKernel as AbstractKernel
from .classical.mahalanobis import Mahalanobis as Mahalanobis
from .classical.mapped import ARD as ARD
from .classical.mapped import Periodic as Periodic
from .classical.stationary import RBF as RBF
from .classical.stationary import Laplace as Laplace
from .classical.stationary import Linear as Linear
from .classical.stationary import Matern as Matern
from .classical.stationary import Polynomial as Polynomial
from .empirical.dntk import EmpiricalDDNTK as EmpiricalDDNTK
from .empirical.dntk import EmpiricalDNTK as EmpiricalDNTK
from .empirical.ntk import EmpiricalNTK as EmpiricalNTK
from .features import FeatureKernel as FeatureKernel
from .features import RandomFeatures as RandomFeatures
from .function_space.mercer import Mercer as Mercer
from .function_space.mercer import mercer as mercer
from .function_space.positivity import PositivityResult as PositivityResult
from .function_space.positivity import positivity as positivity
from .function_space.processes import DPP as DPP
from .function_space.processes import gp_samples as gp_samples
from .function_space.rademacher import RademacherResult as RademacherResult
from .function_space.rademacher import rademacher as rademacher
from .function_space.rkhs import NormBoundedResult as NormBoundedResult
from .function_space.rkhs import RKHSFunction as RKHSFunction
from .function_space.rkhs import feature_map as feature_map
from .function_space.rkhs import norm_bounded as norm_bounded
from .function_space.rkhs import representer as representer
from .wide.network import NNGP as NNGP
from .wide.network import NTK as NTK
from .wide.network import layer_kernels as layer_kernels
from .wide.network import nngp_and_ntk as nngp_and_ntk

_RECORDS = ("Positivity",)
_OLD = {name: f"kernels.{name}Result" for name in _RECORDS} | {"Scaled": "kernels.Multiple"}
__getattr__ = _moved(__name__, _OLD)
