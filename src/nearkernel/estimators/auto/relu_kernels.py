r"""NNGP and NTK of relu networks by their closed form in NumPy: no compilation, so small tables are fast.

With weights of variance 2 / fan_in, q the squared lengths and c the cosine of a layer's two inputs,

    K -> sqrt(q q') [sin t + (pi - t) cos t] / pi + b,   T -> K + T (pi - t) / pi,   t = arccos c.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..._run.executor import in_order
from ..._run.memory import cores

BIAS_VAR = 0.1
_CHUNK = 2**16  # entries at a time: they stay in the cache

Layer = tuple[int, bool]  # depth, and whether the NTK is meant rather than the NNGP kernel


def relu_kernels(x: np.ndarray, z: np.ndarray | None, wanted: Sequence[Layer]) -> list[np.ndarray]:
    """The `wanted` kernels between rows of x (m, d) and z (n, d), or of x with itself: all from one pass of layers."""
    symmetric = z is None
    z = x if z is None else z
    lengths = _lengths(z)
    matrices = [np.empty((len(x), len(z))) for _ in wanted]
    rows = max(1, _CHUNK // max(len(z), 1))

    def fill(at: int) -> None:
        part = slice(at, min(at + rows, len(x)))
        first = at if symmetric else 0  # entries to the left mirror those above
        kernel = x[part] @ z[first:].T
        kernel *= 2.0 / x.shape[1]
        kernel += BIAS_VAR
        layers = _layers(kernel, _lengths(x[part])[:, None], lengths[None, first:])
        for depth, (nngp, ntk) in zip(range(max(deep for deep, _ in wanted) + 1), layers, strict=False):
            for matrix, (deep, tangent) in zip(matrices, wanted, strict=True):
                if deep == depth:
                    entries = ntk if tangent else nngp
                    matrix[part, first:] = entries
                    if symmetric:
                        matrix[part.stop :, part] = entries[:, part.stop - first :].T

    starts = range(0, len(x), rows)
    for _ in in_order(fill, starts, cores() if len(starts) >= 4 else 1):
        pass
    if symmetric:
        for matrix, layer in zip(matrices, wanted, strict=True):
            np.fill_diagonal(matrix, relu_diagonal(x, *layer))
    return matrices


def relu_diagonal(x: np.ndarray, depth: int, tangent: bool) -> np.ndarray:
    """The diagonal (m,) of a kernel, exactly."""
    q = _lengths(x)
    total = q.copy()
    for _ in range(depth):
        q = q + BIAS_VAR
        total += q
    return total if tangent else q


def _lengths(x: np.ndarray) -> np.ndarray:
    """(m,) squared, as the first layer has them."""
    return 2.0 * np.einsum("ij,ij->i", x, x) / x.shape[1] + BIAS_VAR


def _layers(kernel: np.ndarray, q: np.ndarray, p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """NNGP kernel and NTK of 0, 1, ... hidden layers; both arrays are overwritten by the next ones."""
    ntk = kernel.copy()
    sin, share = np.empty_like(kernel), np.empty_like(kernel)
    while True:
        yield kernel, ntk
        size = np.sqrt(q * p)
        kernel /= size
        cos = np.clip(kernel, -1.0, 1.0, out=kernel)
        np.subtract(1.0, cos, out=sin)
        sin *= np.add(1.0, cos, out=share)
        np.sqrt(sin, out=sin)
        sin /= np.pi
        np.arccos(cos, out=share)
        share /= -np.pi
        share += 1.0  # (pi - t) / pi
        kernel *= share
        kernel += sin
        kernel *= size
        kernel += BIAS_VAR
        ntk *= share
        ntk += kernel
        q, p = q + BIAS_VAR, p + BIAS_VAR
