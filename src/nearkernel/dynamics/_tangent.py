"""The linear problem behind a kernel or a model: its start, its kernel matrix, its factor."""

import abc
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from .._memory import require_fits
from ..kernels import AbstractKernel, EmpiricalNTK
from ..kernels._features import FeatureKernel
from ..models import AbstractModel, FeatureModel, Taylor
from ._algorithms import SpectralAlgorithm
from ._factor import AbstractFactor, Spectrum, cholesky, largest_eigenvalue, spectrum


class AbstractTangent(abc.ABC):
    """Outputs z(x) = start(x) + (features of x) . (parameters moved)."""

    kernel: AbstractKernel

    def input_dim(self) -> int | None:
        """How many features an input must have; None for any."""
        return self.kernel.input_dim()

    def out_dim(self, x: np.ndarray) -> int | None:
        """How many outputs there must be; None for any."""
        return None

    @abc.abstractmethod
    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        """Outputs (n, out) before training."""

    @abc.abstractmethod
    def matrix(self, x: np.ndarray) -> np.ndarray:
        """The kernel matrix of the training set, free to be overwritten."""

    @abc.abstractmethod
    def cross(self, x_new: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The kernel between new and training inputs."""

    def flat(self, columns: np.ndarray) -> np.ndarray:
        """Outputs as the right-hand sides that go with `matrix`."""
        return columns

    def unflat(self, columns: np.ndarray, out: int) -> np.ndarray:
        return columns

    def params(self, x: np.ndarray, weights: np.ndarray) -> Any:
        raise TypeError("a kernel has no parameters: solve a model, e.g. nk.expand(net, params).")

    def largest_eigenvalue(self, x: np.ndarray) -> float:
        return largest_eigenvalue(self.matrix(x))

    def factor(self, x: np.ndarray, algorithm: SpectralAlgorithm) -> AbstractFactor:
        shift = algorithm.shift()
        if shift is not None:
            factor = cholesky(self.matrix(x), shift, need_max=math.isfinite(algorithm.limit()))
            if factor is not None:
                return factor
        return spectrum(self.matrix(x))


class KernelTangent(AbstractTangent):
    """A kernel: starts at 0, all outputs share the matrix (n, n)."""

    def __init__(self, kernel: AbstractKernel):
        self.kernel = kernel

    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        return np.zeros((len(x), out))

    def matrix(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.kernel.matrix(x, None), dtype=np.float64)

    def cross(self, x_new: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.kernel.matrix(x_new, x)


class FeatureTangent(KernelTangent):
    """A model linear in W (out, f): each output has its own row, so again one matrix serves all."""

    def __init__(self, model: FeatureModel):
        super().__init__(FeatureKernel(model.phi))
        self.model = model

    def factor(self, x: np.ndarray, algorithm: SpectralAlgorithm) -> AbstractFactor:
        phi = self.kernel.feature_rows(x)  # type: ignore[attr-defined]
        if phi.shape[1] >= len(x):
            return super().factor(x, algorithm)
        vectors, roots, _ = scipy.linalg.svd(phi, full_matrices=False, check_finite=False)
        return Spectrum(roots**2, vectors)  # fewer features than points: their singular values are exact

    def params(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return -weights.T @ self.kernel.feature_rows(x)  # type: ignore[attr-defined]


class ExpandedTangent(AbstractTangent):
    """A model at first order: outputs share parameters, so (point, output) is one index of n * out."""

    def __init__(self, model: Taylor):
        self.model = model
        self.kernel: EmpiricalNTK = EmpiricalNTK(model.model, model.params0)

    def out_dim(self, x: np.ndarray) -> int:
        return jax.eval_shape(self.model.model, self.model.params0, x[:1]).shape[1]

    def start(self, x: np.ndarray, out: int) -> np.ndarray:
        return np.array(_outputs(self.model.model, self.model.params0, x), dtype=np.float64)

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

    def params(self, x: np.ndarray, weights: np.ndarray) -> Any:
        return jax.tree.map(np.asarray, _moved(self.model.model, self.model.params0, x, weights))


@jax.jit
def _outputs(model: AbstractModel, params, x):
    return model(params, x)


@jax.jit
def _moved(model: AbstractModel, params, x, weights):
    """params - J^T weights."""
    outputs, pull = jax.vjp(lambda p: model(p, x), params)
    return jax.tree.map(jnp.subtract, params, pull(jnp.reshape(weights, outputs.shape))[0])


def tangent_of(problem: Any) -> AbstractTangent:
    """The linear problem of a kernel, a feature model or an expanded model."""
    if isinstance(problem, AbstractKernel):
        return KernelTangent(problem)
    if isinstance(problem, FeatureModel):
        return FeatureTangent(problem)
    if isinstance(problem, Taylor):
        return ExpandedTangent(problem)
    if isinstance(problem, AbstractModel):
        raise TypeError(
            "`solve` needs a model that can be solved; expand yours: nk.solve(nk.expand(model, params), ...); "
            f"got {type(problem).__name__}."
        )
    raise TypeError(f"`solve` needs a kernel or a model; got {type(problem).__name__}.")
