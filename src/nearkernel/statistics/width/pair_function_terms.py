"""The pair functions of a neuron as sums of products of two derivatives of its activation, and their averages."""

import numpy as np

from ..averages.base import Averages
from .pair_functions import PairFunctions

# A coefficient [a, b], at which of the two inputs, and the orders of two derivatives.
Term = tuple[np.ndarray, str, int, int]
Terms = tuple[Term, ...]


def kappa(f: PairFunctions) -> Terms:
    """Psi_ab s_a^2 + Psi_ba s_b^2 + X_ab s_a s_b"""
    return ((f.psi, "aa", 0, 0), (f.psi.T, "bb", 0, 0), (f.x, "ab", 0, 0))


def omega(f: PairFunctions, theta: np.ndarray) -> Terms:
    """Phi_ab s_a^2 + Phi_ba s_b^2 + Z_ab s_a s_b + X_ab Theta_ab s'_a s'_b"""
    squares = ((f.phi, "aa", 0, 0), (f.phi.T, "bb", 0, 0))
    return (*squares, (f.z, "ab", 0, 0), (f.x * theta, "ab", 1, 1))


def derivative(terms: Terms, by: str) -> Terms:
    """By z_a or z_b, for each letter of `by` in turn."""
    for letter in by:
        found: list[Term] = []
        for coefficient, at, i, j in terms:
            if at[0] == letter:
                found.append((coefficient, at, i + 1, j))
            if at[1] == letter:
                found.append((coefficient, at, i, j + 1))
        terms = tuple(found)
    return terms


def mean(terms: Terms, averages: Averages) -> np.ndarray:
    """< > at one layer, [a, b]."""
    total = np.zeros(averages.pairs.shape[2:])
    for coefficient, at, i, j in terms:
        total = total + coefficient * _along(averages.pair(i, j), at, 0)
    return total


def product(one: Terms, two: Terms, tables: np.ndarray) -> np.ndarray:
    """<one_ab two_cd>, [a, b, c, d], by `tables` of orders (4, 4, 4, 4) and inputs (n, n, n, n)."""
    total = np.zeros(tables.shape[4:])
    for first, at_first, i, j in one:
        for second, at_second, k, m in two:
            four = _along(_along(tables[i, j, k, m], at_first, 0), at_second, 2)
            total = total + first[:, :, None, None] * second * four
    return total


def _along(array: np.ndarray, at: str, axis: int) -> np.ndarray:
    """Over inputs a, b at `axis` and the next: with both at a, or both at b, if `at` says so."""
    if at == "ab":
        return array
    same = np.moveaxis(np.diagonal(array, axis1=axis, axis2=axis + 1), -1, axis)
    return np.expand_dims(same, axis + 1 if at == "aa" else axis)
