"""A random walk whose steps depend on where it is: noise alone pushes it to where noise is small."""

import numpy as np

from ..._base.check import plain_array
from ..._base.types import ArrayLike
from ..._run.memory import require_fits


def walk_density(steps: ArrayLike) -> np.ndarray:
    """The stationary probabilities (n,) of a random walk on a circle of n sites that jumps by `steps[i]` up or down
    from site i.

    The step $s$ is chosen at the current site (Itô), so the density is proportional to $1/s^2$ for many sites: with
    steps 1 on one half and 2 on the other, the walk spends 4/5 of the time on the slow half.

    **Arguments:** `steps` (n,), integers >= 1, such that every site can be reached from every other.
    """
    steps = plain_array(steps, "steps")
    if steps.ndim != 1 or len(steps) < 3 or steps.dtype.kind not in "iu" or steps.min() < 1:
        raise ValueError("`steps` must be a vector of at least 3 integers, each at least 1.")
    n = len(steps)
    require_fits(16 * n**2, f"the transitions between {n} sites", "use fewer sites")
    sites = np.arange(n)
    flow = np.zeros((n, n))
    for sign in (1, -1):
        np.add.at(flow, ((sites + sign * steps) % n, sites), 0.5)
    balance = flow - np.eye(n)
    if np.linalg.matrix_rank(balance) < n - 1:
        raise ValueError(
            "`steps` do not connect all sites of the circle, so the stationary distribution is not unique."
        )
    balance[-1] = 1.0
    return np.linalg.solve(balance, np.eye(n)[-1])
