r"""The size of a class of functions, measured by its entropy numbers.

The entropy number $\epsilon_n(K)$ is the least $\epsilon$ for which $2^n$ balls of radius $\epsilon$ cover $K$: the
error of the best $n$-bit code for its members. Every bound is rigorous; the docstring that states it gives the proof.
"""

from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np

from ..._base.check import inputs, numeric, plain_array, positive, shown, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ...kernels.function_space.mercer import mercer
from ...kernels.function_space.positivity import KernelLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BITS = 100_000
_STEPS = 240  # radii that are tried, from the largest axis down to the accuracy that is asked for
_SPLITS = np.geomspace(0.02, 50.0, 12)


class EntropyBounds(Result, eqx.Module):
    r"""Rigorous bounds on entropy numbers: `lower` $\le \epsilon_n \le$ `upper`.

    **Fields:** `bits` n (k,); `lower` and `upper` (k,).
    """

    bits: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw both bounds against the number of bits on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        bounds = np.stack([self.lower, self.upper], axis=1)
        return draw_lines(
            self.bits,
            bounds,
            axes,
            labels=["lower", "upper"],
            xlabel="bits",
            ylabel="entropy number",
            log="y",
        )


def _whole_bits(bits: ArrayLike) -> np.ndarray:
    array = np.atleast_1d(plain_array(bits, "bits"))
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min(initial=0) < 0 or not array.size:
        raise ValueError(f"`bits` must be an integer of at least 0, or a vector of them; got {shown(bits)}.")
    if array.max() > _MOST_BITS:
        raise ValueError(f"`bits` must be at most {_MOST_BITS}; got {array.max()}.")
    return array.astype(np.int64)


def ellipsoid_entropy(axes: ArrayLike, bits: ArrayLike, tail: float = 0.0) -> EntropyBounds:
    r"""Bounds on the entropy numbers of the ellipsoid $\sum_i x_i^2 / s_i^2 \le 1$ in a Hilbert space.

    **Arguments:** `axes`, half-axes $s_1, s_2, \ldots$ (k,) in any order; `bits` n, a number or a vector; `tail`, a
    bound on all half-axes that are not listed (0: there are none).

    The lower bound compares volumes in the first k axes: $2^n$ balls cover the ellipsoid only if
    $\epsilon_n^k\, 2^n \ge s_1 \cdots s_k$. The upper bound takes a maximal set of points in the first k axes at
    mutual distance d, which covers these axes within d. Balls of radius $r = d/2$ around them are disjoint and lie in
    the ellipsoid grown by r, which lies in one with axes $a_i^2 = (1 + c) s_i^2 + (1 + 1/c) r^2$ for every $c > 0$.
    So there are at most $\prod a_i / r$ of them; the other axes add $s_{k+1}$ in quadrature. The result is the best
    bound over all k, c and d, or the cover by boxes that halves one axis per bit, if that is better.
    """
    s = np.sort(numeric(axes, "axes").ravel())[::-1]
    if not s.size or s[-1] < 0 or s[0] == 0:
        raise ValueError("`axes` must have at least one value, all at least 0 and one greater than 0.")
    n, tail = _whole_bits(bits), float(positive(tail, "tail", zero=True))
    s = s[s > 0]
    k = np.arange(1, len(s) + 1)
    lower = np.exp(np.max((np.cumsum(np.log(s)) - n[:, None] * np.log(2.0)) / k, axis=1))
    rest = np.append(s[1:], 0.0)
    rest = np.maximum(rest, tail)
    upper = _boxes(s, int(n.max()), tail)[n]
    for d in np.geomspace(4 * s[0], max(lower.min(), 1e-300), _STEPS):
        squares = np.logaddexp(
            np.log1p(_SPLITS) + 2 * (np.log(2 * s) - np.log(d))[:, None], np.log1p(1 / _SPLITS)
        )
        # The number of points, in bits, for every k.
        count = np.min(np.cumsum(squares, axis=0), axis=1) / (2 * np.log(2.0))
        radius = np.hypot(d, rest)
        best = np.where(count <= n[:, None], radius, np.inf).min(axis=1)
        upper = np.minimum(upper, best)
    return EntropyBounds(n, np.minimum(lower, upper), upper)


def _boxes(s: np.ndarray, most: int, tail: float) -> np.ndarray:
    """Radius (most + 1,) of 2^n boxes: every bit halves the axis that is longest. Tight for few axes or few bits."""
    sides, radii = s.copy(), [max(s[0], tail)]
    split = np.zeros(len(s), dtype=bool)
    for _ in range(most):
        at = int(sides.argmax())
        sides[at] /= 2
        split[at] = True
        whole_axes = max(s[~split].max(initial=0.0), tail)
        radii.append(min(radii[-1], float(np.hypot(np.linalg.norm(sides[split]), whole_axes))))
    return np.array(radii)


def kernel_axes(kernel: KernelLike, x: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """The half-axes (r,), descending, of the unit ball in the Hilbert space of `kernel`.

    The distance between two functions is the root mean square of their difference over the points `x` (n, d), with
    `weights` (n,), same as `nk.theory.mercer`. The half-axes are the square roots of the kernel's eigenvalues.
    """
    return np.sqrt(mercer(kernel, x, weights).values)


def set_entropy(functions: ArrayLike, bits: ArrayLike) -> EntropyBounds:
    """Bounds on the entropy numbers of a finite set, the rows of `functions` (N, D), for `bits` n.

    Each new center is the member farthest from all previous ones. The first m centers cover the set with radius $r_m$,
    an upper bound. These and the next one are at least $r_m$ apart, and any cover by m balls puts two of them in the
    same ball, so $r_m / 2$ is a lower bound.
    """
    functions, n = inputs(functions, "functions"), _whole_bits(bits)
    _, radii = farthest_points(functions, min(2 ** int(n.max()), len(functions)))
    upper = np.array([radii[2**b - 1] if 2**b <= len(radii) else 0.0 for b in n.tolist()])
    return EntropyBounds(n, upper / 2, upper)


def farthest_points(functions: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (count,) of centers, the first nearest to the mean, and the radius (count,) that the first m leave."""
    start = int(np.argmin(np.sum((functions - functions.mean(axis=0)) ** 2, axis=1)))
    chosen, radii = [start], []
    nearest = np.full(len(functions), np.inf)
    while True:
        nearest = np.minimum(nearest, np.sum((functions - functions[chosen[-1]]) ** 2, axis=1))
        far = int(nearest.argmax())
        radii.append(np.sqrt(nearest[far]))
        if len(chosen) == count:
            return np.array(chosen), np.array(radii)
        chosen.append(far)


def set_packing(functions: ArrayLike, radius: float) -> int:
    """The number of members of a finite set that are more than 2 `radius` apart from each other, found greedily.

    Balls of this radius around them are disjoint. Each new member is the farthest from the previous ones, so all others
    lie within 2 `radius` of one of them: balls of twice the radius cover the set.

    **Arguments:** `functions` (N, D), one member per row; `radius` > 0.
    """
    functions, radius = inputs(functions, "functions"), float(positive(radius, "radius"))
    _, radii = farthest_points(functions, len(functions))
    return int(np.sum(radii > 2 * radius)) + 1


def lipschitz_entropy(
    bits: ArrayLike, length: float = 1.0, constant: float = 1.0, dim: int = 1
) -> EntropyBounds:
    r"""The entropy numbers of Lipschitz functions of one or several variables, in the maximum norm.

    The functions satisfy $|f(x) - f(y)| \le C \max_i |x_i - y_i|$ on $[0, \ell]^d$ and $f(0) = 0$. The entropy numbers
    are exact for $d = 1$ and bounded rigorously for $d > 1$,

    $$\epsilon_n = \frac{C\, \ell}{n + 1}, \qquad
    \frac{C\, \ell}{2 m} \le \epsilon_n \le \frac{3\, C\, \ell}{2 k}, \quad k^d \le n + 1, \quad m^d > n.$$

    For $d = 1$, `nk.theory.lipschitz_code` gives the upper bound. Lower bound: cut the interval into n + 1 cells of
    length h. The $2^{n+1}$ functions with slope $\pm C$ on each cell differ pairwise by $2 h C$ somewhere, so no two
    lie in the same ball of radius less than $h C$.

    For $d > 1$, a path through $k^d$ cells of side h visits neighbors one after the other. One bit per cell, up or down
    by $h C$, follows f at the centers within $h C$, and f changes by at most $h C / 2$ inside a cell. Lower bound: each
    of $m^d > n$ cells has a tent of height $h C / 2$, up or down, and two of these functions differ by $h C$.

    **Arguments:** `bits`, n, a number or a vector; `length`, $\ell$ > 0; `constant`, C > 0; `dim`, d, the number of
    variables.
    """
    n, d = _whole_bits(bits), whole(dim, "dim", 1)
    size = float(positive(constant, "constant")) * float(positive(length, "length"))
    if d == 1:
        exact = size / (n + 1.0)
        return EntropyBounds(n, exact, exact)
    inside = np.array([_root(value + 1, d) for value in n.tolist()])
    outside = np.array([_root(value, d) + 1 for value in n.tolist()])
    return EntropyBounds(n, size / (2 * outside), np.minimum(1.5 * size / inside, size))


def _root(value: int, d: int) -> int:
    """The largest integer k with k^d <= value."""
    k = round(value ** (1 / d))
    return k if k**d <= value else k - 1


def ellipsoid_width(axes: ArrayLike, dims: int) -> float:
    r"""The stable width $\delta_n$ of an ellipsoid: exactly its (n + 1)-th half-axis $s_{n+1}$.

    Projecting to the first n coordinates and back is 1-Lipschitz and has error $s_{n+1}$. No continuous pair is
    better: a continuous map of a sphere of radius $s_{n+1}$ in n + 1 dimensions to n dimensions sends some f and -f
    to the same point (Borsuk-Ulam), and any decoding is at least $s_{n+1}$ away from one of the two.

    **Arguments:** `axes`, half-axes in any order; `dims`, n.
    """
    s = np.sort(numeric(axes, "axes").ravel())[::-1]
    n = whole(dims, "dims", 0)
    return float(s[n]) if n < len(s) else 0.0
