r"""The regularity of functions, and the error of reconstructing them from their values at a few points.

- `lipschitz_bounds`: a network's Lipschitz constant lies between the largest gradient found and the product of its
  layers' norms.
- `sampling_width`: given a function $f$ in the unit ball of a kernel's space at $m$ points, the best reconstruction is
  off by at most the largest $\lVert f\rVert$ with $f = 0$ at these points, the root of the largest eigenvalue of the
  posterior covariance.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs
from ..._base.types import ArrayLike, Params
from ..._run.precision import in_float64
from ...activations.base import AbstractActivation
from ...kernels.function_space.positivity import KernelLike, cross, positive_gram
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params

_GRID = np.linspace(-30.0, 30.0, 60_001)


class LipschitzBoundsResult(NamedTuple):
    """Bounds on a Lipschitz constant: `lower`, the largest gradient found, and `upper`, a product of norms."""

    lower: float
    upper: float


@in_float64
def lipschitz_bounds(net: AbstractNetwork, params: Params, x: ArrayLike) -> LipschitzBoundsResult:
    """Bounds on the Lipschitz constant of a network, with Euclidean norms of inputs and outputs.

    `lower`: the largest norm of the Jacobian at the points `x`. `upper`: the product of the spectral norms of the
    weight matrices and of the largest slopes of the activations, which holds everywhere.

    **Arguments:** `net`, an `nk.MLP`; `params`; `x` (n, d), where gradients are taken.
    """
    chain = chain_of(net, "lipschitz_bounds", mean_field=True)
    params = checked_params(net, params)
    x = chain.inputs(x)
    upper = 1.0
    for stage, entry in zip(chain.stages, chain.entries(params), strict=True):
        upper *= float(np.linalg.norm(stage.affine(entry)[0], 2))
    for activation in chain.activations:
        upper *= _largest_slope(activation)
    jacobian = np.asarray(_jacobians(net, jax.tree.map(jnp.asarray, params), jnp.asarray(x)))
    return LipschitzBoundsResult(float(np.linalg.norm(jacobian, 2, axis=(1, 2)).max()), upper)


@jax.jit
def _jacobians(net, params, x):
    return jax.vmap(jax.jacrev(lambda row: net(params, row[None])[0]))(x)


def _largest_slope(activation: AbstractActivation) -> float:
    slopes = jax.vmap(jax.grad(lambda z: activation(z)))(jnp.asarray(_GRID))
    return float(jnp.abs(slopes).max())


@in_float64
def sampling_width(kernel: KernelLike, seen: ArrayLike, x: ArrayLike) -> float:
    """The worst-case error of the best reconstruction of functions in the kernel's unit ball from values at `seen`.

    Errors are root mean squares over the points `x`. The best method is kernel interpolation. No other method does
    better, because a function f that vanishes at all these points cannot be told from -f. `nk.theory.ellipsoid_width`
    of `nk.theory.kernel_axes(kernel, x)` is the error with any m numbers about f instead of m values.

    **Arguments:** `kernel`; `seen` (m, d); `x` (n, d), a sample of the input distribution.
    """
    x = inputs(x, "x")
    seen = inputs(seen, "seen", x.shape[1])
    values, vectors = np.linalg.eigh(positive_gram(kernel, seen))
    kept = values > len(seen) * 1e-15 * values[-1]
    known = (cross(kernel, x, seen) @ vectors[:, kept]) / np.sqrt(values[kept])
    left = (positive_gram(kernel, x) - known @ known.T) / len(x)
    return float(np.sqrt(max(np.linalg.eigvalsh(left)[-1], 0.0)))
