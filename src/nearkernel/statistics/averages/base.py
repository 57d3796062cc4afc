"""Gaussian averages of products of up to four derivatives of an activation, at up to four inputs.

With z ~ N(0, K) over all inputs, the corrections of order 1/n need

    pairs:  E[s^(i)(z_a) s^(j)(z_b)]                          for i, j up to 5,
    fours:  E[s^(i)(z_a) s^(j)(z_b) s^(k)(z_c) s^(l)(z_d)]    for the sets of orders in ORDERS.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._run.executor import in_order

KNOWN_TO_SLOPES = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1))
ORDERS = (*KNOWN_TO_SLOPES, (0, 1, 1, 2), (1, 1, 1, 3), (1, 1, 2, 2))


Fours = dict[tuple[int, ...], np.ndarray]
Wanted = Callable[[tuple[int, ...]], bool]


class Averages(NamedTuple):
    """`pairs` (6, 6, n, n) and `fours`: sorted orders -> (n, n, n, n). What an activation lacks is nan or absent."""

    pairs: np.ndarray
    fours: Fours

    def pair(self, i: int, j: int) -> np.ndarray:
        """E[s^(i)_a s^(j)_b] as [a, b]."""
        return self.pairs[i, j]

    def four(self, *orders: int) -> np.ndarray:
        """E[s^(orders[0])_a s^(orders[1])_b s^(orders[2])_c s^(orders[3])_d] as [a, b, c, d]."""
        by_order = np.argsort(orders, kind="stable")
        return self.fours[tuple(sorted(orders))].transpose(np.argsort(by_order))


def multisets(n: int):
    """Every choice a <= b <= c <= d of four inputs."""
    return itertools.combinations_with_replacement(range(n), 4)


def fours_of(n: int, table: Callable[[tuple[int, ...]], np.ndarray], wanted: Wanted | None) -> Fours:
    """Averages of `n` inputs from a `table` for each choice of four, of those that are `wanted`; the others are 0."""
    fours: Fours = {orders: np.zeros((n,) * 4) for orders in ORDERS}
    chosen = [four for four in multisets(n) if wanted is None or wanted(four)]
    for four, averages in zip(chosen, in_order(table, chosen), strict=True):
        store(fours, four, averages)
    return fours


def store(fours: Fours, chosen: tuple[int, ...], table: np.ndarray) -> None:
    """Put `table[i, j, k, l]`, the averages at the inputs `chosen`, into all places that equal them by symmetry."""
    for slots in itertools.permutations(range(4)):
        place = tuple(chosen[slot] for slot in slots)
        for orders, tensor in fours.items():
            at = [0] * 4
            for slot, order in zip(slots, orders, strict=True):
                at[slot] = order
            tensor[place] = table[tuple(at)]
