r"""What one neuron adds to the kernels of a later layer, as a function of its preactivations.

A neuron of a residual network has a path: preactivations z^k at each of the layers k that its skips connect. To order
1/n its share of the covariance and of the tangent kernel of layer m is, with s_a = s(z^k_a) and Theta of layer k,

    kappa_ab = sum_k Psi_ab s_a^2 + Psi_ba s_b^2 + X_ab s_a s_b,
    omega_ab = sum_k Phi_ab s_a^2 + Phi_ba s_b^2 + Z_ab s_a s_b + X_ab Theta_ab s'_a s'_b,

with matrices Psi, X, Phi, Z of each pair of layers k < m: how the later kernel answers to changes of the earlier ones.
"""

from typing import NamedTuple

import numpy as np

from ._averages import Averages

Term = tuple[np.ndarray, str, int, int]  # coefficient [a, b], which of the two inputs, orders of two derivatives
PairFunction = tuple[Term, ...]  # a sum of products of two derivatives of s at one layer


class Influence(NamedTuple):
    """How a neuron of one layer enters the kernels of another; each (n, n)."""

    psi: np.ndarray
    x: np.ndarray
    phi: np.ndarray
    z: np.ndarray

    def __add__(self, other: "Influence") -> "Influence":  # type: ignore[override]
        return Influence(*(a + b for a, b in zip(self, other, strict=True)))

    def passed(self, theta: np.ndarray, c: float, averages: Averages) -> "Influence":
        """On the layer after, by a change of its kernels; `averages` and `theta` of the layer between."""
        p20, p11 = averages.pair(2, 0), averages.pair(1, 1)
        ua = c * (theta * averages.pair(3, 1) + p20)
        ub = c * (theta * averages.pair(2, 2) + p11)
        own = (2.0 * np.diagonal(self.psi) + np.diagonal(self.x))[:, None]
        return Influence(
            psi=c / 2 * p20 * own + c * p11 * self.psi,
            x=c * p11 * self.x,
            phi=ua * own / 2 + ub * self.psi + c * p11 * self.phi,
            z=ub * self.x + c * p11 * self.z,
        )

    def kappa(self) -> PairFunction:
        return ((self.psi, "aa", 0, 0), (self.psi.T, "bb", 0, 0), (self.x, "ab", 0, 0))

    def omega(self, theta: np.ndarray) -> PairFunction:
        squares = ((self.phi, "aa", 0, 0), (self.phi.T, "bb", 0, 0))
        return (*squares, (self.z, "ab", 0, 0), (self.x * theta, "ab", 1, 1))


def first_influence(n: int, c: float) -> Influence:
    """On the next layer: C s_a s_b, and C (s_a s_b + Theta s'_a s'_b)."""
    none, one = np.zeros((n, n)), np.full((n, n), c)
    return Influence(none, one, none, one)


def derivative(function: PairFunction, by: str) -> PairFunction:
    """d/dz_a or d/dz_b of each letter of `by` in turn; Theta does not depend on z."""
    for letter in by:
        found: list[Term] = []
        for coefficient, at, i, j in function:
            if at[0] == letter:
                found.append((coefficient, at, i + 1, j))
            if at[1] == letter:
                found.append((coefficient, at, i, j + 1))
        function = tuple(found)
    return function


def mean(function: PairFunction, averages: Averages) -> np.ndarray:
    """< > at one layer, [a, b]."""
    total = np.zeros(averages.pairs.shape[2:])
    for coefficient, at, i, j in function:
        total = total + coefficient * _placed(averages.pair(i, j), at)
    return total


def _placed(pair: np.ndarray, at: str) -> np.ndarray:
    if at == "ab":
        return pair
    return np.diagonal(pair)[:, None] if at == "aa" else np.diagonal(pair)[None, :]


def product(one: PairFunction, two: PairFunction, tables: np.ndarray) -> np.ndarray:
    """<one_ab two_cd>, [a, b, c, d], by `tables` (4, 4, 4, 4, n, n, n, n) of orders and inputs."""
    total = np.zeros(tables.shape[4:])
    for first, at_first, i, j in one:
        for second, at_second, k, m in two:
            four = _diagonal(_diagonal(tables[i, j, k, m], at_first, 0), at_second, 2)
            total = total + first[:, :, None, None] * second * four
    return total


def _diagonal(four: np.ndarray, at: str, axis: int) -> np.ndarray:
    if at == "ab":
        return four
    same = np.moveaxis(np.diagonal(four, axis1=axis, axis2=axis + 1), -1, axis)
    return np.expand_dims(same, axis + 1 if at == "aa" else axis)
