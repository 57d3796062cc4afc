r"""NNGP and NTK of relu networks by their closed form in NumPy: no compilation, so small tables are quick.

With weights of variance 2 / fan_in, q the squared lengths and c the cosine of a layer's two inputs,

    K -> sqrt(q q') [sin t + (pi - t) cos t] / pi + b,   T -> K + T (pi - t) / pi,   t = arccos c.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._memory import cores

BIAS_VAR = 0.1
_CHUNK = 2**18  # entries at a time: they stay in the cache


def relu_kernel(x: np.ndarray, z: np.ndarray, depth: int, tangent: bool) -> np.ndarray:
    """The NTK, or else the NNGP kernel, of `depth` hidden layers between rows of x (m, d) and z (n, d)."""
    lengths = 2.0 * np.einsum("ij,ij->i", z, z) / z.shape[1] + BIAS_VAR
    found = np.empty((len(x), len(z)))
    rows = max(1, _CHUNK // max(len(z), 1))

    def fill(at: int) -> None:
        part = x[at : at + rows]
        q = 2.0 * np.einsum("ij,ij->i", part, part) / x.shape[1] + BIAS_VAR
        kernel = part @ z.T
        kernel *= 2.0 / x.shape[1]
        kernel += BIAS_VAR
        found[at : at + rows] = _layers(kernel, q[:, None], lengths[None, :], depth, tangent)

    starts = range(0, len(x), rows)
    if len(starts) < 4:
        for at in starts:
            fill(at)
        return found
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(fill, starts))
    return found


def relu_diagonal(x: np.ndarray, depth: int, tangent: bool) -> np.ndarray:
    """Its diagonal (m,), exactly."""
    q = 2.0 * np.einsum("ij,ij->i", x, x) / x.shape[1] + BIAS_VAR
    total = q.copy()
    for _ in range(depth):
        q = q + BIAS_VAR
        total += q
    return total if tangent else q


def _layers(kernel: np.ndarray, q: np.ndarray, p: np.ndarray, depth: int, tangent: bool) -> np.ndarray:
    total = kernel.copy() if tangent else kernel
    for _ in range(depth):
        size = np.sqrt(q * p)
        cos = np.clip(kernel / size, -1.0, 1.0)
        share = np.arccos(cos)
        share /= -np.pi
        share += 1.0  # (pi - t) / pi
        sin = np.sqrt((1.0 - cos) * (1.0 + cos))
        kernel = size * (sin / np.pi + share * cos) + BIAS_VAR
        if tangent:
            total *= share
            total += kernel
        q, p = q + BIAS_VAR, p + BIAS_VAR
    return total if tangent else kernel
