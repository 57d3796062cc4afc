r"""Stable codes of functions by a few numbers: a random projection and a Lipschitz extension.

A pair $a: K \to \mathbb{R}^m$, $M: \mathbb{R}^m \to X$ is stable if both are 2-Lipschitz; the stable width
$\delta_m(K)$ is the least error $\sup \lVert f - M(a(f))\rVert$ of stable pairs. It is at most $3\, \epsilon_n$ for
$m = 32 n$. The proof is a construction: cover $K$ by $2^n$ balls of radius $r$; project at random, which leaves
distances within a factor of 2; send the projected centers back, and extend this map, 2-Lipschitz on them, to
everywhere. Then with the nearest center $f_i$

$$\lVert f - M(a(f))\rVert \le \lVert f - f_i\rVert + \lVert M(a(f_i)) - M(a(f))\rVert \le r + 2 r.$$

A projection that preserves distances between centers need not be 1-Lipschitz on all of $K$, which the last step uses:
here it is scaled until it is, on all pairs of the set.
"""

import equinox as eqx
import numpy as np

from ..._base.check import inputs, whole
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..._run.memory import require_fits
from .metric_entropy import farthest_points

_STEPS, _GAP = 20_000, 1e-11


class LipschitzExtension(Result, eqx.Module):
    r"""Extends given values at finitely many points to all points, with the same Lipschitz constant (Kirszbraun).

    At $x$ it is $\sum_i l_i f_i$, where the weights $l \ge 0$, $\sum_i l_i = 1$ minimize

    $$2 \sum_i l_i \lVert z_i - x\rVert^2 - \mathrm{Var}_l(z) - \mathrm{Var}_l(f) / c^2,$$

    with $c$ the Lipschitz constant of $z_i \to f_i$. This is convex, and at $x = z_i$ all weight is on $i$.

    **Fields:** `sources` z (k, m); `values` f (k, D); `constant` c.
    """

    sources: np.ndarray
    values: np.ndarray
    constant: float

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The extension at points `x` (q, m): (q, D)."""
        with one_thread():
            return self.weights(inputs(x, "x", self.sources.shape[1])) @ self.values

    def weights(self, x: np.ndarray) -> np.ndarray:
        """The weights (q, k) at the points `x` (q, d), by accelerated projected gradients with restarts."""
        away = squared_distances(x, self.sources)
        unit = max(float(away.max()), 1e-300)
        pairs = squared_distances(self.sources, self.sources)
        pairs = (pairs + squared_distances(self.values, self.values) / self.constant**2) / unit
        linear = 2 * away / unit
        k = len(pairs)
        centered = pairs - pairs.mean(0) - pairs.mean(1)[:, None] + pairs.mean()
        rate = 1 / max(-float(np.linalg.eigvalsh(centered)[0]), 1e-12) if k > 1 else 1.0
        best = np.eye(k)[away.argmin(axis=1)]
        ahead, momentum = best.copy(), np.ones(len(x))
        active = np.arange(len(x))
        for step in range(_STEPS):
            slope = linear[active] - ahead[active] @ pairs
            moved = _to_simplex(ahead[active] - rate * slope)
            change = moved - best[active]
            overshot = np.einsum("ij,ij->i", ahead[active] - moved, change) > 0
            now = np.where(overshot, 1.0, momentum[active])
            later = (1 + np.sqrt(1 + 4 * now**2)) / 2
            best[active] = moved
            ahead[active] = moved + np.where(overshot, 0.0, (now - 1) / later)[:, None] * change
            momentum[active] = later
            if step % 20 == 0:
                slope = linear[active] - best[active] @ pairs
                gap = np.einsum("ij,ij->i", slope, best[active]) - slope.min(axis=1)
                active = active[gap > _GAP]
                if not len(active):
                    break
        return best


class StablePairResult(Result, eqx.Module):
    r"""A random projection of a finite set, and the Lipschitz extension that inverts it.

    **Fields:** `bits` n; `dims` m; `projection` (D, m), scaled to be 1-Lipschitz on the set; `decoder`; `radius` r of
    the cover by $2^n$ balls, so that $r/2 \le \epsilon_n \le r$; `error`, the largest $\lVert f - M(a(f))\rVert$;
    `encoder_constant` and `decoder_constant`, Lipschitz constants measured over all pairs of the set and of its codes.
    """

    bits: int = eqx.field(static=True)
    dims: int = eqx.field(static=True)
    projection: np.ndarray
    decoder: LipschitzExtension
    radius: float
    error: float
    encoder_constant: float
    decoder_constant: float

    @property
    def stable(self) -> bool:
        """Whether both maps are 2-Lipschitz, as measured."""
        return max(self.encoder_constant, self.decoder_constant) <= 2 * (1 + 1e-6)

    @property
    def certain(self) -> bool:
        r"""Whether `error` is at most $3 \epsilon_n$ without knowing $\epsilon_n$: it is at most $\frac32 r$."""
        return self.error <= 1.5 * self.radius

    def encode(self, functions: ArrayLike) -> np.ndarray:
        """The codes (q, m) of `functions` (q, D)."""
        return inputs(functions, "functions", len(self.projection)) @ self.projection

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """The functions (q, D) of `codes` (q, m)."""
        return self.decoder(codes)


def stable_pair(functions: ArrayLike, bits: int, key: Key, tries: int = 20) -> StablePairResult:
    r"""A pair of maps that proves $\delta_{32 n} \le 3\, \epsilon_n$ on a finite set, with its measured error.

    **Arguments:** `functions` (N, D), one per row, in a Euclidean space; `bits` n >= 1; `key`, for the projection;
    `tries`, the maximum number of projections to draw until one preserves distances within a factor of 2.
    """
    functions, n = inputs(functions, "functions"), whole(bits, "bits", 1, most=1000)
    require_fits(
        8 * 3 * 32 * n * sum(functions.shape),
        f"a projection to 32 `bits` = {32 * n} numbers",
        "use fewer `bits`",
    )
    chosen, radii = farthest_points(functions, min(2**n, len(functions)))
    chosen = chosen[: max(1, int(np.sum(np.append(np.inf, radii[:-1]) > 0)))]  # no center twice
    centers, dims = functions[chosen], 32 * n
    rng = generator(key)
    for _ in range(whole(tries, "tries", 1)):
        projection = rng.normal(size=(functions.shape[1], dims)) / np.sqrt(dims)
        projection /= largest_stretch(functions, functions @ projection)
        constant = largest_stretch(centers @ projection, centers)
        if constant <= 2:
            break
    else:
        raise ValueError(
            f"none of `tries` = {tries} projections preserved distances within a factor of 2: increase `tries`."
        )
    decoder = LipschitzExtension(centers @ projection, centers, constant)
    codes = functions @ projection
    back = decoder(codes)
    error = float(np.sqrt(np.max(np.sum((functions - back) ** 2, axis=1))))
    encoder_constant = largest_stretch(functions, codes)
    return StablePairResult(
        n, dims, projection, decoder, float(radii[-1]), error, encoder_constant, largest_stretch(codes, back)
    )


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0.0)


def largest_stretch(x: np.ndarray, y: np.ndarray) -> float:
    """The largest |y_i - y_j| / |x_i - x_j| over pairs that differ, 1 if there are none."""
    before, after = squared_distances(x, x), squared_distances(y, y)
    # Below this the difference is rounding.
    apart = before > 1e-13 * max(float(np.sum(x * x, axis=1).max()), 1e-300)
    return float(np.sqrt(np.max(after[apart] / before[apart]))) if apart.any() else 1.0


def _to_simplex(rows: np.ndarray) -> np.ndarray:
    """Each row (k,) to the nearest point with entries >= 0 that sum to 1."""
    rows = rows - rows.max(axis=1, keepdims=True)  # changes nothing but rounding
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    kept = np.sum(falling > excess, axis=1)
    return np.maximum(rows - np.take_along_axis(excess, kept[:, None] - 1, axis=1), 0.0)
