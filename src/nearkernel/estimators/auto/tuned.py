"""Which algorithm an estimator trains by."""

import numpy as np

from ..._base.check import shown
from ...dynamics.algorithms.spectral import GradientFlow, SpectralAlgorithm
from ...dynamics.linear.tune import tune
from ...kernels.base import AbstractKernel


def chosen(
    algorithm: SpectralAlgorithm | None, kernel: AbstractKernel, x: np.ndarray, y: np.ndarray
) -> SpectralAlgorithm:
    """An algorithm itself, or for "ridge" and "flow" the one whose strength or time leave-one-out prefers."""
    if algorithm is None:
        return GradientFlow()
    if isinstance(algorithm, SpectralAlgorithm):
        return algorithm
    if algorithm not in ("ridge", "flow"):
        raise TypeError(
            "`algorithm` must be one that can be solved, e.g. nk.GradientFlow(), or 'ridge' or 'flow'; got "
            f"{shown(algorithm)}."
        )
    return tune(kernel, x, y, algorithm).algorithm
