"""Random projections that preserve distances, and the half-axes of balls of smooth functions."""

import numpy as np

from ..._base.check import inputs, positive, whole
from ..._base.keys import Key, generator
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..capacity.stable_width import largest_stretch

_MOST_AXES = 100_000


def projection_dims(points: int, eps: float) -> int:
    r"""The smallest integer above $8 \log(n) / \epsilon^2$: enough dimensions to preserve distances.

    **Arguments:** `points`, their number $n$; `eps`, the fraction $\epsilon$ by which distances may shrink, from 0 to
    1.
    """
    return int(np.floor(8 * np.log(whole(points, "points", 1)) / _share(eps) ** 2)) + 1


def random_projection(x: ArrayLike, eps: float, key: Key, tries: int = 50) -> np.ndarray:
    r"""A random projection $A$ (d, m) that preserves all distances between rows of `x` up to a factor $1 - \epsilon$.

    $$(1 - \epsilon) \lVert x_i - x_j\rVert \le \lVert x_i A - x_j A\rVert \le \lVert x_i - x_j\rVert$$

    It exists for $m$ = `projection_dims` at any $d$ (Johnson-Lindenstrauss). Entries are normal, scaled so that no
    distance grows. If $d \le m$, $A$ is the identity.

    **Arguments:** `x` (n, d); `eps` between 0 and 1; `key`; `tries`, the maximum number of matrices to draw.
    """
    x, eps, tries = inputs(x, "x"), _share(eps), whole(tries, "tries", 1)
    dims = projection_dims(len(x), eps)
    rng = generator(key)
    if dims >= x.shape[1]:
        return np.eye(x.shape[1])
    require_fits(8 * 3 * dims * sum(x.shape), f"a projection to {dims} dimensions", "use a larger `eps`")
    for _ in range(tries):
        matrix = rng.normal(size=(x.shape[1], dims))
        matrix /= largest_stretch(x, x @ matrix)
        if largest_stretch(x @ matrix, x) <= 1 / (1 - eps):
            return matrix
    raise ValueError(
        f"none of `tries` = {tries} projections preserved distances within `eps` = {eps:g}: increase `tries`."
    )


def sobolev_axes(count: int, dim: int = 1) -> np.ndarray:
    r"""The `count` largest half-axes of the Sobolev ball $\int (f^2 + |\nabla f|^2) \le 1$ on the unit cube.

    Distances are root mean squares. The axes are $1/\sqrt{1 + \pi^2 |k|^2}$ along products of cosines $\cos(\pi k_i
    x_i)$, with $k_i = 0, 1, \ldots$

    **Arguments:** `count` from 1 to 100,000; `dim`, the dimension of the cube, at most 20.
    """
    count, dim = whole(count, "count", 1, most=_MOST_AXES), whole(dim, "dim", 1, most=20)
    radius = 1
    while True:  # |k|^2 of all k within a growing radius
        squares = np.zeros(1)
        for _ in range(dim):
            squares = (squares[:, None] + np.arange(radius + 1) ** 2).ravel()
            squares = squares[squares <= radius**2]
        if len(squares) >= count:
            return 1 / np.sqrt(1 + np.pi**2 * np.sort(squares)[:count])
        radius = max(radius + 1, int(1.2 * radius))


def _share(eps: float) -> float:
    eps = float(positive(eps, "eps"))
    if not 1e-6 <= eps < 1:
        raise ValueError(f"`eps` must be at least 1e-6 and less than 1; got {eps:g}.")
    return eps
