"""`forecast(order=1)`: the law of trained outputs of networks of finite width, to order 1/width."""

import functools
import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from .._check import finite_result, inputs, positive, truth, whole
from .._memory import available_bytes, human_bytes
from .._precision import in_float64
from .._status import Status, StatusKind
from ..dynamics import GradientDescent, GradientFlow, SpectralAlgorithm
from ..dynamics._solution import status_at
from ..models import MLP
from ._cumulants import Ties, fourth_cumulants, third_cumulants, ties
from ._expected_loss import ExpectedLoss, expected_loss
from ._fluctuations import Fluctuations, fluctuations, is_smooth
from ._nearly_gaussian import NearlyGaussianOutputs, as_targets
from ._responses import Response, Responses, responses
from ._trained import Law, Start, polynomial, start_of, trained_law

_LARGE = 0.25  # parts of the correction, over what they correct
_DECAYS = 200.0  # after which the slowest residual is below all rounding
_RANK = 1e-10  # of the largest eigenvalue: below, the end of training is not a matter of rounding


class Contribution(NamedTuple):
    """What one cause adds to `mean` and `cov`, already divided by the width; shapes as those of the forecast."""

    mean: np.ndarray
    cov: np.ndarray


class FiniteForecast(NearlyGaussianOutputs):
    r"""Trained outputs of networks of finite width: their law over initializations, to order 1/width.

    Outputs of finite networks are not Gaussian: `cumulants(3)` and `cumulants(4)` are of order 1/width too, and all
    higher ones smaller. `density(f)`, `cdf(f)`, `quantile(q)` and `sample(size, key)` follow from the four.

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
    `status`, an `nk.Status`, and its `ok`; `algorithm`. Of each output by itself: `skewness` and `kurtosis`, the excess
    over a Gaussian; `positive`, (low, high) between which the density is positive: beyond, order 1/width does not hold;
    `increasing`, the probabilities (low, high) between which quantiles increase.
    """

    def __init__(self, training: "FiniteTraining", algorithm: SpectralAlgorithm):
        self.algorithm, self._training = algorithm, training
        self.status = training.status(algorithm)
        self.width = training.width
        finite = self.ok or math.isfinite(algorithm.end())
        self._responses = training.responses(algorithm) if finite else None
        law = training.diverged() if self._responses is None else training.law(self._responses)
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

    @property
    def _sizes(self) -> np.ndarray:
        return self._training.prior.reshape(self.mean.shape)

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

    @in_float64
    def cumulants(self, order: int, diagonal: bool = False) -> np.ndarray:
        """The joint cumulants of new outputs, third or fourth by `order`, divided by the width as `terms[1]` is.

        kappa_3 is linear in `y` and zero at `y` = 0; kappa_4 does not depend on `y`.

        **Arguments:** `order`, 3 or 4; `diagonal`, for those of each output by itself: joint ones of three and more
        different new inputs need averages that the forecast has not made, and make them when they are first asked for.

        **Returns:** (m, m, m) or (m, m, m, m), with (m, out) in place of each m if `y` has columns; with `diagonal`,
        the shape of `mean`.
        """
        if whole(order, "order", 1) not in (3, 4):
            raise ValueError(f"`order` must be 3 or 4, beside `mean` and `cov`; got {order}.")
        shape = self.mean.shape
        if truth(diagonal, "diagonal"):
            return np.einsum("b" * order + "->b", self._cumulants(order, False)).reshape(shape)
        return self._cumulants(order, True).reshape(shape * order)

    def _cumulants(self, order: int, complete: bool) -> np.ndarray:
        """(m * out, ..); without `complete`, entries of more than two different new inputs mean nothing."""
        if self._responses is None:
            return np.full((self.mean.size,) * order, np.inf)
        found = self._training.ties(self._responses, complete)
        parts = third_cumulants(found, self._training.targets) if order == 3 else fourth_cumulants(found)
        return sum(parts.values(), np.zeros(())) / self.width

    @in_float64
    def expected_loss(self, y_new: Any) -> ExpectedLoss:
        """The loss 1/2 sum (f - `y_new`)^2 of these networks: its mean, by bias and variance, and its covariance.

        **Arguments:** `y_new`, targets at the new inputs, in the shape of `mean`.
        """
        y, size = as_targets(y_new, self.mean.shape), self.mean.size
        cov = self.cov_terms[0].reshape(size, size), self.cov_terms[1].reshape(size, size)
        third = np.einsum("bbc->bc", self._cumulants(3, False))
        fourth = np.einsum("bbcc->bc", self._cumulants(4, False))
        return expected_loss((self.terms[0], self.terms[1]), cov, third, fourth, y)


class FiniteTraining:
    """The start of all networks at training and new inputs, in modes of the kernel: made once for all times."""

    def __init__(
        self,
        net: MLP,
        x: np.ndarray,
        y: np.ndarray,
        vector: bool,
        x_new: np.ndarray,
        last: Fluctuations | None = None,
    ):
        """`last`, the layer of the outputs at `x` and `x_new`, if it is known already."""
        self.net, self.x, self.y, self.vector = net, x, y, vector
        n, outputs = y.shape
        _require_fits(n, len(x_new), outputs, len(net.sizes) - 1)
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

    def law(self, found: Responses) -> Law:
        with np.errstate(over="ignore", invalid="ignore"):
            return trained_law(self.start, found, self.targets)

    def ties(self, found: Responses, complete: bool) -> Ties:
        start = self.complete if complete else self.start
        with np.errstate(over="ignore", invalid="ignore"):
            return ties(start, polynomial(start, found, len(self.targets)))

    def diverged(self) -> Law:
        m = math.prod(self.shape)
        mean, cov = np.full(m, np.inf), np.full((m, m), np.inf)
        return Law(mean, cov, {"ddntk": (mean, cov)})


@in_float64
def finite_forecast(
    net: MLP, x: np.ndarray, y: np.ndarray, vector: bool, algorithm: SpectralAlgorithm, x_new: np.ndarray
) -> FiniteForecast:
    """For checked arguments, `y` (n, out)."""
    require_order_one(net, algorithm)
    found = FiniteForecast(FiniteTraining(net, x, y, vector, x_new), algorithm)
    if found.ok and found.expansion > _LARGE:
        warnings.warn(
            f"the parts of the correction add up to {found.expansion:.2g} of what they correct: at depth/width = "
            f"{len(net.widths)}/{found.width} the next order may not be small either; trust `simulate` more here.",
            stacklevel=5,  # two verbs, each within its precision
        )
    return found


def require_order_one(net: MLP, algorithm: SpectralAlgorithm) -> None:
    """Refuse networks and algorithms whose trained law is not known to order 1/width."""
    _trainable(algorithm)
    if not all(map(is_smooth, net.activations)):
        raise ValueError(
            "`order=1` is for smooth activations: at a kink the ddNTK holds squares of delta functions; use `order=0`, "
            "or a smooth relative such as gelu."
        )


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
        return 8 * ((11 * layers + 20) * (n + m) ** 4 + 15 * points**4 + 4 * m * outputs * points * train**3)

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
