"""The tensors of the nearly-kernel formula, for looking at: predictions never build them."""

import math

import equinox as eqx
import numpy as np

from ..._base.result import Result
from ..._run.memory import available_bytes, human_bytes
from ..algorithms.spectral import DirectOptimization, GradientDescent, Ridge, SpectralAlgorithm
from ..linear.factor import AbstractFactor, Spectrum

_LARGEST = 2**30


class Projectors(Result, eqx.Module):
    r"""The algorithm projectors `Z_A`, `Z_B` and the inverting tensor `X`, each (N, N, N, N).

    $$z_b = z_b(0) - k K^{-1} e + [\mu_{1 b 2} - k K^{-1} \mu_{1 \cdot 2}]\, Z_A^{1234} e_3 e_4
    + [\mu_{b 1 2} - k K^{-1} \mu_{\cdot 1 2}]\, Z_B^{1234} e_3 e_4,$$

    with $e$ the residual at initialization and $\mu$ the meta-kernel. $X$ solves
    $X (K \otimes 1 + 1 \otimes K - \eta\, K \otimes K) = 1 \otimes 1$; it is None for algorithms without a time
    (direct optimization, minimum norm).
    """

    Z_A: np.ndarray
    Z_B: np.ndarray
    X: np.ndarray | None


def projectors(spectrum: Spectrum, algorithm: SpectralAlgorithm) -> Projectors:
    """Of training to its end on data that can be fitted."""
    count = len(spectrum.vectors)
    size = 3 * 8 * count**4
    if size > min(_LARGEST, available_bytes()):
        raise MemoryError(
            f"the projectors of {count} points need {human_bytes(size)}: they are for inspection only; use at most "
            f"{int((_LARGEST / 24) ** 0.25)} points. Predictions do not need them."
        )
    lam = spectrum.lam
    both = 1 / np.outer(lam, lam)
    if isinstance(algorithm, DirectOptimization):
        za, zb, x = np.zeros_like(both), both / 2, None
    elif isinstance(algorithm, Ridge):
        za, zb, x = both, both / 2, None
    else:
        lr = algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0
        x = 1 / (lam[:, None] + lam - lr * np.outer(lam, lam))
        za = both - x / lam
        zb = za + lr / 2 * x
    v = spectrum.vectors
    return Projectors(_rotated(za, v), _rotated(zb, v), None if x is None else _rotated(x, v))


def _rotated(diagonal: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """sum_ij V_1i V_2j D_ij V_3i V_4j."""
    left = np.einsum("ai,bi->iab", vectors, vectors)
    return np.einsum("iac,ij,jbd->abcd", left, diagonal, left, optimize=True)


def require_fitted(what: str, factor: AbstractFactor, outputs: int, algorithm: SpectralAlgorithm) -> None:
    """Raises `ValueError` unless training ends in a fit."""
    if factor.lam_max >= algorithm.limit():
        raise ValueError(f"{what} does not exist, since training {algorithm.advice(factor.lam_max)}.")
    if not math.isinf(algorithm.end()) or (isinstance(algorithm, Ridge) and algorithm.strength > 0):
        raise ValueError(
            f"{what} exists only for training to convergence: solve without `steps`, `time` or a ridge."
        )
    if factor.rank < outputs:
        raise ValueError(
            f"{what} needs a kernel matrix of full rank; its rank for {outputs} outputs is {factor.rank}."
        )
