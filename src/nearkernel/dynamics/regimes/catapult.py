"""Large steps in closed form: the output and the tangent kernel of a quadratic model on one point."""

from typing import NamedTuple

import numpy as np

from ..._base.check import numeric, whole
from ..._base.types import ArrayLike


class CatapultPath(NamedTuple):
    """Outputs `z` and tangent kernels `ntk` at steps 0, 1, ..., each (steps + 1, ...); infinite after divergence."""

    z: np.ndarray
    ntk: np.ndarray


def catapult(
    z: ArrayLike, ntk: ArrayLike, y: ArrayLike, curvature: ArrayLike, lr: ArrayLike, steps: int
) -> CatapultPath:
    r"""Gradient descent of a two-layer ReLU network on one data point, to second order in its parameters.

    With $r = z - y$ and the loss $r^2/2$,

    $$r' = r\,(1 - \eta\, \Theta + c\, \eta^2 z r), \qquad \Theta' = \Theta - 4 \eta\, c\, z r + \eta^2 c\, \Theta r^2$$

    holds exactly for $z = \sum_i v_i\, \text{relu}(u_i x / \sqrt d) / \sqrt m$ expanded around its initialization,
    where $c = |x|^2 / (m d)$. The network itself follows these equations as long as no neuron crosses its kink.

    **Arguments:** `z`, output at initialization; `ntk` > 0, tangent kernel $\Theta$ at initialization; `y`, target;
    `curvature`, $c \ge 0$ (0 is a linear model; multiply it by $C_W^2$ for an `nk.MLP`); `lr`, $\eta$ > 0;
    `steps`. All but `steps` may be arrays, which are broadcast against each other, e.g. for a sweep over `lr`.

    **Returns:** a `CatapultPath`: arrays of z and ntk at steps 0, ..., `steps`; infinite after divergence.
    """
    named = dict(z=z, ntk=ntk, y=y, curvature=curvature, lr=lr)
    arrays = {name: numeric(value, name) for name, value in named.items()}
    for name, strict in (("ntk", True), ("lr", True), ("curvature", False)):
        low = arrays[name].min(initial=np.inf)
        if low < 0 or (strict and low == 0):
            raise ValueError(f"`{name}` must be {'greater than' if strict else 'at least'} 0; got {low:g}.")
    steps = whole(steps, "steps", 0)
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"`catapult` needs arrays that broadcast against each other; got {shapes}."
        ) from None
    y, c, lr = arrays["y"], arrays["curvature"], arrays["lr"]
    path = np.empty((2, steps + 1, *shape))
    path[0, 0], path[1, 0] = arrays["z"], arrays["ntk"]
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            out, kernel = path[:, t]
            r = out - y
            path[0, t + 1] = y + r * (1 - lr * kernel + c * lr**2 * out * r)
            path[1, t + 1] = kernel - 4 * lr * c * out * r + lr**2 * c * kernel * r**2
    path[:, ~np.isfinite(path).all(axis=0)] = np.inf
    return CatapultPath(path[0], path[1])
