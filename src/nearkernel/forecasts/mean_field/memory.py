"""What clouds take at their peak, before any of them is made: fields at points, and directions of matrices."""

import numpy as np

from ..._run.memory import available_bytes, cores, require_fits, rows_that_fit
from ...dynamics.algorithms.spectral import GradientFlow
from .cloud_initialization import MOMENTS_PER_NEURON
from .problem import AT_START, COORDINATES, Problem

# Directions per training point that smooth fields need forward and backward at a richness of 3 and a tolerance of 0.01:
# about twice as many as at a richness of 1.
_AHEAD, _BACK = 14, 25


def threads_that_fit(problem: Problem) -> int:
    """How many runs at a time fit into memory; raises `MemoryError` if not even one does."""
    shared, own = shared_bytes(problem), run_bytes(problem, problem.neurons)
    _require(problem, shared + own, f"clouds of {problem.neurons} neurons")
    return int(min(cores(), max(1, (available_bytes() - shared) // own)))


def require_coordinates(problem: Problem, size: int) -> None:
    """Raises `MemoryError` if exact clouds in `size` coordinates do not fit."""
    _require(problem, run_bytes(problem, size), f"clouds of {size} coordinates")


def require_kernels(problem: Problem) -> None:
    """Raises `MemoryError` if the kernels of all points do not fit: all their fields are needed at once."""
    points, outputs, depth = len(problem.both), problem.y.shape[1], problem.layout.depth
    neurons = COORDINATES[0] if problem.linear else problem.neurons
    fields = _item(problem) * neurons * depth * (4 + 2 * outputs) * points
    own = run_bytes(problem, neurons) + fields + 8 * (3 * depth + 4) * (points * outputs) ** 2
    _require(problem, shared_bytes(problem) + own, f"kernels of {neurons} neurons")


def shared_bytes(problem: Problem) -> int:
    """The exact kernels at initialization, with their eigenvectors, of two tolerances."""
    return 0 if problem.linear else 2 * 8 * 8 * problem.layout.depth * _met(problem) ** 2


def run_bytes(problem: Problem, neurons: int) -> int:
    """One run: all training points at once, new points in batches, matrices in as many directions as they may get."""
    n, depth, outputs = len(problem.x), problem.layout.depth, problem.y.shape[1]
    met, ahead, back = _met(problem), *_directions(problem, neurons)
    batch = min(len(problem.x_new), rows_that_fit(8 * 4 * depth * neurons))
    # Fields of this step and of the last one, gradients, and what is computed on the way.
    fields = depth * (8 * n + 4 * max(batch, met - n))
    # Orthonormal fields, their images and the fresh ones in tables that double; changes of matrices and first layers.
    flows = isinstance(problem.algorithm, GradientFlow)
    changes = 5 if flows else 2 + 2 * (getattr(problem.algorithm, "momentum", 0.0) > 0)
    fields += (depth - 1) * (2 * (4 * ahead + 3 * back) + changes * ahead)
    fields += (changes + 2) * (problem.xi.shape[1] + outputs)
    start = 0 if problem.linear else _start_bytes(problem, neurons)
    lazy = 3 * 8 * len(problem.both) * n * outputs**2 if problem.anchored and not problem.linear else 0
    return _item(problem) * neurons * fields + start + lazy


def _directions(problem: Problem, neurons: int) -> tuple[int, int]:
    """Forward and backward, of every matrix."""
    n, m, outputs = len(problem.x), len(problem.x_new), problem.y.shape[1]
    if problem.linear:
        return neurons, neurons
    most = neurons // 4
    if isinstance(problem.algorithm, GradientFlow):
        asked = most
    else:
        asked = n * (int(problem.end) + 1)  # a new direction of every point in every step
    ahead, back = (asked, asked) if problem.kinked else (_AHEAD * n, _BACK * n * outputs)
    return min(most, asked + m, ahead + m), min(most, asked, back)


def _start_bytes(problem: Problem, neurons: int) -> int:
    """Sobol points, which stay, and the moments that weights are matched to, of one layer at a time."""
    met, n = _met(problem), len(problem.x)
    even = max(problem.xi.shape[1], met if problem.layout.depth > 1 else 0)
    odd = n if problem.layout.depth > 1 else problem.y.shape[1]
    moments = min(MOMENTS_PER_NEURON * neurons, met * (met + 1))
    return int(4 * neurons * ((problem.layout.depth + 5) * (even + odd) + 3 * met + 4 * moments))


def _met(problem: Problem) -> int:
    """Points whose exact kernels clouds start from."""
    return min(len(problem.both), max(AT_START, len(problem.x)))


def _item(problem: Problem) -> int:
    return 8 if problem.linear else np.dtype(problem.clouds.dtype).itemsize


def _require(problem: Problem, size: int, what: str) -> None:
    require_fits(size, f"{what} at {len(problem.both)} points", "use fewer neurons or points")
