r"""Eigenvalues of sample covariances: the Marchenko-Pastur law, and comparisons with it.

Let $S = \frac1M X X^\top$ with $X$ (N, M), independent entries of variance $v$, the ratio $g = N/M$ fixed, and
$N \to \infty$. Eigenvalues have the density

$$\frac{\sqrt{(x_+ - x)(x - x_-)}}{2 \pi v g x} \quad \text{between} \quad x_\pm = v\, (1 \pm \sqrt g)^2,$$

and, if $g > 1$, a fraction $1 - 1/g$ is zero: $N$ points in $M < N$ dimensions span only $M$ of them.
"""

import math
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
import scipy.linalg

from ..._base.check import finite_number, finite_result, inputs, numeric, plain_array, positive, whole
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..._run.memory import require_fits

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Comparison(Result, eqx.Module):
    """Eigenvalues compared with a limiting distribution.

    **Fields:** `eigenvalues` (N,), ascending; `law`; `distance`, the largest difference of the distribution functions
    (zeros belong to the law's atom, if it has one); `below` and `above`, the number of eigenvalues outside the edges
    by more than noise explains at this N; `moments` (4,), means of powers 1 to 4, and `expected` (4,), their values
    under the law.
    """

    eigenvalues: np.ndarray
    law: "MarchenkoPasturResult"
    distance: float
    below: int
    above: int
    moments: np.ndarray
    expected: np.ndarray

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the histogram of eigenvalues and the density of the law on Matplotlib's `axes`."""
        from ..._plots.spectra import draw_density

        return draw_density(self.law.density, self.law.edges, axes, eigenvalues=self.eigenvalues)


class MarchenkoPasturResult(Result, eqx.Module):
    r"""The limiting distribution of the eigenvalues of `shift` $+\, X X^\top / M$.

    **Fields:** `ratio` $g = N/M$; `variance` $v$ of the entries of $X$; `shift`, a multiple of the identity that is
    added.
    """

    ratio: float
    variance: float = 1.0
    shift: float = 0.0

    @property
    def edges(self) -> tuple[float, float]:
        """The edges of the continuous part."""
        root = math.sqrt(self.ratio)
        return self.shift + self.variance * (1 - root) ** 2, self.shift + self.variance * (1 + root) ** 2

    @property
    def atom(self) -> float:
        """The fraction of eigenvalues equal to `shift`."""
        return max(0.0, 1 - 1 / self.ratio)

    def density(self, x: ArrayLike) -> np.ndarray:
        """The density of the continuous part at `x`; its integral is 1 - `atom`."""
        x = numeric(x, "x") - self.shift
        low, high = (edge - self.shift for edge in self.edges)
        inside = (x > low) & (x < high) & (x > 0)
        safe = np.where(inside, x, 1.0)
        root = np.sqrt(np.maximum((high - x) * (x - low), 0.0))
        return np.where(inside, root / (2 * np.pi * self.variance * self.ratio * safe), 0.0)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """The fraction of eigenvalues up to `x`, including the atom."""
        x = (numeric(x, "x") - self.shift) / self.variance
        r = math.sqrt(self.ratio)
        # On the circle x = 1 + g - 2 sqrt(g) cos(angle) the density is (2/pi) sin(angle)^2 / x.
        angle = np.arccos(np.clip((1 + self.ratio - x) / (2 * r), -1.0, 1.0))
        if r < 1e-3:  # the closed form has lost its digits there
            nodes, weights = np.polynomial.legendre.leggauss(40)
            t = angle[..., None] * (nodes + 1) / 2
            part = angle / 2 * (np.sin(t) ** 2 / (1 + self.ratio - 2 * r * np.cos(t)) @ weights)
        else:
            turn = np.arctan2((1 + r) * np.sin(angle / 2), abs(1 - r) * np.cos(angle / 2))
            part = (
                np.sin(angle) / (2 * r)
                + (1 + r * r) * angle / (4 * r * r)
                - abs(1 - r * r) * turn / (2 * r * r)
            )
        return np.where(x >= 0, self.atom, 0.0) + 2 / np.pi * part

    def moment(self, k: int) -> float:
        r"""The mean of the power `k`; without shift $v^k \sum_j g^j \binom{k}{j} \binom{k-1}{j} / (j + 1)$."""
        k = whole(k, "k", 0, most=1000)
        pure = [1.0] + [
            self.variance**p
            * sum(self.ratio**j * math.comb(p, j) * math.comb(p - 1, j) / (j + 1) for j in range(p))
            for p in range(1, k + 1)
        ]
        total = sum(math.comb(k, p) * self.shift ** (k - p) * pure[p] for p in range(k + 1))
        return float(finite_result(total, "`k` is"))

    def stieltjes(self, z: Any) -> np.ndarray:
        """The Stieltjes transform $m(z)$, the mean of $1 / (x - z)$, for complex `z` outside the spectrum."""
        z = plain_array(z, "z")
        if z.dtype.kind not in "iufc" or not np.isfinite(z).all():
            raise ValueError("`z` must contain finite complex numbers outside the spectrum.")
        z = z.astype(np.complex128) - self.shift
        low, high = (edge - self.shift for edge in self.edges)
        root = np.sqrt(z - low) * np.sqrt(z - high)
        return (self.variance * (1 - self.ratio) - z + root) / (2 * self.ratio * self.variance * z)

    def sample(self, rows: int, key: Key) -> np.ndarray:
        """Eigenvalues, ascending, of one normal random matrix of `rows` rows and rows/ratio columns, drawn with `key`.

        It draws the equivalent bidiagonal matrix of independent chi variables; the full matrix is never drawn.
        """
        rows = whole(rows, "rows", 1)
        require_fits(
            8 * 8 * max(rows, round(rows / self.ratio)), f"`rows` = {rows} eigenvalues", "draw fewer"
        )
        columns = max(1, round(rows / self.ratio))
        few, many = sorted((rows, columns))
        rng = generator(key)
        main = np.sqrt(rng.chisquare(many - np.arange(few)))
        side = np.sqrt(rng.chisquare(np.arange(few - 1, 0, -1)))
        diagonal = main**2 + np.append(0.0, side**2)
        values = scipy.linalg.eigh_tridiagonal(diagonal, main[:-1] * side, eigvals_only=True)
        values = np.concatenate([np.zeros(rows - few), np.maximum(values, 0.0)])
        return self.shift + self.variance / columns * values

    def compare(self, eigenvalues: Any) -> Comparison:
        """Compares given `eigenvalues` (N,) with this law."""
        found = np.sort(numeric(eigenvalues, "eigenvalues"), axis=None if np.ndim(eigenvalues) == 0 else -1)
        if found.ndim != 1 or not len(found):
            raise ValueError(f"`eigenvalues` must have shape (n,), n at least 1; got {found.shape}.")
        n = len(found)
        # Zeros come out of a decomposition as rounding: they belong to the atom.
        zero = np.abs(found - self.shift) < 1e-10 * max(np.abs(found).max(), abs(self.shift), 1e-300)
        found = np.where(zero, self.shift, found)
        at, before = self.cdf(found), self.cdf(np.nextafter(found, -np.inf))
        steps = (
            np.searchsorted(found, found, side="right") / n,
            np.searchsorted(found, found, side="left") / n,
        )
        distance = max(np.abs(steps[0] - at).max(), np.abs(steps[1] - before).max())
        low, high = self.edges
        # The Tracy-Widom law: extreme eigenvalues of noise are beyond 4 of these units in one draw of a thousand.
        rows, columns = math.sqrt(n), math.sqrt(n / self.ratio)
        unit = 4 * self.variance / columns**2
        above = unit * (columns + rows) * (1 / columns + 1 / rows) ** (1 / 3)
        under = unit * abs(columns - rows) * abs(1 / columns - 1 / rows) ** (1 / 3)
        below = np.sum((found < low - under) & ~(zero & (self.atom > 0)))
        powers = np.array([np.mean(found**k) for k in range(1, 5)])
        expected = np.array([self.moment(k) for k in range(1, 5)])
        above = np.sum(found > high + above)
        return Comparison(found, self, float(distance), int(below), int(above), powers, expected)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the density on Matplotlib's `axes`."""
        from ..._plots.spectra import draw_density

        return draw_density(self.density, self.edges, axes)


def marchenko_pastur(ratio: float, variance: float = 1.0, shift: float = 0.0) -> MarchenkoPasturResult:
    r"""The Marchenko-Pastur law: eigenvalues of `shift` $+\, X X^\top / M$ for large X (N, M) with independent
    entries.

    **Arguments:** `ratio` $N/M > 0$; `variance` of the entries; `shift`, added to all eigenvalues.

    **Returns:** a `MarchenkoPasturResult`, with `density`, `edges`, `atom`, `cdf`, `moment`, `stieltjes`; `sample`
    draws the eigenvalues of a random matrix, and `compare` compares given eigenvalues with the law.
    """
    ratio, variance = positive(ratio, "ratio"), positive(variance, "variance")
    return MarchenkoPasturResult(float(ratio), float(variance), float(finite_number(shift, "shift")))


def gram_spectrum(x: ArrayLike, variance: float | None = None) -> Comparison:
    r"""Eigenvalues of $X X^\top / M$ of given data or features `x` (N, M), compared with the law of pure noise.

    **Arguments:** `x` (N, M), one point per row: center and scale its columns first, otherwise the mean dominates the
    largest eigenvalue; `variance` of the entries, by default the mean of their squares.
    """
    x = inputs(x, "x")
    if variance is None:
        variance = float(np.mean(x * x))
        if variance == 0:
            raise ValueError("`x` is 0 everywhere, so there is no spectrum to compare.")
    return marchenko_pastur(x.shape[0] / x.shape[1], variance).compare(_gram_eigenvalues(x))


def _gram_eigenvalues(x: np.ndarray) -> np.ndarray:
    """(N,), ascending: squares of singular values, and zeros."""
    with one_thread(max(x.shape)):
        values = np.linalg.svd(x, compute_uv=False) ** 2 / x.shape[1]
    return np.sort(np.concatenate([np.zeros(max(0, len(x) - len(values))), values]))
