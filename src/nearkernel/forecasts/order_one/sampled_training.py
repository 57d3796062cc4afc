"""`nk.FiniteWidth` of many points: the law of trained outputs by neurons that are sampled."""

import math
from collections.abc import Callable

import numpy as np

from ..._run.memory import require_fits
from ...dynamics.algorithms.spectral import SpectralAlgorithm
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork
from ..neuron_sampling import Moments, Sampled, SamplesNeurons, relative_error
from .exact_training import AbstractTraining
from .neuron_average import Points
from .trained_moments import Law

_FIXED = 1e-9  # of the variance before training: what is below is fixed by training


class SampledTraining(AbstractTraining):
    """By averages over one neuron of each layer of a `chain`, the MLP that `net` is."""

    def __init__(
        self,
        net: AbstractNetwork,
        chain: MLP,
        x: np.ndarray,
        y: np.ndarray,
        vector: bool,
        x_new: np.ndarray,
        options: SamplesNeurons,
    ):
        self.net, self.x, self.y, self.vector, self.options = net, x, y, vector, options
        points, outputs = len(x) + len(x_new), y.shape[1]
        numbers = (
            60 * len(chain.widths) * points**2 + 5 * (options.scrambles + 8) * (len(x_new) * outputs) ** 2
        )
        require_fits(
            8 * numbers,
            f"`theory=nk.FiniteWidth()` at {points} points and {outputs} outputs",
            "use fewer points",
        )
        self.width, self.outputs = chain.widths[-1], outputs
        self.shape = (len(x_new),) if vector else (len(x_new), outputs)
        self._points = Points(chain, x, y, x_new, options)
        self.lam = self._points.lam
        self.prior = np.repeat(np.diagonal(self._points.kernel)[len(x) :], outputs)
        self._found: dict[tuple[float, float], Sampled] = {}

    def law(self, algorithm: SpectralAlgorithm) -> Law:
        lr, time = self.time(algorithm)
        points, n = self._points, len(self.x)
        leading = points.leading(points.filter(lr, time))
        mean, cov = leading[:, :n] @ -self.y, leading @ points.kernel @ leading.T
        spread = lambda matrix: np.kron(matrix, np.eye(self.outputs))
        found, exact = self.sampled(algorithm), self._exact(lr, time)
        corrections = exact | {"neurons": (found.value.mean, found.value.cov)}
        third, fourth = (np.diagonal(part) for part in (found.error.third, found.error.fourth))
        errors, accuracy = (
            (found.error.mean, found.error.cov, third, fourth),
            self._accuracy(lr, time)(found.value, found.error),
        )
        return Law(mean.ravel(), spread(cov), corrections, errors, found.neurons, accuracy)

    def sampled(self, algorithm: SpectralAlgorithm) -> Sampled:
        """Once for each time."""
        lr, time = self.time(algorithm)
        if (lr, time) not in self._found:
            accuracy = self._accuracy(lr, time)
            enough = lambda value, error: accuracy(value, error) <= self.options.tolerance
            self._found[lr, time] = self._points.sampled(lr, time, enough)
        return self._found[lr, time]

    def _exact(self, lr: float, time: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The contributions that need no neurons, times n."""
        points, n = self._points, len(self.x)
        leading = points.leading(points.filter(lr, time))
        spread = lambda matrix: np.kron(matrix, np.eye(self.outputs))
        by_kernel = points.by_mean_kernel(lr, time, (leading @ points.kernel[:, :n]).T)
        metric = leading @ points.kernel_correction @ leading.T
        shift = points.by_mean_kernel(lr, time, -self.y).ravel()
        return {"metric": (0.0 * shift, spread(metric)), "ntk mean": (shift, spread(by_kernel + by_kernel.T))}

    def _accuracy(self, lr: float, time: float) -> Callable[[Moments, Moments], float]:
        """The relative error of the whole correction, from what neurons add to it and its error."""
        leading = self._points.leading(self._points.filter(lr, time))
        var = np.repeat(np.diagonal(leading @ self._points.kernel @ leading.T), self.outputs)
        free = var > _FIXED * self.prior
        mean, cov = (sum(parts) for parts in zip(*self._exact(lr, time).values(), strict=True))

        def of_all(value: Moments, error: Moments) -> float:
            return relative_error(
                value._replace(mean=value.mean + mean, cov=value.cov + cov), error, var, free
            )

        return of_all

    def pair_cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        found = self.sampled(algorithm).value
        return found.third if order == 3 else found.fourth

    def cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        raise NotImplementedError(
            f"sampled neurons give cumulants of pairs of outputs only; got {math.prod(self.shape)} outputs."
        )

    @property
    def joint(self) -> bool:
        return False
