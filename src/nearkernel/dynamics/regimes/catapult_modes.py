r"""Large steps on one point for any quadratic model: outputs and tangent kernel close in the modes of its curvature.

Near initialization $z = z_0 + g \cdot d + \frac12\, d \cdot \Psi d$ for a change $d$ of the parameters. In the
eigenbasis of $\Psi$, with eigenvalues $c_i$ and slopes $g_i$ of the output, a step of gradient descent on
$\frac12 (z - y)^2$ is, with $r = z - y$,

$$g_i' = g_i (1 - \eta r c_i), \qquad z' = z - \eta r \sum_i g_i^2 + \tfrac12 \eta^2 r^2 \sum_i c_i g_i^2, \qquad
\Theta = \sum_i g_i^2 .$$

A two-layer ReLU network has only $c = \pm\lVert x\rVert/\sqrt{m d}$, and $z$ follows from the two halves of its kernel:
the two numbers of `nk.theory.catapult`. Other activations, and random $\Psi$, have more modes, and no more than
parameters.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..._base.check import finite_number, inputs, numeric, positive, whole
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params
from ...models.params import checked_params, root_factors, training_factors
from .catapult import CatapultPath


class ModesResult(NamedTuple):
    """An output at one point to second order: `z`, `slopes` (k,) and `curvatures` (k,) along eigenvectors."""

    z: float
    slopes: np.ndarray
    curvatures: np.ndarray

    @property
    def ntk(self) -> float:
        r"""The tangent kernel, $\sum_i g_i^2$."""
        return float(self.slopes @ self.slopes)


@in_float64
def output_modes(
    model: AbstractModel, params: Params, x: ArrayLike, *, lr_factors: Params | float | None = None
) -> ModesResult:
    """Slopes and curvatures of a model's output at one point, in the eigenbasis of its second derivative.

    **Arguments:** `model` with one output and at most a few thousand parameters; `params`; `x` (1, d); `lr_factors`,
    same as `nk.simulate`: derivatives are by the parameters divided by the roots of their factors.
    """
    params = checked_params(model, params)
    x = inputs(x, "x", model.in_shape)
    if len(x) != 1:
        raise ValueError(f"`x` must be one point, (1, d); got {len(x)} points.")
    flat, back = ravel_pytree(jax.tree.map(jnp.asarray, params))
    require_fits(4 * 8 * len(flat) ** 2, f"the second derivative by {len(flat)} parameters", "use fewer")
    roots = root_factors(training_factors(model, params, lr_factors), params)
    output = lambda step: model(back(flat + (step if roots is None else roots * step)), x)[0]
    still = jnp.zeros_like(flat)
    z = np.asarray(output(still))
    if z.shape != (1,):
        raise ValueError(f"`model` must have one output; got {z.shape[0]}.")
    slope = np.asarray(jax.grad(lambda step: output(step)[0])(still))
    curvatures, vectors = np.linalg.eigh(np.asarray(jax.hessian(lambda step: output(step)[0])(still)))
    return ModesResult(float(z[0]), vectors.T @ slope, curvatures)


def mode_catapult(modes: ModesResult, y: float, lr: ArrayLike, steps: int) -> CatapultPath:
    r"""Gradient descent of a quadratic model on one point, exactly, from its modes.

    With the residual $r = z - y$, slopes $g_i$ and curvatures $c_i$, one step is

    $$g_i' = g_i (1 - \eta r c_i), \qquad
    z' = z - \eta r \sum_i g_i^2 + \tfrac12 \eta^2 r^2 \sum_i c_i g_i^2 .$$

    **Arguments:** `modes`, a `ModesResult` from `nk.theory.output_modes` or built by hand; `y`, the target; `lr` > 0,
    one value or an array; `steps`.

    **Returns:** z and ntk at steps 0, 1, ..., (steps + 1, ...); infinite once diverged.
    """
    if not isinstance(modes, ModesResult):
        raise TypeError(f"`modes` must be an nk.results.ModesResult; got {type(modes).__name__}.")
    slopes, c = numeric(modes.slopes, "modes"), numeric(modes.curvatures, "modes")
    if slopes.ndim != 1 or slopes.shape != c.shape:
        raise ValueError(
            f"`modes` must have the same number of slopes and curvatures; got shapes {slopes.shape} and {c.shape}."
        )
    y, lr = float(finite_number(y, "y")), numeric(lr, "lr")
    positive(float(lr.min(initial=np.inf)), "lr")
    steps = whole(steps, "steps", 0)
    g = np.broadcast_to(slopes, (*lr.shape, len(slopes))).copy()
    path = np.empty((2, steps + 1, *lr.shape))
    path[0, 0] = modes.z
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps + 1):
            square = g**2
            path[1, t] = square.sum(axis=-1)
            if t < steps:
                move = lr * (path[0, t] - y)
                path[0, t + 1] = path[0, t] - move * path[1, t] + 0.5 * move**2 * (square @ c)
                g *= 1 - move[..., None] * c
    path[:, ~np.isfinite(path).all(axis=0)] = np.inf
    return CatapultPath(path[0], path[1])
