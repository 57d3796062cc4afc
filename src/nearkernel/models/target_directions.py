r"""Targets that see only a few directions of their input: polynomials g(U x), written in Hermite polynomials.

For $x \sim \mathcal{N}(0, 1)$ and orthonormal directions $U$ the projections $z = U x$ are independent standard
normals, and $g = \sum_a c_a\, He_a(z)$ with $He_a(z) = He_{a_1}(z_1) \cdots He_{a_r}(z_r)$ has all averages in closed
form, since $He_k' = k\, He_{k-1}$:

$$\mathbb{E}[f] = c_0, \qquad \operatorname{Var} f = \sum_{a \ne 0} a!\, c_a^2, \qquad
(C_k)_{i_1 \ldots i_k} = \mathbb{E}[\partial_{i_1} \cdots \partial_{i_k} f] = a!\, c_a$$

in latent indices.
"""

import itertools
from collections.abc import Callable, Mapping
from math import factorial, inf, prod
from typing import Any

import equinox as eqx
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander

from .._base.check import finite_result, inputs, numeric, shown, whole
from .._base.types import ArrayLike
from .._run.memory import require_fits

_ROUNDING = 1e-9
_MOST_INDICES = 32  # of an array
_MOST_DEGREE = 100  # factorials beyond are no longer numbers when squared


class MultiIndexPolynomial(eqx.Module):
    r"""A polynomial of few directions of its inputs (a multi-index function), in the Hermite basis.

    $$f(x) = \sum_a c_a\, He_{a_1}(u_1 \cdot x) \cdots He_{a_r}(u_r \cdot x)$$

    **Arguments:** `directions` (r, d), orthonormal rows $u$; `coefficients`, a dictionary from the r powers of each
    term to $c_a$, e.g. {(2, 0): 0.5, (2, 2): 0.5}, for monic ("probabilists'") Hermite polynomials, $He_2(z) = z^2 -
    1$. `MultiIndexPolynomial.of(g, directions, degree)` computes them for any polynomial and any independent
    directions.

    ```python
    f = nk.theory.MultiIndexPolynomial(np.eye(2, 10), {(2, 0): 0.5, (0, 2): -0.5, (2, 2): 0.5})
    f(x), f.hessian, f.kappa, f.tensor(4)
    ```
    """

    directions: np.ndarray
    powers: np.ndarray
    coefficients: np.ndarray

    def __init__(self, directions: Any, coefficients: Mapping[tuple[int, ...], float]):
        directions = inputs(directions, "directions")
        r, d = directions.shape
        if r > d or np.abs(directions @ directions.T - np.eye(r)).max() > _ROUNDING:
            raise ValueError(
                "`directions` must be orthonormal rows; for others use MultiIndexPolynomial.of(g, directions, degree)."
            )
        if not isinstance(coefficients, Mapping) or not coefficients:
            raise TypeError(
                "`coefficients` must be a dictionary from powers to numbers, such as {(2, 0): 0.5}; got "
                f"{shown(coefficients)}."
            )
        for powers in coefficients:
            if not isinstance(powers, tuple) or len(powers) != r:
                raise ValueError(
                    f"`coefficients` needs tuples of {r} powers, one per direction; got {powers!r}."
                )
            for power in powers:
                whole(power, "coefficients", 0, most=_MOST_DEGREE)
        self.directions = directions.copy()
        self.powers = np.array(list(coefficients), dtype=int).reshape(len(coefficients), r)
        self.coefficients = numeric(list(coefficients.values()), "coefficients")

    @classmethod
    def of(cls, g: Callable[[np.ndarray], Any], directions: Any, degree: int) -> "MultiIndexPolynomial":
        r"""The function $f(x) = g(U x)$ for a polynomial `g`, (n, r) -> (n,), of at most `degree`.

        $U$ = `directions` (r, d) must be linearly independent; $f$ is rewritten in an orthonormal basis of their span.
        The coefficients are $\mathbb{E}[g\, He_a]/a!$, by Gauss-Hermite quadrature, which is exact here.
        """
        if not callable(g):
            raise TypeError(f"`g` must be a function (n, r) -> (n,); got {shown(g)}.")
        directions = inputs(directions, "directions")
        degree = whole(degree, "degree", 0, most=_MOST_DEGREE)
        r, d = directions.shape
        basis, mixing = np.linalg.qr(directions.T)
        if r > d or np.abs(np.diag(mixing)).min() < _ROUNDING * np.abs(np.diag(mixing)).max():
            raise ValueError("`directions` must be linearly independent rows.")
        require_fits(8 * (degree + 1) ** r * (r + 2), "the quadrature of this target", "use fewer directions")
        nodes, weights = hermegauss(degree + 1)
        grid = np.stack([a.ravel() for a in np.meshgrid(*[nodes] * r, indexing="ij")], axis=1)
        mass = np.prod(np.stack(np.meshgrid(*[weights] * r, indexing="ij")), axis=0).ravel()
        values = mass / mass.sum() * _values(g, grid @ mixing)
        tables = hermevander(grid, degree)
        found = {}
        for powers in itertools.product(range(degree + 1), repeat=r):
            if sum(powers) <= degree:
                average = values @ _products(tables, np.array([powers]))[:, 0]
                found[powers] = float(average / prod(map(factorial, powers)))
        largest = max(map(abs, found.values()))
        kept = {powers: c for powers, c in found.items() if abs(c) > 1e-13 * largest} or {(0,) * r: 0.0}
        made = cls(basis.T, kept)
        probe = np.random.default_rng(0).normal(size=(64, r))
        expected = _values(g, probe @ mixing)
        off = np.abs(made._of_latent(probe) - expected).max()
        if off > 1e-8 * max(np.abs(expected).max(), 1e-300):
            raise ValueError(
                f"`g` is not a polynomial of degree {degree}: it differs from its expansion by {off:.3g}."
            )
        return made

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The values $f(x)$: (n, d) -> (n,)."""
        return self._of_latent(inputs(x, "x", self.directions.shape[1]) @ self.directions.T)

    def _of_latent(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            tables = hermevander(z, int(self.powers.max()))
            return finite_result(_products(tables, self.powers) @ self.coefficients, "`x` is")

    @property
    def degree(self) -> int:
        """The degree p, the largest sum of powers."""
        return int(self.powers.sum(axis=1).max())

    @property
    def mean(self) -> float:
        r"""The mean $\mathbb{E}[f]$ for standard normal inputs."""
        return float(self.coefficients[self.powers.sum(axis=1) == 0].sum())

    @property
    def variance(self) -> float:
        r"""The variance of $f$ for standard normal inputs."""
        weights = np.array([prod(map(factorial, map(int, powers))) for powers in self.powers])
        return float(np.sum((weights * self.coefficients**2)[self.powers.sum(axis=1) > 0]))

    def nonlinear(self) -> "MultiIndexPolynomial":
        """f without its constant and linear parts."""
        kept = {
            tuple(map(int, powers)): float(c)
            for powers, c in zip(self.powers, self.coefficients, strict=True)
            if powers.sum() > 1
        }
        return MultiIndexPolynomial(self.directions, kept or {(0,) * len(self.directions): 0.0})

    def latent_tensor(self, k: int) -> np.ndarray:
        """$C_k$ of degree `k` in the coordinates of the directions, (r,) * k."""
        k, r = whole(k, "k", 0, most=_MOST_INDICES), len(self.directions)
        require_fits(8 * r**k, f"a tensor of {k} indices of {r} values", "use fewer indices")
        found = np.zeros((r,) * k)
        for powers, c in zip(self.powers, self.coefficients, strict=True):
            if powers.sum() == k:
                value = c * prod(map(factorial, map(int, powers)))
                for where in set(itertools.permutations(np.repeat(np.arange(r), powers))):
                    found[where] = value
        return found

    def tensor(self, k: int) -> np.ndarray:
        r"""$C_k = \mathbb{E}[\nabla^k f]$ of degree `k`, (d,) * k, symmetric."""
        k, d = whole(k, "k", 0, most=_MOST_INDICES), self.directions.shape[1]
        require_fits(8 * d**k, f"a tensor of {k} indices of {d} values", "use `latent_tensor`")
        found = self.latent_tensor(k)
        for _ in range(k):  # each contraction takes the first axis and appends a new last one
            found = np.tensordot(found, self.directions, axes=(0, 0))
        return found

    @property
    def hessian(self) -> np.ndarray:
        """$H = C_2$, the average Hessian (d, d)."""
        return self.tensor(2)

    @property
    def kappa(self) -> float:
        r"""The normalized condition number $\lVert H^+\rVert / \sqrt r$; infinite if the rank of $H$ is not $r$."""
        sizes = np.abs(np.linalg.eigvalsh(self.latent_tensor(2)))
        if sizes.min() <= 1e-12 * max(sizes.max(), np.sqrt(self.variance)):
            return inf
        return float(1 / sizes.min() / np.sqrt(len(sizes)))


def _values(g: Callable, z: np.ndarray) -> np.ndarray:
    values = numeric(g(z), "g(z)")
    if values.shape != (len(z),):
        raise ValueError(f"`g` must map (n, r) to (n,); it maps {z.shape} to {values.shape}.")
    return values


def _products(tables: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """He_a(z) of each point and term, (n, terms), from He_k(z_i), (n, r, degree + 1)."""
    found = np.ones((len(tables), len(powers)))
    for i in range(tables.shape[1]):
        found *= tables[:, i, powers[:, i]]
    return found
