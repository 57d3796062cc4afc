"""How far training moved a network: its weights, its features, its tangent kernel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.empirical.ntk import EmpiricalNTK
from ...models.base import AbstractModel, Params
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params


class MovementResult(Result, eqx.Module):
    r"""How far training moved the parameters, features and kernel, relative to their size at initialization.

    **Fields:** `weights`, $\lVert\theta - \theta_0\rVert / \lVert\theta_0\rVert$; `correlation`, the cosine of the
    angle between $\theta$ and $\theta_0$; `features`, the change of the last hidden layer's activations (NaN unless
    the model is a network whose last layer is dense); `kernel`, the change of the tangent kernel matrix in the
    Frobenius norm; `ntk_start` and `ntk_end`, its largest eigenvalues.
    """

    weights: float
    correlation: float
    features: float
    kernel: float
    ntk_start: float
    ntk_end: float


@in_float64
def movement(
    model: AbstractModel,
    start: Params,
    end: Params,
    x: ArrayLike,
    *,
    lr_factors: Params | float | None = None,
) -> MovementResult:
    """Measures how far parameters move from `start` to `end`, and how features and kernel at `x` (n, d) change.

    **Arguments:** `model`; `start` and `end`, two trees of parameters; `x`; `lr_factors` of the tangent kernel, same
    as `nk.simulate`: by default the model's own.
    """
    start, end = checked_params(model, start, "start"), checked_params(model, end, "end")
    x = inputs(x, "x", model.in_shape)
    a, b = flat(start), flat(end)
    if a.shape != b.shape:
        raise ValueError(
            f"`start` and `end` must be parameters of the same model; they have {a.size} and {b.size} values."
        )
    kernels = [tangent_matrix(model, params, x, lr_factors) for params in (start, end)]
    features = np.nan
    if isinstance(model, AbstractNetwork) and model.readout():
        first, last = (np.asarray(model.hidden_features(params, jnp.asarray(x))) for params in (start, end))
        features = float(np.linalg.norm(last - first) / np.linalg.norm(first))
    return MovementResult(
        weights=float(np.linalg.norm(b - a) / np.linalg.norm(a)),
        correlation=float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))),
        features=features,
        kernel=float(np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])),
        ntk_start=_largest(kernels[0]),
        ntk_end=_largest(kernels[1]),
    )


def flat(params: Params) -> np.ndarray:
    """All parameters in one vector."""
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(params)])


def tangent_matrix(
    model: AbstractModel, params: Params, x: np.ndarray, lr_factors: Params | float | None
) -> np.ndarray:
    """The tangent kernel of every point and output, (n out, n out)."""
    full = np.asarray(EmpiricalNTK(model, params, lr_factors).full(x))
    return full.reshape(full.shape[0] * full.shape[1], -1)


def _largest(matrix: np.ndarray) -> float:
    from scipy.linalg import eigvalsh

    return float(eigvalsh(matrix, subset_by_index=(len(matrix) - 1, len(matrix) - 1))[0])
