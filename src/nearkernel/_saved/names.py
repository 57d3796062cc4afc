"""The classes that a model file may hold, by tags that do not change when code moves.

Release 0.2 wrote the module and name of a class, so its paths stay here for good; later releases write the tag alone.
"""

import functools
import importlib

# Classes by the modules that held them in 0.2.
_IN_0_2 = {
    "_status": "Status StatusKind",
    "activations._closed": "Erf Gaussian Gelu PiecewiseLinear Sine",
    "activations._monomial": "Monomial",
    "models._activation": "Activation",
    "models._attention": "Attention",
    "models._branches": "Concat Product Residual Sum",
    "models._built": "CNN ResMLP Transformer",
    "models._compose": "Sequential",
    "models._conv": "Conv LocallyConnected",
    "models._dense": "Dense",
    "models._derivatives": "ModelDerivatives",
    "models._embedding": "PositionEmbedding",
    "models._expand": "Taylor",
    "models._feature_derivatives": "FeatureDerivatives",
    "models._features": "FeatureModel",
    "models._flatten": "Dropout Flatten Identity",
    "models._mlp": "MLP PerLayer",
    "models._network": "Network",
    "models._norm": "LayerNorm",
    "models._pool": "AvgPool GlobalAvgPool GlobalSumPool SumPool",
    "models._quadratic": "CubicModel QuadraticModel",
    "models._repeat": "Repeat",
    "models._scaled": "Scaled",
    "kernels._algebra": "Multiple Product Sum",
    "kernels._classic": "Laplace Linear Matern Polynomial RBF",
    "kernels._empirical": "EmpiricalNTK",
    "kernels._features": "FeatureKernel RandomFeatures",
    "kernels._mahalanobis": "Mahalanobis",
    "kernels._mapped": "ARD Periodic",
    "kernels._network": "NNGP NTK",
    "scale._centres": "Centred",
    "scale._whitened": "Basis",
    "dynamics._algorithms": "DirectOptimization GradientDescent GradientFlow Ridge",
    "dynamics._factor": "Cholesky Spectrum Tridiagonal",
    "dynamics._iterative": "MachineSolution NystromSolution",
    "dynamics._kept": "KeptCross",
    "dynamics._nearly": "NearlyKernelSolution",
    "dynamics._one_step": "OneStepFeaturesResult OneStepNetwork",
    "dynamics._solution": "Solution",
    "dynamics._solvers": "ConjugateGradients Direct EigenPro Nystrom Richardson",
    "dynamics._tangent": "ExpandedTangent FeatureTangent KernelTangent",
    "statistics._deep_linear_posterior": "DeepLinearPosteriorResult",
    "statistics._law": "TrainedLaw",
    "statistics._log_concave": "LogConcave",
    "statistics._pair": "KernelPair NetworkPair",
    "estimators._auto": "AutoClassifier AutoRegressor",
    "estimators._blend": "Blend Part",
    "estimators._calibration": "Errors Softmax",
    "estimators._columns": "Category Moment Number Remark",
    "estimators._deep_linear": "DeepLinearBayes",
    "estimators._features": "Diagonal Fourier Linear Polynomial",
    "estimators._finite": "NearlyKernelClassifier NearlyKernelRegressor",
    "estimators._machine": "KernelMachine",
    "estimators._members": "Kernel Member",
    "estimators._networks": "NNGPClassifier NNGPRegressor NTKClassifier NTKRegressor",
    "estimators._one_step": "OneStepNetworkRegressor",
    "estimators._quadratic": "QuadraticRegressor",
    "estimators._recursive": "RecursiveFeatureMachine",
    "estimators._table": "PrepareTable",
    "estimators._views": "Views",
}
_MOVED = {  # module of 0.2: its module now
    "_status": "_base.status",
    "activations._closed": "activations.closed",
    "activations._monomial": "activations.monomial",
    "models._activation": "models.layers.activation",
    "models._attention": "models.layers.attention",
    "models._branches": "models.containers.branches",
    "models._built": "models.networks.presets",
    "models._compose": "models.containers.sequential",
    "models._conv": "models.layers.conv",
    "models._dense": "models.layers.dense",
    "models._derivatives": "models.expansion.derivatives",
    "models._embedding": "models.layers.embedding",
    "models._expand": "models.expansion.taylor",
    "models._feature_derivatives": "models.expansion.feature_derivatives",
    "models._features": "models.expansion.features",
    "models._flatten": "models.layers.flatten",
    "models._mlp": "models.networks.mlp",
    "models._network": "models.networks.network",
    "models._norm": "models.layers.norm",
    "models._pool": "models.layers.pool",
    "models._quadratic": "models.expansion.quadratic",
    "models._repeat": "models.containers.repeat",
    "models._scaled": "models.networks.scaled",
    "kernels._algebra": "kernels.algebra",
    "kernels._classic": "kernels.classical.stationary",
    "kernels._empirical": "kernels.empirical.ntk",
    "kernels._features": "kernels.features",
    "kernels._mahalanobis": "kernels.classical.mahalanobis",
    "kernels._mapped": "kernels.classical.mapped",
    "kernels._network": "kernels.wide.network",
    "scale._centres": "scale.centers",
    "scale._whitened": "scale.whitened",
    "dynamics._algorithms": "dynamics.algorithms.spectral",
    "dynamics._factor": "dynamics.linear.factor",
    "dynamics._iterative": "dynamics.linear.iterative",
    "dynamics._kept": "dynamics.linear.solution",
    "dynamics._nearly": "dynamics.orders.solution",
    "dynamics._one_step": "dynamics.features.one_step",
    "dynamics._solution": "dynamics.linear.solution",
    "dynamics._solvers": "dynamics.linear.solvers",
    "dynamics._tangent": "dynamics.linear.tangent",
    "statistics._deep_linear_posterior": "statistics.exact.deep_linear_posterior",
    "statistics._law": "forecasts.infinite_width.trained_gaussian",
    "statistics._log_concave": "statistics.special.log_concave",
    "statistics._pair": "forecasts.outputs.kernel_pair",
    "estimators._auto": "estimators.auto.auto",
    "estimators._blend": "estimators.auto.blend",
    "estimators._calibration": "estimators.auto.calibration",
    "estimators._columns": "estimators.tables.columns",
    "estimators._deep_linear": "estimators.deep_linear",
    "estimators._features": "estimators.features",
    "estimators._finite": "estimators.finite_networks",
    "estimators._machine": "estimators.kernel_machine",
    "estimators._members": "estimators.auto.members",
    "estimators._networks": "estimators.wide_networks",
    "estimators._one_step": "estimators.one_step",
    "estimators._quadratic": "estimators.quadratic",
    "estimators._recursive": "estimators.recursive",
    "estimators._table": "estimators.tables.prepare",
    "estimators._views": "estimators.tables.views",
}
_NOW = {"Centred": "Centered"}  # classes that have another name than their tag
_FIELDS = {"centred": "centered", "centres": "centers"}  # attributes of 0.2, and their names now
_SINCE = {"estimators.tables.reading": "Reading"}  # classes that 0.2 did not write, by their modules
# Names of two classes: their tags begin with the room's name.
_SHARED = "Linear", "Polynomial", "Product", "Sum"
_SCIKIT_LEARN = {
    "sklearn.pipeline": "Pipeline",
    "sklearn.impute._base": "SimpleImputer",
    "sklearn.preprocessing._data": "MaxAbsScaler MinMaxScaler PowerTransformer QuantileTransformer RobustScaler "
    "StandardScaler",
}


def tag_of(cls: type) -> str | None:
    """The tag under which a file names `cls`; None if no file may hold it."""
    return _tags().get((cls.__module__, cls.__qualname__))


def class_of(name: object) -> type:
    """The class of a tag, or of a path written by 0.2. `ValueError` for all others."""
    text = str(name)
    if text not in _places():
        raise ValueError(f"it names {text!r}, which is not allowed in a model file")
    module, qualname = _places()[text]
    cls = getattr(importlib.import_module(module), qualname, None)
    if not isinstance(cls, type):
        raise ValueError(f"it names {text!r}, which this version does not have")
    return cls


def field_of(name: str) -> str:
    """The attribute that a file calls `name`."""
    return _FIELDS.get(name, name)


@functools.cache
def _places() -> dict[str, tuple[str, str]]:
    """(module, class) for every tag and every path of 0.2."""
    places = {}
    for old, names in _IN_0_2.items():
        for name in names.split():
            place = f"nearkernel.{_MOVED.get(old, old)}", _NOW.get(name, name)
            places[f"nearkernel.{old}:{name}"] = places[_tag(old, name)] = place
    for module, names in _SINCE.items():
        places |= {_tag(module, name): (f"nearkernel.{module}", name) for name in names.split()}
    for module, names in _SCIKIT_LEARN.items():
        places |= {f"{module}:{name}": (module, name) for name in names.split()}
    return places


@functools.cache
def _tags() -> dict[tuple[str, str], str]:
    return {place: text for text, place in _places().items() if not text.startswith("nearkernel.")}


def _tag(module: str, name: str) -> str:
    return f"{module.partition('.')[0]}.{name}" if name in _SHARED else name
