"""Linear models of given features."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import array_of, called, positive, whole
from ..._base.keys import Key, random_key
from ..._base.types import ArrayLike, Num
from ..._run.precision import drawing, in_float64, is_traced, working_dtype
from ..base import AbstractModel, Params, rows_of
from ..params import require_params


def require_features(phi: object) -> None:
    if not callable(phi):
        raise TypeError(f"`phi` must be a function (n, d) -> (n, f); got {type(phi).__name__}.")


def require_finite_features(found: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Features (n, f) of inputs `x`, refused unless all are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(found.sum()) or np.isfinite(found).all():
            return found
    row, column = (int(i) for i in np.argwhere(~np.isfinite(found))[0])
    raise ValueError(
        f"`phi` must give finite features; feature {column} is {found[row, column]} at row {row}, whose largest entry "
        f"is {np.abs(x[row]).max():.3g}: change `phi` or scale the inputs."
    )


def checked_features(phi: Callable, x: jax.Array) -> jax.Array:
    """phi(x), refused unless it is (n, f)."""
    values = array_of(called(phi, "phi(x)", x), "phi(x)")
    if values.ndim != 2 or len(values) != len(x):
        raise ValueError(f"`phi` must map (n, d) to (n, f); it maps {x.shape} to {values.shape}.")
    return values


def zero_weights(phi: Callable, in_dim: int, out_dim: int) -> Params:
    """W = 0, (out, f), for the features of inputs (n, in_dim)."""
    x = jax.ShapeDtypeStruct((2, in_dim), working_dtype())
    shape = jax.eval_shape(lambda rows: checked_features(phi, rows), x).shape
    return jnp.zeros((out_dim, shape[1]), working_dtype())


def feature_weights(model: AbstractModel, params: Params, count: int) -> jax.Array:
    """W as (out, f), refused unless it has one weight for each of `count` features."""
    require_params(model, params)
    weights = jnp.atleast_2d(params) if hasattr(params, "shape") else jnp.zeros(())
    if weights.ndim != 2 or weights.shape[1] != count:
        raise ValueError(f"`params` must have shape (out, {count}); got {np.shape(params)}.")
    return weights


class FeatureModel(AbstractModel):
    r"""A linear model $z_i = \sum_j W_{ij}\, \phi_j(x)$ with parameters W, (out, f) or (f,).

    **Arguments:** `phi`, a JAX function (n, d) -> (n, f); `out_dim`, number of outputs, each with its own weights;
    `in_dim`, needed if you call `init` before the model has seen an input; `weight_var`, the variance of the weights
    at initialization, 0 by default: the weights are then initialized to 0, same as in `nk.solve`.
    """

    phi: Callable = eqx.field(static=True)
    out_dim: int = eqx.field(static=True, default=1)
    in_dim: int | None = eqx.field(static=True, default=None)
    weight_var: float = 0.0

    def __check_init__(self):
        require_features(self.phi)
        whole(self.out_dim, "out_dim", 1)
        if self.in_dim is not None:
            whole(self.in_dim, "in_dim", 1)
        positive(self.weight_var, "weight_var", zero=True)

    @in_float64
    def features(self, x: ArrayLike) -> jax.Array:
        r"""The features $\phi$ at `x`, checked to have shape (n, f)."""
        return checked_features(self.phi, rows_of(x, self.in_dim))

    @drawing
    def init(self, key: Key | None = None) -> Params:
        if self.in_dim is None:
            raise ValueError("`FeatureModel.init` needs `in_dim`: FeatureModel(phi, in_dim=d).")
        zero = zero_weights(self.phi, self.in_dim, self.out_dim)
        if not is_traced(self.weight_var) and self.weight_var == 0:
            return zero
        scale = jnp.sqrt(jnp.asarray(self.weight_var, zero.dtype))
        return scale * jax.random.normal(random_key(key), zero.shape, zero.dtype)

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        phi = self.features(x)
        return phi @ feature_weights(self, params, phi.shape[1]).T
