"""Scikit-learn estimators: kernel machines, wide networks and models that learn features.

    from nearkernel.estimators import NTKRegressor
    NTKRegressor(depth=3, activation="erf").fit(x, y).predict(x_new, return_std=True)

They are the only mutable classes of the library. `fit` calls `nk.solve`, which factors the kernel matrix once;
`predict` reuses the factor.
"""

from .. import _quietly as _quietly
from . import _scikit_learn as _scikit_learn
from ._auto import AutoClassifier as AutoClassifier
from ._auto import AutoRegressor as AutoRegressor
from ._deep_linear import DeepLinearBayes as DeepLinearBayes
from ._finite import NearlyKernelClassifier as NearlyKernelClassifier
from ._finite import NearlyKernelRegressor as NearlyKernelRegressor
from ._machine import KernelMachine as KernelMachine
from ._networks import NNGPClassifier as NNGPClassifier
from ._networks import NNGPRegressor as NNGPRegressor
from ._networks import NTKClassifier as NTKClassifier
from ._networks import NTKRegressor as NTKRegressor
from ._one_step import OneStepNetworkRegressor as OneStepNetworkRegressor
from ._quadratic import QuadraticRegressor as QuadraticRegressor
from ._recursive import RecursiveFeatureMachine as RecursiveFeatureMachine
from ._table import PrepareTable as PrepareTable

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "DeepLinearBayes",
    "KernelMachine",
    "NNGPClassifier",
    "NNGPRegressor",
    "NTKClassifier",
    "NTKRegressor",
    "NearlyKernelClassifier",
    "NearlyKernelRegressor",
    "OneStepNetworkRegressor",
    "PrepareTable",
    "QuadraticRegressor",
    "RecursiveFeatureMachine",
]
