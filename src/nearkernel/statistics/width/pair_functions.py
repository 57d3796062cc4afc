r"""What one neuron of a hidden layer adds to the covariance and to the tangent kernel of the outputs.

A neuron with preactivations u ~ N(0, K^l) on all points, s_a = s(u_a), theta = Theta^l, adds 1/n_l times

    kappa_ab = Psi_ab s_a^2 + Psi_ba s_b^2 + X_ab s_a s_b                              to the covariance of the output,
    omega_ab = Phi_ab s_a^2 + Phi_ba s_b^2 + Z_ab s_a s_b + X_ab theta_ab s'_a s'_b    to its tangent kernel.

All tensors of order 1/n are averages of products of two such pair functions. Just above the neuron Psi = Phi = 0 and
X = Z = C; through each further hidden layer, with its averages p_ij = <s^(i)_a s^(j)_b> and d_a = 2 Psi_aa + X_aa,

    Psi <- (C/2) p20 d_a + C p11 Psi,   X <- C p11 X,   Phi <- (1/2) ua d_a + ub Psi + C p11 Phi,   Z <- ub X + C p11 Z,

where ua = C Theta p31 + C p20 and ub = C Theta p22 + C p11.
"""

from typing import NamedTuple

import numpy as np

from ...activations.averages.series import weighted_hermite
from ...activations.base import AbstractActivation
from ...models.networks.mlp import MLP
from ..averages.base import Averages
from ..averages.quadrature import stacked_derivatives

_SPACING, _TERMS = 0.05, 384


class Pairs:
    """Averages <f(u_a) g(u_b)> under N(0, kernel) for products f, g of derivatives of an activation.

    By Mehler's series: one integral per input and term, whatever the number of pairs. The diagonal is an integral.
    """

    def __init__(self, activation: AbstractActivation, kernel: np.ndarray):
        own = np.diagonal(kernel)
        self._deviation = np.sqrt(np.maximum(own, 0.0))
        size = np.outer(self._deviation, self._deviation)
        self._correlation = np.clip(kernel / np.where(size > 0, size, 1.0), -1.0, 1.0)
        self._nodes, self._hermite = weighted_hermite(_SPACING, _TERMS)
        values = np.asarray(stacked_derivatives(activation)(np.outer(self._nodes, self._deviation)))
        self._derivatives = values  # (6, nodes, points)
        self._series: dict[tuple[int, ...], np.ndarray] = {}

    def one(self, *orders: int) -> np.ndarray:
        """<s^(i) s^(j) ..> of each input."""
        return self._hermite[0] @ self._product(orders)

    def two(self, first: tuple[int, ...], second: tuple[int, ...]) -> np.ndarray:
        """<s^(i)_a s^(j)_a .. s^(k)_b ..>, [a, b]: orders of derivatives at a, and at b."""
        left, right = self._terms(first), self._terms(second)
        total = np.zeros_like(self._correlation)
        for a, b in zip(left[::-1], right[::-1], strict=True):  # Horner's rule in the correlation
            total = total * self._correlation + np.outer(a, b)
        np.fill_diagonal(total, self.one(*first, *second))
        return total

    def pair(self, i: int, j: int) -> np.ndarray:
        return self.two((i,), (j,))

    def _product(self, orders: tuple[int, ...]) -> np.ndarray:
        return np.prod(self._derivatives[list(orders)], axis=0)

    def _terms(self, orders: tuple[int, ...]) -> np.ndarray:
        if orders not in self._series:
            self._series[orders] = self._hermite @ self._product(orders)
        return self._series[orders]


class PairFunctions(NamedTuple):
    """The fixed matrices of kappa and omega, each [a, b]."""

    psi: np.ndarray
    x: np.ndarray
    phi: np.ndarray
    z: np.ndarray

    @property
    def own(self) -> np.ndarray:
        """d_a: kappa_aa = d_a s_a^2."""
        return np.diagonal(2 * self.psi + self.x)

    def through(self, pairs: "Pairs | Averages", theta: np.ndarray, c: float) -> "PairFunctions":
        """Seen from one layer further on, whose tangent kernel before the activation is `theta`."""
        p20, slopes = pairs.pair(2, 0), c * pairs.pair(1, 1)
        ua, ub = c * theta * pairs.pair(3, 1) + c * p20, c * theta * pairs.pair(2, 2) + slopes
        own = self.own[:, None]
        return PairFunctions(
            c / 2 * p20 * own + slopes * self.psi,
            slopes * self.x,
            ua * own / 2 + ub * self.psi + slopes * self.phi,
            ub * self.x + slopes * self.z,
        )


class Layers(NamedTuple):
    """Of a network on given points: kernels of each hidden layer and of the output, averages, and pair functions."""

    kernels: list[np.ndarray]
    ntks: list[np.ndarray]
    pairs: list[Pairs]
    # Functions of a neuron of hidden layer l + 1, seen from layer l + 2, ..., the output.
    seen: list[list[PairFunctions]]

    def mean_omega(self, layer: int) -> np.ndarray:
        """<omega>: the share of a hidden layer, 0, 1, .., in the tangent kernel of the output."""
        f, p = self.seen[layer][-1], self.pairs[layer]
        own = p.one(0, 0)
        found = f.phi * own[:, None] + f.phi.T * own + f.z * p.pair(0, 0)
        return found + f.x * self.ntks[layer] * p.pair(1, 1)


def layers_of(net: MLP, kernels: list) -> Layers:
    """From `kernels` = layer_kernels(net, points)."""
    depth = len(net.widths)
    pairs = [Pairs(net.activation_of(k + 1), kernels[k][0]) for k in range(depth)]
    seen = []
    for k in range(depth):
        zero, c = np.zeros_like(kernels[k][0]), float(net.dense(k + 1).weight_var)
        found = [PairFunctions(zero, zero + c, zero, zero + c)]
        for above in range(k + 1, depth):
            c = float(net.dense(above + 1).weight_var)
            found.append(found[-1].through(pairs[above], kernels[above][1], c))
        seen.append(found)
    return Layers([k for k, _, _ in kernels], [t for _, t, _ in kernels], pairs, seen)


def mean_corrections(net: MLP, layers: Layers) -> tuple[np.ndarray, np.ndarray]:
    """G^(1) and H^(1) of the output, times the width of the last hidden layer; they take pairs of inputs alone."""
    depth = len(net.widths)
    g = h = np.zeros_like(layers.kernels[0])
    # From the preactivations of hidden layer to + 1 to those of the layer after it.
    for to in range(1, depth):
        p, theta, c = layers.pairs[to], layers.ntks[to], float(net.dense(to + 1).weight_var)
        parts = []
        for k in range(to):
            moments = _Moments(layers.pairs[k], layers.seen[k][to - 1 - k], layers.ntks[k])
            parts.append(moments.scaled(net.widths[to - 1] / net.widths[k]))
        v = [sum(part[0][k] for part in parts) for k in range(4)]
        y = [sum(part[1][k] for part in parts) for k in range(3)]
        r = net.widths[to] / net.widths[to - 1]
        new_g = r * c * (_second(g, p, 0) / 2 + _fourth(v, p, 0) / 8)
        moved = y[0] * p.pair(3, 1) + y[1] * p.pair(2, 2) + y[2] * p.pair(1, 3)
        shifted = _second(g, p, 1) / 2 + _fourth(v, p, 1) / 8
        h = new_g + r * c * (p.pair(1, 1) * h + theta * shifted + moved / 2)
        g = new_g
    return g, h


def _second(x: np.ndarray, p: Pairs, i: int) -> np.ndarray:
    """x_pq <d_p d_q (s^(i)_a s^(i)_b)>."""
    own = np.diagonal(x)
    return own[:, None] * p.pair(i + 2, i) + 2 * x * p.pair(i + 1, i + 1) + own * p.pair(i, i + 2)


def _fourth(v: list, p: Pairs, i: int) -> np.ndarray:
    """V_(pq)(uv) <d_p d_q d_u d_v (s^(i)_a s^(i)_b)>."""
    alone, three, across, mixed = v
    found = alone[:, None] * p.pair(i + 4, i) + alone * p.pair(i, i + 4)
    found = found + 4 * three * p.pair(i + 3, i + 1) + 4 * three.T * p.pair(i + 1, i + 3)
    return found + (2 * across + 4 * mixed) * p.pair(i + 2, i + 2)


class _Moments:
    """V, and D + F + F^T, of pairs of inputs, from neurons of one layer."""

    def __init__(self, p: Pairs, f: PairFunctions, theta: np.ndarray):
        own, values, slopes = p.one(0, 0), p.pair(0, 0), p.pair(1, 1)
        squares = p.two((0, 0), (0, 0)) - np.outer(own, own)  # cov(s_a^2, s_b^2)
        alone = p.one(0, 0, 0, 0) - own**2
        cubes = p.two((0, 0, 0), (0,)) - own[:, None] * values  # cov(s_a^2, s_a s_b)
        bent = p.two((0, 0, 1), (1,))  # <s_a^2 s'_a s'_b>
        with_slopes = bent - own[:, None] * slopes  # cov(s_a^2, s'_a s'_b)
        both = p.two((0, 0), (0, 0)) - values**2  # var(s_a s_b)
        turned = p.two((0, 1), (0, 1))  # <s_a s'_a s_b s'_b>
        d, t = f.own, f.x * theta

        def with_square(phi, z, slope_part):
            """cov(s_a^2, .) of a pair function."""
            return phi * alone[:, None] + phi.T * squares + z * cubes + slope_part * with_slopes

        zero = np.zeros_like(t)
        by_kappa = with_square(f.psi, f.x, zero)
        by_omega = with_square(f.phi, f.z, t)
        product = f.z * both + t * (turned - values * slopes)  # cov(s_a s_b, omega without its own squares)
        across = f.psi * by_omega + f.psi.T * _mirrored(with_square, f.phi, f.z, t)
        across = across + f.x * (f.phi * cubes + f.phi.T * cubes.T + product)
        kappas = f.psi * by_kappa + f.psi.T * _mirrored(with_square, f.psi, f.x, zero)
        kappas = kappas + f.x * (f.psi * cubes + f.psi.T * cubes.T + f.x * both)
        self._v = (d**2 * alone, d[:, None] * by_kappa, np.outer(d, d) * squares, kappas)
        f_aa = theta * d[:, None] * (2 * f.psi.T * turned + f.x * bent)
        f_ab = theta * np.outer(d, d) * turned
        f_ba = theta * (4 * f.psi * f.psi.T * turned + f.x**2 * turned)
        f_ba = f_ba + theta * 2 * f.x * (f.psi * bent + f.psi.T * bent.T)
        d_aa = d[:, None] * by_omega
        y_aa = d_aa + 2 * f_aa
        self._y = (y_aa, 2 * across + 2 * (f_ab + f_ba), y_aa.T)

    def scaled(self, factor: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return [factor * part for part in self._v], [factor * part for part in self._y]


def _mirrored(with_square, phi, z, slope_part) -> np.ndarray:
    """cov(s_b^2, .) of a pair function, [a, b]."""
    return with_square(phi, z.T, slope_part.T).T
