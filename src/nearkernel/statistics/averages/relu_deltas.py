r"""Averages of the relu family with delta functions: s'' = j delta(z) with the jump j of the slope.

A delta fixes its input at 0, where the others are Gaussian again; slopes at that input are averaged over the jump:

    s'' (s')^q = j_q delta(z),   j_q = (right^(q+1) - left^(q+1)) / (q + 1),

which is what the derivative of (s')^(q+1) says. A third derivative is taken to the other inputs by parts,

    <delta'(z_p) X> = - sum_k (K_pk / K_pp) <delta(z_p) d_k X>.

Two deltas at one input are infinite; such entries are left at 0 here.
"""

import itertools

import numpy as np

from ...activations.closed import PiecewiseLinear
from .base import Fours
from .relu_family import given_zero, moment

Slots = tuple[tuple[int, int], ...]  # (input, order of the derivative)
ORDERS = ((0, 1, 1, 2), (1, 1, 1, 3), (1, 1, 2, 2))
_PARALLEL = 1e-12  # of the determinant of two inputs


def with_deltas(activation: PiecewiseLinear, kernel: np.ndarray) -> Fours:
    """All averages with one or two deltas, under N(0, kernel)."""
    n, own = len(kernel), _Deltas(activation)
    fours: Fours = {orders: np.zeros((n,) * 4) for orders in ORDERS}
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for place in itertools.product(range(n), repeat=4):
        groups.setdefault(tuple(sorted(set(place)).index(a) for a in place), []).append(place)
    for pattern, places in groups.items():
        inputs = np.array([sorted(set(place)) for place in places])
        part = kernel[inputs[:, :, None], inputs[:, None, :]]
        for orders in ORDERS:
            found = own.average(part, tuple(zip(pattern, orders, strict=True)))
            fours[orders][tuple(np.array(places).T)] = found
    return fours


def infinite(name: str, n: int) -> np.ndarray | None:
    """Where a tensor has two deltas at one input, (n, n, n, n); None if nowhere."""
    a, b, c, d = np.indices((n,) * 4)
    if name == "R":
        return (a == b) | (a == c) | (a == d)
    return a == b if name in "STU" else None


class _Deltas:
    def __init__(self, activation: PiecewiseLinear):
        self.right, self.left = activation.right, activation.left
        self.mean, self.half = 0.5 * (self.right + self.left), 0.5 * (self.right - self.left)

    def average(self, kernel: np.ndarray, slots: Slots) -> np.ndarray:
        """(batch,): of derivatives of these orders at these inputs of `kernel` (batch, k, k)."""
        orders = [order for _, order in slots]
        if 3 in orders:
            return self._bent(kernel, slots, orders.index(3))
        if 2 not in orders:
            return self._plain(kernel, slots)
        at = slots[orders.index(2)][0]
        here = [order for where, order in slots if where == at]
        if here.count(2) > 1 or 0 in here:  # infinite, or s(0) = 0
            return np.zeros(len(kernel))
        power = len(here)
        jump = (self.right**power - self.left**power) / power
        k = kernel[:, at, at]
        density = np.where(k > 0, 1 / np.sqrt(2 * np.pi * np.where(k > 0, k, 1.0)), 0.0)
        rest = tuple((where - (where > at), order) for where, order in slots if where != at)
        given = given_zero(kernel, at)
        for where, order in rest:
            if order == 2:  # the same input but for its size: no second delta
                before = where + (where >= at)
                apart = given[:, where, where] > _PARALLEL * kernel[:, before, before]
                density = np.where(apart, density, 0.0)
        return jump * density * self.average(given, rest)

    def _bent(self, kernel: np.ndarray, slots: Slots, third: int) -> np.ndarray:
        at, total = slots[third][0], np.zeros(len(kernel))
        if any(where == at for i, (where, _) in enumerate(slots) if i != third):
            return total
        for i, (where, _) in enumerate(slots):
            if i != third:
                moved = tuple((w, 2 if k == third else o + (k == i)) for k, (w, o) in enumerate(slots))
                k = kernel[:, at, at]
                share = kernel[:, at, where] / np.where(k > 0, k, 1.0)
                total = total - share * self.average(kernel, moved)
        return total

    def _plain(self, kernel: np.ndarray, slots: Slots) -> np.ndarray:
        """Of s and s' alone: s = z (mean + half sgn z)."""
        powers = [0] * kernel.shape[1]
        for where, order in slots:
            powers[where] += 1 - order
        total = np.zeros(len(kernel))
        for size in range(len(slots) + 1):
            weight = self.mean ** (len(slots) - size) * self.half**size
            if not weight:
                continue
            for chosen in itertools.combinations([where for where, _ in slots], size):
                signs = frozenset(where for where in set(chosen) if chosen.count(where) % 2)
                total += weight * moment(kernel, tuple(powers), signs)
        return total
