"""`sample_law`: learning curves of tasks with a known spectrum."""

import math

import numpy as np

from ..._base.check import numeric, positive, shown
from ..._base.types import ArrayLike
from ...dynamics.algorithms.ridges import Ridges
from ...dynamics.algorithms.spectral import GradientFlow, SpectralAlgorithm
from ...dynamics.linear.leave_one_out import ridges_for
from .effective_ridge import effective, error_of
from .task import KernelTask, SpectrumMoments


def sample_law(
    task: KernelTask, sizes: ArrayLike, algorithm: SpectralAlgorithm | None = None, features: float = math.inf
) -> np.ndarray:
    r"""The expected test error after training on m examples (and p random features of the kernel), (k,).

    For a ridge $s$, $\kappa$ solves $m = \sum_i L_i + s/\kappa$ with $L_i = \lambda_i/(\lambda_i + \kappa)$, and

    $$E = \frac{m}{m - \sum_i L_i^2} \left(\text{noise} + \sum_i (1 - L_i)^2 v_i^2\right);$$

    gradient flow and descent are sums of complex ridges. The noise of the new target is included. Errors are means
    over data sets. Without a ridge the mean is infinite where m equals p, or m or p equals the number of modes; near
    these points it is dominated by rare draws.

    **Arguments:** `task`, e.g. `nk.forecasts.power_law_task(1.5, 2.0)`; `sizes` (k,), numbers of examples;
    `algorithm`, with the loss summed over examples, `GradientFlow()` by default; `features` p, infinitely many
    by default.
    """
    if not isinstance(task, KernelTask):
        raise TypeError(f"`task` must be an nk.forecasts.KernelTask; got {shown(task)}.")
    algorithm = GradientFlow() if algorithm is None else algorithm
    if not isinstance(algorithm, SpectralAlgorithm):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {shown(algorithm)}."
        )
    p = positive(features, "features", finite=False)
    sizes = np.atleast_1d(numeric(sizes, "sizes"))
    if sizes.ndim != 1 or not sizes.size or sizes.min() <= 0:
        raise ValueError("`sizes` must be a vector of numbers greater than 0.")
    return np.array([_error(task, float(m), algorithm, p) for m in sizes])


def _error(task: KernelTask, m: float, algorithm: SpectralAlgorithm, p: float) -> float:
    moments = SpectrumMoments(task)
    # The largest eigenvalue of the kernel matrix is near m lam_max; the bound decides only between two rules.
    most = min(2 * m * float(np.max(task.eigenvalues)) + moments.trace, algorithm.limit() * (1 - 1e-9))
    ridges = ridges_for(algorithm, most, "`algorithm`: a learning curve")
    ridges = Ridges(ridges.strengths + task.rest, ridges.weights)
    if ridges.strengths[0] == 0 and (p == m or (moments.most <= p and moments.most == m)):
        return math.inf
    return error_of(effective(moments, ridges.strengths, m, p), ridges, m, p)
