"""Kernels: NNGP and tangent kernels of networks, classical kernels, and the constructions that kernels define."""

from .. import _quietly as _quietly
from .._moved import moved as _moved
from ._algebra import Multiple as Multiple
from ._algebra import Product as Product
from ._algebra import Sum as Sum
from ._base import AbstractKernel as AbstractKernel
from ._classic import RBF as RBF
from ._classic import Laplace as Laplace
from ._classic import Linear as Linear
from ._classic import Matern as Matern
from ._classic import Polynomial as Polynomial
from ._dntk import EmpiricalDDNTK as EmpiricalDDNTK
from ._dntk import EmpiricalDNTK as EmpiricalDNTK
from ._empirical import EmpiricalNTK as EmpiricalNTK
from ._features import FeatureKernel as FeatureKernel
from ._features import RandomFeatures as RandomFeatures
from ._mahalanobis import Mahalanobis as Mahalanobis
from ._mapped import ARD as ARD
from ._mapped import Periodic as Periodic
from ._mercer import Mercer as Mercer
from ._mercer import mercer as mercer
from ._network import NNGP as NNGP
from ._network import NTK as NTK
from ._network import layer_kernels as layer_kernels
from ._network import nngp_and_ntk as nngp_and_ntk
from ._positivity import PositivityResult as PositivityResult
from ._positivity import positivity as positivity
from ._processes import DPP as DPP
from ._processes import gp_samples as gp_samples
from ._rademacher import RademacherResult as RademacherResult
from ._rademacher import rademacher as rademacher
from ._rkhs import NormBoundedResult as NormBoundedResult
from ._rkhs import RKHSFunction as RKHSFunction
from ._rkhs import feature_map as feature_map
from ._rkhs import norm_bounded as norm_bounded
from ._rkhs import representer as representer

_RECORDS = ("Positivity",)
_OLD = {name: f"kernels.{name}Result" for name in _RECORDS} | {"Scaled": "kernels.Multiple"}
__getattr__ = _moved(__name__, _OLD)
