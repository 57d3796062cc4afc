"""Sums of entrywise products of Gram matrices: the lower half in strips of rows, a strip to a thread."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._run.blas import one_thread
from ..._run.executor import in_order, lanes
from ..tiles import mirrored

_STRIP_BYTES = 32 * 2**20
_MANY = 400  # rows of the matrix that are worth a strip to themselves


class Term(NamedTuple):
    """`scale` times (enters . enters) * (signal . signal).

    `enters` is (n, p), `signal` (n per, q) with `per` rows for each input. Without `signal`, its product is the
    identity of the `per` rows of an input; without `enters`, its product is 1.
    """

    enters: np.ndarray | None
    signal: np.ndarray | None
    scale: float


def lower_half(terms: Sequence[Term], n: int, per: int) -> np.ndarray:
    """The symmetric matrix (n per, n per) that is the sum of `terms`."""
    dtype = np.result_type(*(a for term in terms for a in (term.enters, term.signal) if a is not None))
    matrix = np.empty((n * per, n * per), dtype)
    edges = _edges(n, per, dtype.itemsize)

    def fill(ends: tuple[int, int]) -> None:
        a, b = ends
        block = _strip(terms, a, b, per, dtype)
        mine, before = slice(a * per, b * per), slice(0, a * per)
        matrix[mine, before], matrix[before, mine] = block[:, before], block[:, before].T
        matrix[mine, mine] = mirrored(block[:, a * per :])

    with one_thread():
        for _ in in_order(fill, list(itertools.pairwise(edges))):
            pass
    return matrix


def _edges(n: int, per: int, itemsize: int) -> list[int]:
    """Where strips begin and end: each costs the same, rows times columns up to the diagonal."""
    budget = math.ceil(itemsize * (n * per) ** 2 / (2 * _STRIP_BYTES))
    count = lanes() * max(budget // lanes(), min(n * per // _MANY, 4), 1)
    low, high = 0.0, 1.0  # the cost of a strip, in units of the whole matrix
    for _ in range(40):
        cost = (low + high) / 2
        low, high = (cost, high) if _ends(cost, count)[-1] < 1 else (low, cost)
    return sorted({0, n, *(min(n, round(n * end)) for end in _ends(high, count))})


def _ends(cost: float, count: int) -> list[float]:
    ends = [0.0]
    for _ in range(count):
        ends.append((ends[-1] + math.sqrt(ends[-1] ** 2 + 4 * cost)) / 2)
    return ends


def _strip(terms: Sequence[Term], a: int, b: int, per: int, dtype: np.dtype) -> np.ndarray:
    """The rows of inputs a to b, up to the diagonal."""
    total = np.zeros((b - a, per, b, per), dtype)
    for enters, signal, scale in terms:
        near = None if enters is None else scale * (enters[a:b] @ enters[:b].T)
        if signal is None:
            assert near is not None
            for k in range(per):
                total[:, k, :, k] += near
            continue
        product = (signal[a * per : b * per] @ signal[: b * per].T).reshape(total.shape)
        product *= scale if near is None else near[:, None, :, None]
        total += product
    return total.reshape((b - a) * per, b * per)
