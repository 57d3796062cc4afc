"""`forecast(order=1)`: the law of trained outputs of networks of finite width, to order 1/width."""

import functools
import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from .._check import finite_result, inputs, positive
from .._memory import available_bytes, human_bytes
from .._precision import in_float64
from .._status import Status, StatusKind
from ..dynamics import GradientDescent, GradientFlow, SpectralAlgorithm
from ..dynamics._abstract_solution import status_at
from ..models import MLP
from ._fluctuations import fluctuations, is_smooth
from ._gaussian import GaussianOutputs
from ._responses import Response, Responses, responses
from ._trained import Law, Start, start_of, trained_law

_LARGE = 0.25  # parts of the correction, over what they correct
_DECAYS = 200.0  # after which the slowest residual is below all rounding
_RANK = 1e-10  # of the largest eigenvalue: below, the end of training is not a matter of rounding


class Contribution(NamedTuple):
    """What one cause adds to `mean` and `cov`, already divided by the width; shapes as those of the forecast."""

    mean: np.ndarray
    cov: np.ndarray


class FiniteForecast(GaussianOutputs):
    r"""Trained outputs of networks of finite width: mean and covariance over initializations, to order 1/width.

    **Fields:** `mean` (m,) or (m, out), as `y`; `cov` (m, m) or (m, out, m, out); `std`; `terms` and `cov_terms`,
    (infinite width, correction); `width`, of the last hidden layer, by which corrections are divided;
    `contributions`, a dict of what the correction is made of:

    | name | cause |
    |---|---|
    | "metric" | outputs at the start have another covariance than at infinite width |
    | "ntk mean" | the tangent kernel has another mean |
    | "ntk variance" | it differs from network to network |
    | "ntk with outputs" | these differences go with the outputs at the start |
    | "dntk" | it moves in training, as networks differ |
    | "ddntk" | it moves in training, on average |

    `distance`: the largest shift of a mean over its deviation, or of a variance over the variance, at infinite width;
    `expansion`: the same with the sizes of all contributions added up, which says how well the series converges.
    `status`, an `nk.Status`, and its `ok`; `algorithm`.
    """

    def __init__(self, training: "_Training", algorithm: SpectralAlgorithm):
        self.algorithm, self._training = algorithm, training
        self.status = training.status(algorithm)
        self.width = training.width
        law = training.law(algorithm) if self.ok or math.isfinite(algorithm.end()) else training.diverged()
        shape = training.shape
        self.terms = tuple(term.reshape(shape) for term in (law.mean, _total(law, 0) / self.width))
        self.cov_terms = tuple(
            term.reshape(*shape, *shape) for term in (law.cov, _total(law, 1) / self.width)
        )
        self.contributions = {
            name: Contribution(mean.reshape(shape) / self.width, cov.reshape(*shape, *shape) / self.width)
            for name, (mean, cov) in law.corrections.items()
        }
        self.mean = self.terms[0] + self.terms[1]
        if self.ok:
            finite_result((self.mean, *self.cov_terms), "`time` or `y` is")

    def _covariance(self) -> np.ndarray:
        return self.cov_terms[0] + self.cov_terms[1]

    def _variance(self) -> np.ndarray:
        return _variances(self.cov, self.mean.shape)

    @property
    def ok(self) -> bool:
        return self.status.ok

    @functools.cached_property
    def distance(self) -> float:
        return self._relative([Contribution(self.terms[1], self.cov_terms[1])])

    @functools.cached_property
    def expansion(self) -> float:
        return self._relative(list(self.contributions.values()))

    def width_within(self, tolerance: float) -> float:
        """The width from which `distance` is at most `tolerance`, if all layers grow alike; infinity if none is."""
        found = self.width * self.distance / positive(tolerance, "tolerance")
        return math.ceil(found - 1e-9) if math.isfinite(found) else math.inf

    def _relative(self, parts: list[Contribution]) -> float:
        """Sizes of `parts` over the law at infinite width; outputs that training fixes have none of their own."""
        shape, prior = self.mean.shape, self._training.prior
        var = _variances(self.cov_terms[0], shape)
        free = var > 1e-9 * prior.reshape(shape)
        if not free.any():
            return 0.0
        mean = sum(np.abs(part.mean) for part in parts)
        spread = sum(np.abs(_variances(part.cov, shape)) for part in parts)
        return float(max((mean[free] / np.sqrt(var[free])).max(), (spread[free] / var[free]).max()))

    @in_float64
    def at(self, time: float) -> "FiniteForecast":
        """The same networks at another time (steps for gradient descent); the tensors of the start are kept."""
        later = _trainable(self.algorithm).at(positive(time, "time", zero=True, finite=False))
        return FiniteForecast(self._training, later)

    @in_float64
    def predict(self, x_new: Any) -> "FiniteForecast":
        """The same networks at other inputs, whose tensors are computed anew."""
        old = self._training
        x_new = inputs(x_new, "x_new", old.net.in_shape)
        return finite_forecast(old.net, old.x, old.y, old.vector, self.algorithm, x_new)

    def sample(self, size: int, key: Any) -> np.ndarray:
        """Draws of a Gaussian with this mean and covariance: (size, m) or (size, m, out)."""
        flat = Flat(self.mean.ravel(), self.cov.reshape(self.mean.size, -1))
        return flat.sample(size, key).reshape(-1, *self.mean.shape)


class Flat(GaussianOutputs):
    def __init__(self, mean: np.ndarray, cov: np.ndarray):
        self.mean, self._cov = mean, cov

    def _covariance(self) -> np.ndarray:
        return self._cov


class _Training:
    """The start of all networks at training and new inputs, in modes of the kernel: made once for all times."""

    def __init__(self, net: MLP, x: np.ndarray, y: np.ndarray, vector: bool, x_new: np.ndarray):
        self.net, self.x, self.y, self.vector = net, x, y, vector
        n, outputs = y.shape
        _require_fits(n, len(x_new), outputs, len(net.sizes) - 1)
        last = fluctuations(net, np.concatenate([x, x_new]), train=n)[-1]
        self.width, self.outputs = last.width, outputs
        self.shape = (len(x_new),) if vector else (len(x_new), outputs)
        self.lam, vectors = np.linalg.eigh(last.ntk[:n, :n])
        start = start_of(last, outputs)
        self.prior = np.diagonal(start.kernel)[n * outputs :]
        self.modes = np.kron(vectors, np.eye(outputs))
        self.start: Start = start.rotated(self.modes)
        self.targets = (vectors.T @ y).ravel()

    def status(self, algorithm: SpectralAlgorithm) -> Status:
        found = status_at(algorithm, self.lam[-1])
        if found.kind is StatusKind.converged and self.lam[0] <= _RANK * self.lam[-1]:
            rank = int((self.lam > _RANK * self.lam[-1]).sum())
            raise ValueError(
                f"the tangent kernel of `x` has rank {rank} < {len(self.lam)}: `order=1` at the end of training needs "
                "inputs that differ; leave out repeated rows, or give the algorithm a finite time."
            )
        return found

    def responses(self, algorithm: SpectralAlgorithm) -> Responses:
        lr, time = (algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0), algorithm.end()
        if not lr and self.lam[0] > _RANK * self.lam[-1] and self.lam[0] * time > _DECAYS:
            time = math.inf  # of every mode nothing is left
        found = responses(self.lam, lr, time)
        if self.outputs == 1:
            return found  # otherwise each eigenvalue belongs to as many modes as there are outputs
        modes = np.repeat(np.arange(len(self.lam)), self.outputs)
        return Responses(*(Response(_repeated(r.new, modes), _repeated(r.old, modes)) for r in found))

    def law(self, algorithm: SpectralAlgorithm) -> Law:
        with np.errstate(over="ignore", invalid="ignore"):
            return trained_law(self.start, self.responses(algorithm), self.targets)

    def diverged(self) -> Law:
        m = math.prod(self.shape)
        mean, cov = np.full(m, np.inf), np.full((m, m), np.inf)
        return Law(mean, cov, {"ddntk": (mean, cov)})


@in_float64
def finite_forecast(
    net: MLP, x: np.ndarray, y: np.ndarray, vector: bool, algorithm: SpectralAlgorithm, x_new: np.ndarray
) -> FiniteForecast:
    """For checked arguments, `y` (n, out)."""
    _trainable(algorithm)
    if not all(map(is_smooth, net.activations)):
        raise ValueError(
            "`order=1` is for smooth activations: at a kink the ddNTK holds squares of delta functions; use `order=0`, "
            "or a smooth relative such as gelu."
        )
    found = FiniteForecast(_Training(net, x, y, vector, x_new), algorithm)
    if found.ok and found.expansion > _LARGE:
        warnings.warn(
            f"the parts of the correction add up to {found.expansion:.2g} of what they correct: at depth/width = "
            f"{len(net.widths)}/{found.width} the next order may not be small either; trust `simulate` more here.",
            stacklevel=5,  # two verbs, each within its precision
        )
    return found


def _trainable(algorithm: SpectralAlgorithm) -> GradientDescent | GradientFlow:
    plain = (isinstance(algorithm, GradientFlow) and algorithm.friction is None) or (
        isinstance(algorithm, GradientDescent) and not algorithm.momentum
    )
    if not plain:
        raise ValueError(
            f"`order=1` is for nk.GradientFlow() and nk.GradientDescent(lr) without inertia; got {algorithm}."
        )
    return algorithm  # type: ignore[return-value]


def _require_fits(n: int, m: int, outputs: int, layers: int) -> None:
    """Refuse more points than the tensors of four of them can hold."""

    def needed(n: float, m: float) -> float:
        points, train = (n + m) * outputs, n * outputs
        return 8 * ((11 * layers + 20) * (n + m) ** 4 + 14 * points**4 + 4 * m * outputs * points * train**3)

    free = available_bytes()
    if needed(n, m) > free:
        most = n + m
        while most > 2 and needed(n * most / (n + m), m * most / (n + m)) > free:
            most -= 1
        raise MemoryError(
            f"`order=1` keeps tensors of four of {n} + {m} points{f' and {outputs} outputs' if outputs > 1 else ''}: "
            f"{human_bytes(needed(n, m))}, but {human_bytes(free)} are free: about {most} points in all fit."
        )


def _total(law: Law, which: int) -> np.ndarray:
    return sum(parts[which] for parts in law.corrections.values())  # type: ignore[return-value]


def _variances(cov: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    return np.diagonal(cov.reshape(size, size)).reshape(shape)


def _repeated(array: np.ndarray, modes: np.ndarray) -> np.ndarray:
    return array[np.ix_(*[modes] * array.ndim)]
