"""The tensors of order 1/width of the output of a network, as plain sums over a grid: a neuron at a time.

Every neuron of a hidden layer adds kappa to the covariance and omega to the tangent kernel of the output; the tensors
are averages of products of two of these, or of their derivatives. Here both are arrays over a grid of preactivations,
and no code is shared with the library.
"""

import itertools
import types

import jax
import numpy as np


def derivatives(function, u):
    """s to s^(5)."""
    found = []
    with jax.enable_x64(True):
        for _ in range(6):
            found.append(np.asarray(jax.vmap(function)(u.ravel())).reshape(u.shape))
            function = jax.grad(function)
    return found


class Grid:
    """A layer with kernel K: s^(i) at all inputs and nodes, and the weights of nodes."""

    def __init__(self, kernel, function, reach=7.5):
        lam, vectors = np.linalg.eigh(kernel)
        spacing = 0.25 / max(1.0, np.sqrt(lam[-1]))
        kept = lam > 1e-12 * lam[-1]
        root = vectors[:, kept] * np.sqrt(lam[kept])
        node = spacing * np.arange(-round(reach / spacing), round(reach / spacing) + 1)
        e = np.stack(np.meshgrid(*[node] * kept.sum())).reshape(kept.sum(), -1)
        e = e[:, (e**2).sum(axis=0) < reach**2]
        chance = np.exp(-0.5 * (e**2).sum(axis=0))
        self.chance = chance / chance.sum()
        self.s = derivatives(function, root @ e)

    def two(self, i, j):
        return (self.s[i] * self.chance) @ self.s[j].T

    def product(self, f, g):
        """<f_ab g_cd>, [a, b, c, d]."""
        n = len(f)
        return ((f * self.chance).reshape(n * n, -1) @ g.reshape(n * n, -1).T).reshape(n, n, n, n)

    def cov(self, f, g):
        return self.product(f, g) - np.einsum("ab,cd->abcd", f @ self.chance, g @ self.chance)


class Neuron:
    """kappa and omega of a neuron and their derivatives by its preactivations at a and b, [a, b, node]."""

    def __init__(self, grid, theta, psi, x, phi, z):
        self.grid, self.theta, s = grid, theta, grid.s
        whole = lambda matrix: matrix[:, :, None]
        xt = whole(x * theta)

        def ab(i, j):
            return s[i][:, None] * s[j][None]

        square = [s[0] ** 2, 2 * s[0] * s[1], 2 * (s[1] ** 2 + s[0] * s[2])]  # s^2 and its derivatives

        def pair(own, across, slopes, i, j):
            """d_a^i d_b^j of own_ab s_a^2 + own_ba s_b^2 + across_ab s_a s_b + slopes_ab s'_a s'_b."""
            found = whole(across) * ab(i, j) + slopes * ab(i + 1, j + 1)
            if j == 0:
                found = found + whole(own) * square[i][:, None]
            if i == 0:
                found = found + whole(own.T) * square[j][None]
            return found

        self.k = lambda i, j: pair(psi, x, 0 * xt, i, j)
        self.w = lambda i, j: pair(phi, z, xt, i, j)

    def tensors(self):
        k, w, th, grid = self.k, self.w, self.theta, self.grid
        tied = lambda f, g, names: np.einsum(f"{names}->abcd", grid.product(f, g))
        at = lambda **factors: np.einsum(
            ",".join([*factors, "abcd"]) + "->abcd", *factors.values(), np.ones((len(th),) * 4)
        )
        return {
            "four_point": grid.cov(k(0, 0), k(0, 0)),
            "ntk_output_d": grid.cov(k(0, 0), w(0, 0)),
            "ntk_variance_a": grid.cov(w(0, 0), w(0, 0)),
            "ntk_output_f": at(cd=th) * tied(k(1, 0), k(1, 0), "cadb"),
            "ntk_variance_b": at(ab=th, cd=th) * tied(k(1, 1), k(1, 1), "acbd"),
            "dntk_p": at(ab=th, ac=th) * tied(k(2, 0), k(1, 1), "adbc"),
            "dntk_q": at(ac=th) * tied(w(1, 0), k(1, 0), "abcd"),
            "ddntk_r": at(ac=th, ad=th) * tied(w(2, 0), k(1, 1), "abcd"),
            "ddntk_s": at(ac=th, bd=th) * tied(w(1, 1), k(1, 1), "abcd"),
            "ddntk_t": at(ab=th) * tied(w(1, 0), w(1, 0), "acbd"),
            "ddntk_u": at(ab=th, ac=th, bd=th) * tied(k(2, 1), k(2, 1), "adbc"),
        }


def contracted(tensor, p, i, own=False):
    """V_pquv <d_p d_q d_u d_v (s^(i)_a s^(i)_b)>, or with `own` Y_pqab <d_p d_q (s^(i)_a s^(i)_b)>, [a, b]."""
    found = np.zeros(tensor.shape[:2])
    for a, b in np.ndindex(found.shape):
        for ends in itertools.product((0, 1), repeat=2 if own else 4):  # each derivative at a, or at b
            places = [(a, b)[end] for end in ends] + ([a, b] if own else [])
            found[a, b] += tensor[tuple(places)] * p(i + ends.count(0), i + ends.count(1))[a, b]
    return found


def output_tensors(x, c, function, hidden, ratio=1.0):
    """Fields of `Fluctuations` for the output of `hidden` = 1 or 2 layers without biases, weight_var = c.

    `ratio`: the width of the second hidden layer over that of the first.
    """
    kernel = c / x.shape[1] * x @ x.T
    grid, theta, zero = Grid(kernel, function), kernel, np.zeros_like(kernel)
    after = c * grid.two(0, 0)
    ntk = after + c * grid.two(1, 1) * theta
    near = (zero, zero + c, zero, zero + c)
    old = Neuron(grid, theta, *near).tensors()
    if hidden == 1:
        return types.SimpleNamespace(
            kernel=after, ntk=ntk, kernel_correction=zero, ntk_correction=zero, **old
        )
    second = Grid(after, function)
    p = second.two
    ua, ub = c * ntk * p(3, 1) + c * p(2, 0), c * ntk * p(2, 2) + c * p(1, 1)
    far = (c / 2 * p(2, 0) * c, c * p(1, 1) * c, ua * c / 2, ub * c + c * p(1, 1) * c)
    below, above = Neuron(grid, theta, *far).tensors(), Neuron(second, ntk, *near).tensors()
    tensors = {name: ratio * below[name] + above[name] for name in above}
    y = old["ntk_output_d"] + old["ntk_output_f"] + old["ntk_output_f"].swapaxes(2, 3)
    g, shifted = (ratio * c / 8 * contracted(old["four_point"], p, i) for i in (0, 1))
    h = g + ntk * shifted + ratio * c / 2 * contracted(y, p, 1, own=True)
    last = c * p(0, 0)
    return types.SimpleNamespace(
        kernel=last, ntk=last + c * p(1, 1) * ntk, kernel_correction=g, ntk_correction=h, **tensors
    )
