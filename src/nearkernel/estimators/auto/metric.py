r"""A weight per column, learned by the marginal likelihood of a Gaussian process with a relu NTK.

With C = K(x w) + noise and the amplitude profiled out, the loss of targets Y (n, out) is

    L = (n out / 2) log(tr Y^T C^-1 Y) + (out / 2) log det C,

and dL/dC is carried back through the two layers of the kernel to w by hand.
"""

import numpy as np
import scipy.linalg
import scipy.optimize

from ..._run.blas import one_thread
from .relu_kernels import BIAS_VAR

DEPTH = 2
_MOST_ROWS = 500
_MOST_COLUMNS = 150
_ITERATIONS = 25
_PRIOR = 2.0  # standard deviation of the logarithm of a weight, before data are seen
_FARTHEST = 7.0  # of that logarithm


def learned_weights(x: np.ndarray, y: np.ndarray, random: np.random.RandomState) -> np.ndarray | None:
    """(d,) weights of the columns of x (n, d), or None where there are too few rows, too many columns or constant
    targets."""
    n, d = x.shape
    if n < 20 or not 1 < d <= _MOST_COLUMNS:
        return None
    if n > _MOST_ROWS:
        rows = random.permutation(n)[:_MOST_ROWS]
        x, y = x[rows], y[rows]
    if not y.any():
        return None
    start = np.concatenate([np.zeros(d), [np.log(0.1)]])
    with one_thread(len(x)):
        optimum = scipy.optimize.minimize(
            negative_log_likelihood,
            start,
            args=(x, y),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-_FARTHEST, _FARTHEST)] * d + [(-9.0, 3.0)],
            options={"maxiter": _ITERATIONS},
        )
    return np.exp(optimum.x[:-1]) if np.isfinite(optimum.fun) else None


def negative_log_likelihood(parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """L / out with the prior, and its gradient by the logarithms of the weights and of the noise."""
    n = len(y)
    weights, noise = np.exp(parameters[:-1]), np.exp(parameters[-1])
    kernel, back = _kernel(x * weights)
    unit = np.trace(kernel) / n
    covariance = kernel + noise * unit * np.eye(n)
    try:
        factor = scipy.linalg.cho_factor(covariance, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(parameters)
    inverse, _ = scipy.linalg.lapack.dpotri(factor[0], lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    solved = inverse @ y
    fit = float(np.einsum("ij,ij->", y, solved))
    loss = 0.5 * n * np.log(fit) + np.log(np.diagonal(factor[0])).sum()
    by_covariance = 0.5 * inverse - 0.5 * (n / fit) * solved @ solved.T
    by_trace = noise * np.trace(by_covariance) / n  # the noise is in units of the mean of the diagonal
    by_product = back(by_covariance + by_trace * np.eye(n))
    by_product += by_product.T
    scaled = x * weights
    gradient = np.einsum("ij,ij->j", scaled, by_product @ scaled) * 2.0 / x.shape[1]
    gradient = np.append(gradient, noise * unit * np.trace(by_covariance))
    logs = parameters[:-1]
    gradient[:-1] += logs / _PRIOR**2
    return loss + 0.5 * float(logs @ logs) / _PRIOR**2, gradient


def _kernel(x: np.ndarray):
    """The NTK (n, n), and a function that takes dL/dK to dL/dS, S = 2 x x^T / d, a diagonal counted in itself."""
    n, d = x.shape
    kernel = 2.0 / d * (x @ x.T) + BIAS_VAR
    total, kept = kernel.copy(), []
    diagonal = np.arange(n)
    for _ in range(DEPTH):
        q = kernel[diagonal, diagonal]
        size = np.sqrt(q[:, None] * q)
        cos = np.clip(kernel / size, -1.0, 1.0)
        cos[diagonal, diagonal] = 1.0
        sin = np.sqrt((1.0 - cos) * (1.0 + cos))
        share = 1.0 - np.arccos(cos) / np.pi
        kept.append((total, q, size, cos, sin, share))
        kernel = size * (sin / np.pi + share * cos) + BIAS_VAR
        total = total * share + kernel

    def back(by_total: np.ndarray) -> np.ndarray:
        by_kernel = np.zeros_like(by_total)  # of the layer above
        for before, q, size, cos, sin, share in reversed(kept):
            by_kernel = by_kernel + by_total
            with np.errstate(divide="ignore", invalid="ignore"):
                by_cos = by_total * before / (np.pi * sin)
            by_cos[diagonal, diagonal] = 0.0  # there t is 0 whatever the lengths
            by_cos[sin < 1e-9] = 0.0
            # K' = size (sin / pi + share cos) + b: its derivatives by K and by both lengths
            by_length = by_kernel * size * sin / (2.0 * np.pi) - 0.5 * by_cos * cos
            lengths = (by_length.sum(axis=0) + by_length.sum(axis=1)) / q
            by_kernel = by_kernel * share + by_cos / size
            by_kernel[diagonal, diagonal] += lengths
            by_total = by_total * share
        return by_kernel + by_total

    return total, back
