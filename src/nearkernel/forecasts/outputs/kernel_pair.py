"""The two kernels behind a law of trained outputs: what outputs are before training, and what trains them."""

from typing import Any

import numpy as np

from ..._base.check import shown
from ...dynamics.linear.tangent import AbstractTangent, FeatureTangent, HeldTangent, KernelTangent
from ...kernels.base import AbstractKernel
from ...kernels.features import FeatureKernel
from ...kernels.wide.network import NNGP, NTK, both_kernels
from ...models.base import AbstractModel
from ...models.expansion.features import FeatureModel
from ...models.networks.network import AbstractNetwork, require_wide
from ...models.networks.scaled import Scaled


class KernelPair:
    """`start`, the covariance of outputs at initialization, and `train`, the tangent kernel that moves them."""

    def __init__(self, start: AbstractKernel, train: AbstractKernel):
        self.start, self.train = start, train

    @property
    def same(self) -> bool:
        """Whether the covariance at initialization is also what trains."""
        return self.start is self.train

    def input_dim(self) -> "int | tuple[int, ...] | None":
        """How many features an input must have, or its shape; None for any vector."""
        return self.start.input_dim() or self.train.input_dim()

    def out_dim(self) -> int | None:
        """How many outputs there must be; None for any."""
        return None

    def network(self) -> AbstractNetwork | None:
        """Whose kernels they are; None for given kernels and features."""
        return None

    def tangent(self) -> AbstractTangent:
        """The linear problem of training."""
        return KernelTangent(self.train)

    def both(self, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Both matrices of checked inputs."""
        start = self.start.entries(x1, x2)
        return start, start if self.same else self.train.entries(x1, x2)

    def held(self, x: np.ndarray) -> tuple[AbstractTangent, np.ndarray | None]:
        """The linear problem on `x`, and the start's matrix if it was a by-product."""
        return self.tangent(), None


class NetworkPair(KernelPair):
    """NNGP and NTK of a network, in one pass."""

    def __init__(self, net: AbstractNetwork):
        super().__init__(NNGP(net), NTK(net))
        self.net = net

    def network(self) -> AbstractNetwork:
        return self.net

    def both(self, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return both_kernels(self.net, x1, x2)

    def held(self, x: np.ndarray) -> tuple[AbstractTangent, np.ndarray | None]:
        start, train = self.both(x, None)
        return HeldTangent(self.train, train), start


class FeaturePair(KernelPair):
    """A model of given features with Gaussian weights: the start is a multiple of what trains."""

    def __init__(self, model: FeatureModel):
        train = FeatureKernel(model.phi)
        super().__init__(train if model.weight_var == 1 else model.weight_var * train, train)
        self.model = model

    def input_dim(self) -> int | None:
        return self.model.in_dim

    def out_dim(self) -> int | None:
        return self.model.out_dim if self.model.out_dim > 1 else None

    def tangent(self) -> AbstractTangent:
        return FeatureTangent(self.model)

    def both(self, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        train = self.train.entries(x1, x2)
        return self.model.weight_var * train, train


def pair_of(problem: Any) -> KernelPair:
    """The kernels of a network, of a pair of kernels (start, training), or of features with Gaussian weights."""
    if isinstance(problem, FeatureModel):
        return FeaturePair(problem)
    if isinstance(problem, AbstractNetwork):
        require_wide(problem, "nk.forecast")
        return NetworkPair(problem)
    return KernelPair(*problem)


def require_problem(problem: Any) -> "int | tuple[int, ...] | None":
    """Raise unless `problem` can be forecast; the shape of its inputs, or None for vectors of any length."""
    if isinstance(problem, FeatureModel):
        return FeaturePair(problem).input_dim()
    if isinstance(problem, tuple | list):
        return _given(problem).input_dim()
    inner = problem.model if isinstance(problem, Scaled) else problem
    if not isinstance(inner, AbstractNetwork):
        raise TypeError(
            "`problem` must be an nk.MLP or nk.Network, a pair of kernels (start, training), or an nk.FeatureModel; "
            f"got {_name(problem)}."
        )
    return inner.in_shape


def _name(problem: Any) -> str:
    known = isinstance(problem, AbstractKernel | AbstractModel)
    return type(problem).__name__ if known else shown(problem)


def _given(kernels: "tuple | list") -> KernelPair:
    if len(kernels) != 2 or not all(isinstance(each, AbstractKernel) for each in kernels):
        came = ", ".join(type(each).__name__ for each in kernels)
        raise TypeError(
            "`problem` as a pair must be two kernels, the covariance at initialization and the training kernel, e.g."
            f" (nk.kernels.NNGP(net), nk.kernels.NTK(net)); got ({came})."
        )
    start, train = kernels
    dims = start.input_dim(), train.input_dim()
    if None not in dims and dims[0] != dims[1]:
        raise ValueError(
            f"`problem` must have kernels with the same input size: {type(start).__name__} takes {dims[0]}, "
            f"{type(train).__name__} takes {dims[1]}."
        )
    return KernelPair(start, train)
