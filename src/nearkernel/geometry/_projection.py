"""Random projections that keep distances, and the half-axes of balls of smooth functions."""

from typing import Any

import numpy as np

from .._check import inputs, positive, whole
from .._keys import Key, generator
from .._memory import require_fits
from ._stable_width import largest_stretch


def projection_dims(points: int, eps: float) -> int:
    """The least whole number above 8 log(points) / eps^2: dimensions in which `points` points keep their distances."""
    return int(np.floor(8 * np.log(whole(points, "points", 1)) / _share(eps) ** 2)) + 1


def random_projection(x: Any, eps: float, key: Key, tries: int = 50) -> np.ndarray:
    """A matrix A (d, m) with (1 - eps) |x_i - x_j| <= |x_i A - x_j A| <= |x_i - x_j| for all rows of `x`.

    They exist (Johnson and Lindenstrauss) for m = `projection_dims`, whatever d. Entries are normal, and scaled
    so that no distance grows. Where d is not larger than m, A is the identity.

    **Arguments:** `x` (n, d); `eps` between 0 and 1; `key`; `tries`, how many matrices may be drawn until one is good.
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
    raise ValueError(f"none of `tries` = {tries} projections kept distances to `eps` = {eps:g}: draw more.")


def sobolev_axes(count: int, dim: int = 1) -> np.ndarray:
    r"""The `count` largest half-axes of the functions on the unit cube whose integral of f^2 + |grad f|^2 is at most 1.

    Distances are root mean squares. The axes are 1/sqrt(1 + pi^2 |k|^2) along products of cosines cos(pi k_i x_i), with
    k_i = 0, 1, ...

    **Arguments:** `count` >= 1; `dim`, the dimension of the cube.
    """
    count, dim = whole(count, "count", 1, most=10**7), whole(dim, "dim", 1, most=20)
    most = 1  # until the cube of k holds a ball with `count` points
    while True:
        require_fits(
            8 * 2 * (most + 1) ** dim, f"`count` = {count} axes in {dim} dimensions", "ask for fewer"
        )
        squares = np.zeros(1)
        for _ in range(dim):
            squares = (squares[:, None] + np.arange(most + 1) ** 2).ravel()
        inside = np.sort(squares[squares <= most**2])
        if len(inside) >= count:
            return 1 / np.sqrt(1 + np.pi**2 * inside[:count])
        most *= 2


def _share(eps: Any) -> float:
    eps = float(positive(eps, "eps"))
    if eps >= 1:
        raise ValueError(f"`eps` must be less than 1, which keeps no distance; got {eps:g}.")
    return eps
