"""What `nk.FiniteWidth` knows of all networks before they are trained, and what it makes of it by exact tensors."""

import abc
import functools
import math

import numpy as np

from ..._base.status import Status, StatusKind
from ..._run.memory import available_bytes, human_bytes
from ...dynamics.algorithms.spectral import GradientDescent, SpectralAlgorithm
from ...dynamics.linear.base import status_at
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ...statistics.width.fluctuations import Fluctuations, fluctuations
from .time_responses import Response, Responses, responses
from .trained_cumulants import Ties, fourth_cumulants, third_cumulants, ties
from .trained_moments import Law, Start, polynomial, start_of, trained_law

_DECAYS = 200.0  # after which the slowest residual is below all rounding
_RANK = 1e-10  # of the largest eigenvalue: below, the end of training is not a matter of rounding


class AbstractTraining(abc.ABC):
    """All networks at training and new inputs before training, made once for all times; outputs are (point, output).

    **Fields:** `net`, `x`, `y` (n, out), whether it came as a `vector`; `width`, of the last hidden layer; `shape` of
    new outputs; `prior`, their variances at initialization; `lam`, eigenvalues of the kernel.
    """

    net: AbstractNetwork
    x: np.ndarray
    y: np.ndarray
    vector: bool
    width: int
    shape: tuple[int, ...]
    prior: np.ndarray
    lam: np.ndarray

    @abc.abstractmethod
    def law(self, algorithm: SpectralAlgorithm) -> Law:
        """Mean and covariance, with what makes the correction."""

    @abc.abstractmethod
    def cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        """n times all joint ones."""

    @abc.abstractmethod
    def pair_cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        """n times kappa_bcc or kappa_bbcc, [b, c]."""

    @property
    @abc.abstractmethod
    def joint(self) -> bool:
        """Whether cumulants of more than two different outputs can be had."""

    def time(self, algorithm: SpectralAlgorithm) -> tuple[float, float]:
        """(lr, time), lr = 0 for the flow; a time after which nothing is left is infinite."""
        lr, time = (algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0), algorithm.end()
        if not lr and self.lam[0] > _RANK * self.lam[-1] and self.lam[0] * time > _DECAYS:
            time = math.inf  # of every mode nothing is left
        return lr, time

    def status(self, algorithm: SpectralAlgorithm) -> Status:
        found = status_at(algorithm, self.lam[-1])
        if found.kind is StatusKind.converged and self.lam[0] <= _RANK * self.lam[-1]:
            rank = int((self.lam > _RANK * self.lam[-1]).sum())
            raise ValueError(
                f"the tangent kernel of `x` has rank {rank} < {len(self.lam)}: `theory=nk.FiniteWidth()` at the end of "
                "training needs inputs that differ: leave out repeated rows, or give the algorithm a finite time."
            )
        return found

    def diverged(self) -> Law:
        m = math.prod(self.shape)
        mean, cov = np.full(m, np.inf), np.full((m, m), np.inf)
        return Law.exact(mean, cov, {"ddntk": (mean, cov)})


class ExactTraining(AbstractTraining):
    """By tensors of four points, in modes of the kernel."""

    def __init__(
        self,
        net: AbstractNetwork,
        x: np.ndarray,
        y: np.ndarray,
        vector: bool,
        x_new: np.ndarray,
        last: Fluctuations | None = None,
    ):
        """`last`, the layer of the outputs at `x` and `x_new`, if it is known already."""
        self.net, self.x, self.y, self.vector = net, x, y, vector
        n, outputs = y.shape
        _require_fits(
            n, len(x_new), outputs, len(chain_of(net, "theory=nk.FiniteWidth()", residual=True).stages)
        )
        self._x_new = x_new
        if last is None:
            last = fluctuations(net, np.concatenate([x, x_new]), train=n)[-1]
        self.width, self.outputs = last.width, outputs
        self.shape = (len(x_new),) if vector else (len(x_new), outputs)
        self.lam, vectors = np.linalg.eigh(last.ntk[:n, :n])
        self.modes = np.kron(vectors, np.eye(outputs))
        self.start = self._start(last)
        self.prior = np.diagonal(self.start.kernel)[n * outputs :]
        self.targets = (vectors.T @ y).ravel()

    def _start(self, last: Fluctuations) -> Start:
        return start_of(last, self.outputs).rotated(self.modes)

    @functools.cached_property
    def complete(self) -> Start:
        """`start` with its entries of three and four different new inputs."""
        if len(np.unique(self._x_new, axis=0)) <= 2:
            return self.start
        return self._start(fluctuations(self.net, np.concatenate([self.x, self._x_new]))[-1])

    def responses(self, algorithm: SpectralAlgorithm) -> Responses:
        found = responses(self.lam, *self.time(algorithm))
        if self.outputs == 1:
            return found  # otherwise each eigenvalue belongs to as many modes as there are outputs
        modes = np.repeat(np.arange(len(self.lam)), self.outputs)
        return Responses(*(Response(_repeated(r.new, modes), _repeated(r.old, modes)) for r in found))

    def law(self, algorithm: SpectralAlgorithm) -> Law:
        with np.errstate(over="ignore", invalid="ignore"):
            return trained_law(self.start, self.responses(algorithm), self.targets)

    def cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        return self._cumulants(self.ties(algorithm, complete=True), order)

    def pair_cumulants(self, algorithm: SpectralAlgorithm, order: int) -> np.ndarray:
        found = self._cumulants(self.ties(algorithm, complete=False), order)
        return np.einsum("bcc->bc" if order == 3 else "bbcc->bc", found)

    def ties(self, algorithm: SpectralAlgorithm, complete: bool) -> Ties:
        """Without `complete`, entries of more than two different new inputs mean nothing."""
        start = self.complete if complete else self.start
        with np.errstate(over="ignore", invalid="ignore"):
            return ties(start, polynomial(start, self.responses(algorithm), len(self.targets)))

    def _cumulants(self, found: Ties, order: int) -> np.ndarray:
        parts = third_cumulants(found, self.targets) if order == 3 else fourth_cumulants(found)
        return sum(parts.values(), np.zeros(()))

    @property
    def joint(self) -> bool:
        return True


def _require_fits(n: int, m: int, outputs: int, layers: int) -> None:
    """Refuse more points than the tensors of four of them can hold."""

    def needed(n: float, m: float) -> float:
        points, train = (n + m) * outputs, n * outputs
        return 8 * ((11 * layers + 20) * (n + m) ** 4 + 15 * points**4 + 4 * m * outputs * points * train**3)

    free = available_bytes()
    if needed(n, m) > free:
        most = n + m
        while most > 2 and needed(n * most / (n + m), m * most / (n + m)) > free:
            most -= 1
        raise MemoryError(
            f"`theory=nk.FiniteWidth()` keeps tensors of four of {n} + {m} points"
            f"{f' and {outputs} outputs' if outputs > 1 else ''}: {human_bytes(needed(n, m))}, but "
            f"{human_bytes(free)} are free: use at most about {most} points in total."
        )


def _repeated(array: np.ndarray, modes: np.ndarray) -> np.ndarray:
    return array[np.ix_(*[modes] * array.ndim)]
