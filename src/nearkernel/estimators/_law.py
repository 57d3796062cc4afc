"""The Gaussian laws of trained outputs, of which the network estimators tell mean, spread and classes."""

import abc
import functools

import numpy as np

from .._memory import rows_that_fit
from ..dynamics import Ridge, Solution, SpectralAlgorithm, solve
from ..kernels import NNGP, NTK
from ..models import AbstractNetwork


class Law(abc.ABC):
    """The Gaussian law of trained outputs, at any inputs: `solution` has its mean, all outputs share the variance."""

    net: AbstractNetwork
    x: np.ndarray
    solution: Solution

    def std(self, x_new: np.ndarray, least: float = 0.0) -> np.ndarray:
        """(m,), in bounded memory; the variance is at least `least` times that at the start."""
        chunk = rows_that_fit(4 * 8 * len(self.x))
        reduced = [self._reduced(x_new[at : at + chunk]) for at in range(0, len(x_new), chunk)]
        start = NNGP(self.net).diag(x_new)
        return np.sqrt(np.maximum(start - np.concatenate(reduced), least * start))

    @abc.abstractmethod
    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        """What the data take away from the variance at the start, (m,)."""


class Trained(Law):
    """Over the initializations of a network of which all layers are trained."""

    def __init__(
        self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray, algorithm: SpectralAlgorithm | None
    ):
        self.net, self.x = net, x
        self.solution = solve(NTK(net), x, y, algorithm, solver="direct")

    @functools.cached_property
    def _start(self) -> np.ndarray:
        """Covariance of the outputs at `x` before training, needed only where a variance is asked for."""
        return NNGP(self.net)(self.x)

    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        start = NNGP(self.net)(x_new, self.x)
        response = self.solution.response(x_new)
        return np.einsum("ij,ij->i", response, 2 * start - response @ self._start)


class Bayesian(Law):
    """The posterior of a network with random weights."""

    def __init__(self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray, noise: float):
        self.net, self.x = net, x
        self.solution = solve(NNGP(net), x, y, Ridge(noise), solver="direct")

    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        cross = NNGP(self.net)(x_new, self.x)
        response = self.solution._factor.apply(
            self.solution.algorithm, cross.T
        )  # not twice the kernel's price
        return np.einsum("ji,ij->i", response, cross)
