"""The linear problem behind a kernel or a model: its start, its kernel matrix, its factor."""

import abc
import math
from typing import TypeAlias

import jax
import numpy as np
import scipy.linalg
from jax.flatten_util import ravel_pytree

from ..._base.check import shown
from ..._run.memory import require_fits
from ..._run.precision import Portable
from ...kernels.base import AbstractKernel
from ...kernels.empirical.ntk import EmpiricalNTK
from ...kernels.features import FeatureKernel
from ...kernels.tiles import pieces
from ...kernels.wide.network import NTK
from ...models.base import AbstractModel, Params
from ...models.expansion.derivatives import AbstractDerivatives, ModelDerivatives
from ...models.expansion.feature_derivatives import FeatureDerivatives
from ...models.expansion.features import FeatureModel
from ...models.expansion.quadratic import QuadraticModel
from ...models.expansion.taylor import Taylor
from ...models.networks.scaled import Scaled
from ...models.params import root_factors, training_factors
from ..algorithms.spectral import SpectralAlgorithm
from .factor import (
    AbstractFactor,
    RationalFactor,
    Spectrum,
    cholesky,
    largest_eigenvalue,
    spectrum,
    tridiagonal,
)

Problem: TypeAlias = AbstractKernel | FeatureModel | QuadraticModel | Taylor
_FEW = 16  # inputs whose tangent kernel with each other is made to have its diagonal


class AbstractTangent(Portable, abc.ABC):
    """Outputs z(x) = start(x) + (features of x) . (parameters moved)."""

    kernel: AbstractKernel
    degree: int = 1  # in the parameters: beyond 1 there is more than the linear problem
    eps: float = 1.0  # of which order k has the power k

    def input_dim(self) -> "int | tuple[int, ...] | None":
        """How many features an input must have; None for any."""
        return self.kernel.input_dim()

    def out_dim(self, x: np.ndarray) -> int | None:
        """How many outputs there must be; None for any."""
        return None

    def network(self) -> AbstractModel | None:
        """The model that is trained, if this is its linearization; else None."""
        return None

    @abc.abstractmethod
    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        """Outputs (n, out) before training."""

    def drift(self, x: np.ndarray, out: int) -> np.ndarray:
        """The part of the outputs (n, out) that the initial parameters add by their features: decay removes it."""
        return np.zeros((len(x), out))

    @abc.abstractmethod
    def matrix(self, x: np.ndarray) -> np.ndarray:
        """The kernel matrix of the training set, free to be overwritten."""

    @abc.abstractmethod
    def cross(self, x_new: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The kernel between new and training inputs."""

    @abc.abstractmethod
    def diagonal(self, x: np.ndarray) -> np.ndarray:
        """The diagonal of `matrix`, without it."""

    def flat(self, columns: np.ndarray) -> np.ndarray:
        """Outputs as the right-hand sides that go with `matrix`."""
        return columns

    def unflat(self, columns: np.ndarray, out: int) -> np.ndarray:
        return columns

    def params(self, x: np.ndarray, weights: np.ndarray) -> Params:
        raise TypeError("a kernel has no parameters: solve a model, e.g. nk.expand(net, params).")

    def largest_eigenvalue(self, x: np.ndarray) -> float:
        return largest_eigenvalue(self.matrix(x))

    def factor(self, x: np.ndarray, algorithm: SpectralAlgorithm) -> AbstractFactor:
        shift = algorithm.shift()
        if shift is not None:
            factor = cholesky(self.matrix(x), shift, need_max=math.isfinite(algorithm.limit()))
            if factor is not None:
                return factor
        return self.spectrum(x)

    def spectrum(self, x: np.ndarray) -> Spectrum:
        return spectrum(self.matrix(x))

    def rational(self, x: np.ndarray) -> RationalFactor:
        """For rational functions of K."""
        return tridiagonal(self.matrix(x)) or self.spectrum(x)


class CurvedTangent(AbstractTangent):
    """One with derivatives beyond the first (if `degree` > 1), by which orders beyond the linear one are found."""

    @abc.abstractmethod
    def derivatives(self, x: np.ndarray) -> AbstractDerivatives:
        """At initialization, on inputs `x`."""

    @abc.abstractmethod
    def tree(self, moved: np.ndarray) -> Params:
        """Moved parameters (columns, P) in the shape of the model's own."""

    @abc.abstractmethod
    def trained_params(self, moved: np.ndarray) -> Params:
        """The start plus what moved."""

    @abc.abstractmethod
    def half_drift(self, moved: np.ndarray, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        """(features of x1 that moved with the parameters) . (features of x2), (columns, m1, m2)."""


class KernelTangent(AbstractTangent):
    """A kernel: starts at 0, all outputs share the matrix (n, n)."""

    def __init__(self, kernel: AbstractKernel):
        self.kernel = kernel

    def network(self) -> AbstractModel | None:
        if isinstance(self.kernel, NTK):
            return self.kernel.net
        return self.kernel.model if isinstance(self.kernel, EmpiricalNTK) else None

    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        return np.zeros((len(x), out))

    def matrix(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.kernel.entries(x, None), dtype=np.float64)

    def cross(self, x_new: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.kernel.entries(x_new, x)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.kernel.diagonal(x), dtype=np.float64)


class HeldTangent(KernelTangent):
    """A kernel whose matrix on the training set is at hand."""

    def __init__(self, kernel: AbstractKernel, held: np.ndarray):
        super().__init__(kernel)
        self.held = held

    def matrix(self, x: np.ndarray) -> np.ndarray:
        return self.held.astype(np.float64)  # a copy, free to be overwritten


class FeatureTangent(KernelTangent, CurvedTangent):
    """A model of given features, in W (out, f): each output has its own row, so again one matrix serves all."""

    kernel: FeatureKernel

    def __init__(self, model: FeatureModel | QuadraticModel):
        super().__init__(FeatureKernel(model.phi))
        self.model = model
        if isinstance(model, QuadraticModel):
            self.degree, self.eps = 2, float(model.eps)

    def input_dim(self) -> int | None:
        return self.model.in_dim

    def out_dim(self, x: np.ndarray) -> int | None:
        return (
            self.model.out_dim if self.model.out_dim > 1 else None
        )  # one row of weights for each column of `y`

    def factor(self, x: np.ndarray, algorithm: SpectralAlgorithm) -> AbstractFactor:
        return self._from_singular_values(x) or super().factor(x, algorithm)

    def spectrum(self, x: np.ndarray) -> Spectrum:
        return self._from_singular_values(x) or super().spectrum(x)

    def rational(self, x: np.ndarray) -> RationalFactor:
        return self._from_singular_values(x) or super().rational(x)

    def _from_singular_values(self, x: np.ndarray) -> Spectrum | None:
        """With fewer features than points: from their singular values, which are exact."""
        if self.kernel.feature_rows(x[:1]).shape[1] >= len(x):
            return None
        phi = self.kernel.feature_rows(x)
        if np.abs(phi).max(initial=0.0) > 1e150:
            raise ValueError(
                f"`phi` has features up to {np.abs(phi).max():.3g}, whose squares overflow: scale them."
            )
        vectors, roots, _ = scipy.linalg.svd(phi, full_matrices=False, check_finite=False)
        return Spectrum(roots**2, vectors)

    def params(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return -weights.T @ self.kernel.feature_rows(x)

    def derivatives(self, x: np.ndarray) -> FeatureDerivatives:
        assert isinstance(self.model, QuadraticModel)
        return FeatureDerivatives(self.model, x)

    def tree(self, moved: np.ndarray) -> np.ndarray:
        return moved

    def trained_params(self, moved: np.ndarray) -> np.ndarray:
        return moved  # from W = 0

    def half_drift(self, moved: np.ndarray, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        features = self.kernel.feature_rows(x2)
        return np.stack([drift @ features.T for drift in self.derivatives(x1).drifts(moved)])


class ExpandedTangent(CurvedTangent):
    """A model around its parameters: outputs share them, so (point, output) is one index of n * out.

    Parameters that move are divided by the roots of their learning-rate factors: these train with one learning rate.
    """

    kernel: EmpiricalNTK
    _roots: np.ndarray | jax.Array | None = None  # in files of 0.2, which trained without factors

    def __init__(self, model: Taylor):
        self.model, self.degree = model, model.degree
        self.inner, self.inner_params = model.model, model.params0
        if isinstance(model.model, Scaled):
            self.inner, self.inner_params = model.model.moving(model.params0)
        factors = training_factors(model, model.params0)
        if isinstance(model.model, Scaled) and model.model.centered and factors is not None:
            factors = factors["params"]
        self.kernel = EmpiricalNTK(self.inner, self.inner_params, 1.0 if factors is None else factors)
        self._roots = root_factors(factors, self.inner_params)

    def network(self) -> AbstractModel:
        return self.model.model

    def out_dim(self, x: np.ndarray) -> int:
        return jax.eval_shape(self.inner, self.inner_params, x[:1]).shape[1]

    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        return np.array(model_outputs(self.model.model, self.model.params0, x), dtype=np.float64)

    def drift(self, x: np.ndarray, out: int) -> np.ndarray:
        flat = np.asarray(ravel_pytree(self.inner_params)[0], dtype=np.float64)
        return np.asarray(ModelDerivatives(self.inner, self.inner_params, x, 1).push(flat[None])).reshape(
            -1, out
        )

    def flat(self, columns: np.ndarray) -> np.ndarray:
        return columns.reshape(-1, 1)

    def unflat(self, columns: np.ndarray, out: int) -> np.ndarray:
        return columns.reshape(-1, out)

    def matrix(self, x: np.ndarray) -> np.ndarray:
        full = self.kernel.full(x)
        require_fits(full.nbytes, f"factoring the tangent kernel of {len(full)} points", "use fewer points")
        return full.reshape(full.shape[0] * full.shape[1], -1)

    def cross(self, x_new: np.ndarray, x: np.ndarray) -> np.ndarray:
        full = self.kernel.full(x_new, x)
        return full.reshape(full.shape[0] * full.shape[1], -1)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        parts = (self.cross(x[part], x[part]) for part in pieces(slice(0, len(x)), _FEW))
        return np.concatenate([np.diagonal(part) for part in parts])

    def params(self, x: np.ndarray, weights: np.ndarray) -> Params:
        linear = ModelDerivatives(self.inner, self.inner_params, x, 1, self._roots)
        return self.trained_params(-linear.pull(weights.reshape(1, -1)))

    def derivatives(self, x: np.ndarray) -> ModelDerivatives:
        return ModelDerivatives(self.inner, self.inner_params, x, self.degree, self._roots)

    def _moving_tree(self, moved: np.ndarray) -> Params:
        step = moved[0] if self._roots is None else moved[0] * np.asarray(self._roots)
        return jax.tree.map(np.asarray, ravel_pytree(self.inner_params)[1](step))

    def tree(self, moved: np.ndarray) -> Params:
        moving = self._moving_tree(moved)
        return self.model.model.whole(moving) if isinstance(self.model.model, Scaled) else moving

    def trained_params(self, moved: np.ndarray) -> Params:
        return jax.tree.map(
            lambda start, step: np.asarray(start + step), self.model.params0, self.tree(moved)
        )

    def half_drift(self, moved: np.ndarray, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        drift = self.kernel.half_drift(self._moving_tree(moved), x1, x2)
        return drift.reshape(1, drift.shape[0] * drift.shape[1], -1)


@jax.jit
def model_outputs(model: AbstractModel, params, x):
    return model(params, x)


def tangent_of(problem: Problem) -> AbstractTangent:
    """The problem of a kernel, a model of given features or an expanded model."""
    if isinstance(problem, AbstractKernel):
        return KernelTangent(problem)
    if isinstance(problem, FeatureModel | QuadraticModel):
        return FeatureTangent(problem)
    if isinstance(problem, Taylor):
        return ExpandedTangent(problem)
    if isinstance(problem, AbstractModel):
        raise TypeError(
            "`problem` must be a model that can be solved; expand yours: nk.solve(nk.expand(model, params), ...); "
            f"got {type(problem).__name__}."
        )
    raise TypeError(f"`problem` must be a kernel or a model; got {shown(problem)}.")
