"""The classical kernels of lengths and angles: linear, polynomial, Gaussian, Laplace, Matern."""

from itertools import combinations_with_replacement
from math import comb, factorial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._base.check import between, finite_result, inputs, positive, real_number, whole
from ..._base.types import Array, ArrayLike, Number
from ..._run.memory import require_fits
from ..base import InvariantKernel

_LARGEST_EXPONENT = 8.0  # of which float32 keeps 1e-6


def _dot(rows1, rows2, gap):
    return rows1["norm"] * rows2["norm"] * (1.0 - gap)


def _squared_distance(rows1, rows2, gap):
    """A sum of positive terms: exact also for neighbors."""
    r1, r2 = rows1["norm"], rows2["norm"]
    return (r1 - r2) ** 2 + 2.0 * r1 * r2 * gap


def _squared_distance_on_host(rows1, rows2, gap: np.ndarray) -> np.ndarray:
    """The same in NumPy, in place of `gap`: a compiled program would spend as long on its arguments and its result."""
    r1, r2 = (np.asarray(rows["norm"]) for rows in (rows1, rows2))
    apart = np.subtract.outer(r1, r2)
    apart *= apart
    gap *= (2.0 * r1)[:, None]
    gap *= r2
    gap += apart
    return gap


def _distance(rows1, rows2, gap):
    square = _squared_distance(rows1, rows2, gap)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


class _OfNorms(InvariantKernel):
    def rows(self, norms: Array) -> dict:
        return {"norm": norms}


class Linear(_OfNorms):
    r"""The linear kernel $k(x, y) = x \cdot y$."""

    def pairs(self, rows1, rows2, gap):
        return (_dot(rows1, rows2, gap),)

    def diagonals(self, rows):
        return (rows["norm"] ** 2,)


class Polynomial(_OfNorms):
    r"""The polynomial kernel $k(x, y) = (x \cdot y + b)^p$, the dot product of `features`.

    **Arguments:** `degree`, p >= 1; `bias`, b >= 0.
    """

    degree: int = eqx.field(static=True, default=2)
    bias: Number = 1.0

    def __check_init__(self):
        whole(self.degree, "degree", 1, most=10_000)
        positive(self.bias, "bias", zero=True)

    def pairs(self, rows1, rows2, gap):
        return ((_dot(rows1, rows2, gap) + self.bias) ** self.degree,)

    def diagonals(self, rows):
        return ((rows["norm"] ** 2 + self.bias) ** self.degree,)

    def features(self, x: ArrayLike) -> np.ndarray:
        r"""The explicit feature map of `x` (n, d): all f monomials of $(x, \sqrt b)$ of this degree, (n, f).

        Each is multiplied by the square root of its multinomial coefficient, so that `features(x) @ features(y).T` is
        $k(x, y)$.
        """
        x = inputs(x)
        require_fits(
            8 * len(x) * comb(x.shape[1] + self.degree, self.degree),
            f"features of degree {self.degree} of {len(x)} points",
            "use the kernel itself",
        )
        padded = np.column_stack([x, np.full(len(x), np.sqrt(self.bias))])
        count = comb(padded.shape[1] + self.degree - 1, self.degree)
        products = np.empty((len(x), count))
        for column, chosen in enumerate(combinations_with_replacement(range(padded.shape[1]), self.degree)):
            repeats = np.bincount(chosen)
            weight = factorial(self.degree) / np.prod([factorial(r) for r in repeats])
            with np.errstate(over="ignore", invalid="ignore"):
                products[:, column] = np.sqrt(weight) * np.prod(padded[:, chosen], axis=1)
        return finite_result(products, "`x` is")


class RBF(_OfNorms):
    r"""The Gaussian (RBF) kernel $k(x, y) = \exp(-\lVert x - y\rVert^2 / (2 \ell^2))$, with $\ell$ = `length` > 0."""

    length: Number = 1.0

    def __check_init__(self):
        between(positive(self.length, "length"), "length", 1e-150, 1e150)  # its square is a number

    def pairs(self, rows1, rows2, gap):
        return (jnp.exp(_squared_distance(rows1, rows2, gap) / (-2.0 * self.length**2)),)

    def pairs_on_host(self, rows1, rows2, gap):
        scale = -2.0 * float(self.length) ** 2
        if gap.dtype != np.float32 or not 1e-37 < -scale < 1e37:
            return None  # in float64 XLA's exponential is the quicker one
        with np.errstate(over="ignore"):
            squares = _squared_distance_on_host(rows1(), rows2(), gap)
            squares /= np.float32(scale)
            return (np.exp(squares, out=squares),)

    def quick_tile(self, side1, side2):
        r"""Tiles whose exponent is one matrix product of `side1` and `side2`.

        It is $(u, -\frac12 u \cdot u, 1) \cdot (v, 1, -\frac12 v \cdot v)$ with inputs $u$, $v$ divided by the length
        scale. Used in float32, where no $u \cdot u$ is so large that its rounding would matter: entries have six
        digits.
        """
        if side1.unit is None or side1.unit.dtype != np.float32:
            return None
        left, right = (
            _exponent_factor(side, float(self.length), own) for side, own in ((side1, 0), (side2, 1))
        )
        if left is None or right is None:
            return None

        def tile(i: slice, j: slice) -> np.ndarray:
            products = left[i] @ right[j].T
            return np.exp(products, out=products)

        return tile

    def diagonals(self, rows):
        return (0.0 * rows["norm"] + 1.0,)


def _exponent_factor(side, length: float, second: int) -> np.ndarray | None:
    """The rows (u, -u.u/2, 1), or (u, 1, -u.u/2) of the `second` side; None if some u.u/2 is large."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = side.unit * (np.asarray(side.rows["norm"], np.float64) / length).astype(np.float32)[:, None]
        half = 0.5 * np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
    if not half.max() <= _LARGEST_EXPONENT:
        return None
    sides = np.ones((len(scaled), scaled.shape[1] + 2), np.float32)
    sides[:, :-2] = scaled
    sides[:, second - 2] = -half
    return sides


class Laplace(_OfNorms):
    r"""The Laplace kernel $k(x, y) = \exp(-\lVert x - y\rVert_2 / \ell)$, with $\ell$ = `length` > 0."""

    length: Number = 1.0

    def __check_init__(self):
        positive(self.length, "length")

    def pairs(self, rows1, rows2, gap):
        return (jnp.exp(-_distance(rows1, rows2, gap) / self.length),)

    def diagonals(self, rows):
        return (0.0 * rows["norm"] + 1.0,)


class Matern(_OfNorms):
    r"""The Matérn kernel $p_\nu(r)\, e^{-r}$ with $r = \sqrt{2 \nu}\, \lVert x - y\rVert / \ell$.

    $p_{1/2} = 1$ (the Laplace kernel), $p_{3/2} = 1 + r$ and $p_{5/2} = 1 + r + r^2/3$. Sample paths of its Gaussian
    process have $\nu - 1/2$ derivatives.

    **Arguments:** `length`, $\ell$ > 0; `nu`, the smoothness 0.5, 1.5 or 2.5.
    """

    length: Number = 1.0
    nu: float = eqx.field(static=True, default=1.5)

    def __check_init__(self):
        between(positive(self.length, "length"), "length", 1e-150, 1e150)
        if real_number(self.nu, "nu") not in (0.5, 1.5, 2.5):
            raise ValueError(f"`nu` must be 0.5, 1.5 or 2.5; got {self.nu}.")

    def pairs(self, rows1, rows2, gap):
        r = (2 * self.nu) ** 0.5 * (_distance(rows1, rows2, gap) / self.length)
        r = jnp.minimum(r, 1e3)  # where exp(-r) is 0, and r^2 a number
        polynomial = 1.0 if self.nu == 0.5 else 1.0 + r if self.nu == 1.5 else 1.0 + r + r**2 / 3
        return (polynomial * jnp.exp(-r),)

    def diagonals(self, rows):
        return (0.0 * rows["norm"] + 1.0,)
