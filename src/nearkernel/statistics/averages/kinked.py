r"""Averages of any activation with kinks, for one or two inputs, by quadrature whose panels end at the kinks.

Its second derivative is a delta function, so derivatives are moved to the Gaussian: with y = K^{-1} z,

    <d_p d_q f> = <f (y_p y_q - K^{-1}_pq)>,   and <d^4 f> by the Hermite polynomial of fourth degree.

For one input only sums such as <(s^2)''''> are finite; they are shared out among the pairs of orders in them.
"""

import itertools

import numpy as np

from ...activations.averages.series import Series
from .base import KNOWN_TO_SLOPES, Averages, Fours, multisets, store

_NEAREST = 1e-6


class Kinked:
    """One activation with kinks."""

    def __init__(self, activation: Series):
        self.activation = activation

    def averages(self, kernel: np.ndarray, derivatives: bool) -> Averages:
        """Averages of s and s' under N(0, kernel), one or two inputs; pairs beyond slopes if `derivatives`."""
        n = len(kernel)
        pairs = np.zeros((6, 6, n, n))
        fours: Fours = {orders: np.empty((n,) * 4) for orders in KNOWN_TO_SLOPES}
        nodes = self._nodes(kernel)
        for chosen in multisets(n):
            store(fours, chosen, _four(nodes, chosen))
        for a in range(n):
            pairs[:, :, a, a] = _one_input(nodes, a, kernel[a, a], derivatives)
        if n == 2:
            own = _two_inputs(nodes, kernel, derivatives)
            pairs[:, :, 0, 1], pairs[:, :, 1, 0] = own, own.T
        return Averages(pairs, fours)

    def _nodes(self, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """z (n, m), [s, s'] (2, n, m) and weights (m,)."""
        q1, q2 = kernel[0, 0], kernel[-1, -1]
        gap = 0.0 if len(kernel) == 1 else float(np.clip(1.0 - kernel[0, 1] / np.sqrt(q1 * q2), 0.0, 2.0))
        if len(kernel) == 2 and gap < _NEAREST:
            raise ValueError(
                f"`x` contains two inputs whose correlation is within {_NEAREST:g} of 1 in some layer: `order=1` of an "
                "activation with kinks is inaccurate there: leave one of them out."
            )
        parts = list(self.activation.pair_nodes(q1, q2, gap))
        weights = np.concatenate([w.ravel() for _, _, w in parts])
        z = np.concatenate(
            [np.stack([np.broadcast_to(u[:, None], v.shape), v]).reshape(2, -1) for u, v, _ in parts], 1
        )
        z = z[: len(kernel)]
        return z, np.stack([function(z) for function in self.activation.on_numpy()]), weights


def _four(nodes, chosen: tuple[int, ...]) -> np.ndarray:
    """(2, 2, 2, 2): averages of s or s' at four chosen inputs."""
    _, s, weights = nodes
    a, b, c, d = (s[:, k] for k in chosen)
    left = (a[:, None] * b[None]).reshape(4, -1)
    right = (c[:, None] * d[None]).reshape(4, -1)
    return ((left * weights) @ right.T).reshape(2, 2, 2, 2)


def _one_input(nodes, a: int, q: float, derivatives: bool) -> np.ndarray:
    z, s, weights = nodes[0][a], nodes[1][:, a], nodes[2]
    value, slope = weights * s[0] ** 2, weights * s[1] ** 2
    second, fourth = (z * z - q) / q**2, (z**4 - 6 * q * z * z + 3 * q * q) / q**4
    e = np.zeros((6, 6))
    e[0, 0], e[1, 1] = value.sum(), slope.sum()
    if derivatives:
        e[2, 0] = 0.5 * value @ second - e[1, 1]
        e[3, 1] = 0.5 * slope @ second
        e[4, 0] = 0.5 * value @ fourth - 4 * e[3, 1]
        e[5, 1] = 0.5 * slope @ fourth
    return e + np.tril(e, -1).T


def _two_inputs(nodes, kernel: np.ndarray, derivatives: bool) -> np.ndarray:
    z, s, weights = nodes
    inverse = np.linalg.pinv(kernel, rcond=1e-12, hermitian=True)
    y = inverse @ z
    value, slope = weights * s[0, 0] * s[0, 1], weights * s[1, 0] * s[1, 1]
    e = np.zeros((6, 6))
    e[0, 0], e[1, 1] = value.sum(), slope.sum()
    if not derivatives:
        return e
    e[2, 0], e[0, 2] = (value @ _second(y, inverse, (k, k)) for k in (0, 1))
    e[4, 0], e[0, 4] = (value @ _fourth(y, inverse, (k,) * 4) for k in (0, 1))
    for j in range(3):  # j of the derivatives act on the second input
        e[3 - j, 1 + j] = slope @ _second(y, inverse, (0,) * (2 - j) + (1,) * j)
    for j in range(5):
        e[5 - j, 1 + j] = slope @ _fourth(y, inverse, (0,) * (4 - j) + (1,) * j)
    return e


def _second(y: np.ndarray, inverse: np.ndarray, by: tuple[int, ...]) -> np.ndarray:
    return y[by[0]] * y[by[1]] - inverse[by[0], by[1]]


def _fourth(y: np.ndarray, inverse: np.ndarray, by: tuple[int, ...]) -> np.ndarray:
    found = y[by[0]] * y[by[1]] * y[by[2]] * y[by[3]]
    for i, j in itertools.combinations(range(4), 2):
        k, m = (slot for slot in range(4) if slot not in (i, j))
        found = found - inverse[by[i], by[j]] * (y[by[k]] * y[by[m]] - 0.5 * inverse[by[k], by[m]])
    return found
