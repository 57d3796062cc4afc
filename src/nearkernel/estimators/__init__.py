"""Scikit-learn estimators: kernel machines, wide networks and models that learn features.

    from nearkernel.estimators import NTKRegressor
    NTKRegressor(depth=3, activation="erf").fit(x, y).predict(x_new, return_std=True)

They are the only mutable classes of the library. `fit` calls `nk.solve`, which factors the kernel matrix once;
`predict` reuses the factor.
"""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public
from . import scikit_learn as _scikit_learn  # noqa: F401

if TYPE_CHECKING:
    from .auto.auto import AutoClassifier as AutoClassifier
    from .auto.auto import AutoRegressor as AutoRegressor
    from .deep_linear import DeepLinearBayes as DeepLinearBayes
    from .finite_networks import NearlyKernelClassifier as NearlyKernelClassifier
    from .finite_networks import NearlyKernelRegressor as NearlyKernelRegressor
    from .kernel_machine import KernelMachine as KernelMachine
    from .one_step import OneStepNetworkRegressor as OneStepNetworkRegressor
    from .quadratic import QuadraticRegressor as QuadraticRegressor
    from .recursive import RecursiveFeatureMachine as RecursiveFeatureMachine
    from .tables.prepare import PrepareTable as PrepareTable
    from .wide_networks import NNGPClassifier as NNGPClassifier
    from .wide_networks import NNGPRegressor as NNGPRegressor
    from .wide_networks import NTKClassifier as NTKClassifier
    from .wide_networks import NTKRegressor as NTKRegressor
else:
    __getattr__, __dir__ = _public(__name__, __file__)
