"""How tangent kernels move: the meta-kernel (dNTK) and its own derivatives (ddNTK)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, numeric
from ..._base.types import ArrayLike, Params
from ..._run.memory import require_fits
from ..._run.precision import Portable, in_float64
from ...models.base import AbstractModel
from ...models.expansion.derivatives import ModelDerivatives, effective_features
from ...models.expansion.passes import along, flat
from ...models.params import floating_params, root_factors, training_factors


class _Meta(Portable, eqx.Module):
    model: AbstractModel
    params: Params
    lr_factors: Params | None = None

    def __init__(self, model: AbstractModel, params: Params, lr_factors: Params | None = None):
        self.model, self.params = model, floating_params(model, params)
        self.lr_factors = training_factors(model, self.params, lr_factors)

    def _roots(self) -> jax.Array | None:
        return root_factors(self.lr_factors, self.params)

    def _derivatives(self, x: ArrayLike, name: str) -> ModelDerivatives:
        return ModelDerivatives(
            self.model, self.params, inputs(x, name, self.model.in_shape), 3, self._roots()
        )

    def _features(self, x: ArrayLike, name: str) -> np.ndarray:
        """(m, P), one row an (input, output) pair, by parameters divided by the roots of their factors."""
        features, roots = effective_features(self.model, self.params, x, name), self._roots()
        return features.reshape(-1, features.shape[2]) * (1.0 if roots is None else np.asarray(roots))

    def _weights(self, p: ArrayLike, name: str, derivatives: ModelDerivatives) -> np.ndarray:
        weights = numeric(p, name)
        if weights.size != derivatives.outputs:
            raise ValueError(
                f"`{name}` must have one weight per output, {derivatives.outputs}; got {weights.shape}."
            )
        return weights.reshape(1, -1)


class EmpiricalDNTK(_Meta):
    r"""The meta-kernel $\mu_{abc} = \sum z''_a z'_b z'_c$ of a model: how its tangent kernel changes in training.

    The tangent kernel changes at the rate $-(\mu_{12a} + \mu_{21a})\, e_a$, with $e$ the errors. $\mu$ is symmetric
    in its last two indices only.

    **Arguments:** `model`, any model with second derivatives; `params`, its parameters; `lr_factors`: same as
    `EmpiricalNTK`; each sum over parameters has them.
    """

    @in_float64
    def __call__(self, x0: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None) -> np.ndarray:
        """The full array (m0, m1, m2), for few inputs; (input, output) pairs form one index.

        `x1` and `x2` default to `x0`.
        """
        rows = self._derivatives(x0, "x0")
        f1 = self._features(x0, "x0") if x1 is None else self._features(x1, "x1")
        if x2 is not None:
            f2 = self._features(x2, "x2")
        else:
            f2 = f1 if x1 is None else self._features(x0, "x0")
        require_fits(8 * rows.outputs * len(f1) * len(f2), "the meta-kernel", "contract it instead")
        kernel = np.empty((rows.outputs, len(f1), len(f2)))
        for b, direction in enumerate(f1):  # all pairs of directions at once would be m1 m2 P numbers
            kernel[:, b] = rows.bend(np.broadcast_to(direction, f2.shape), f2).T
        return _finite(kernel)

    @in_float64
    def contract(
        self, x0: ArrayLike, x1: ArrayLike, p1: ArrayLike, x2: ArrayLike, p2: ArrayLike
    ) -> np.ndarray:
        r"""$\sum_{bc} \mu_{abc}\, p^1_b\, p^2_c$, (n0, out), at `x0`, by two gradients and one second derivative.

        `p1` and `p2` weight the outputs at `x1` and `x2`, (n,) or (n, out).
        """
        first, second = self._derivatives(x1, "x1"), self._derivatives(x2, "x2")
        u = first.pull(self._weights(p1, "p1", first))
        v = second.pull(self._weights(p2, "p2", second))
        rows = self._derivatives(x0, "x0")
        return _finite(rows.bend(u, v).reshape(-1, rows.out))


class EmpiricalDDNTK(_Meta):
    r"""The two kernels that determine how the meta-kernel changes in training.

    $$\nu_{abcd} = z'''_a z'_b z'_c z'_d, \qquad \kappa_{abcd} = (z''_a z'_c) \cdot (z''_b z'_d)$$

    **Arguments:** `model`, any model with third derivatives; `params`, its parameters; `lr_factors`: same as
    `EmpiricalNTK`; each sum over parameters has them.
    """

    @in_float64
    def __call__(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        r"""$\nu$ and $\kappa$ on one set of few inputs, each (m, m, m, m), with (input, output) pairs as one index."""
        rows, f = self._derivatives(x, "x"), self._features(x, "x")
        m = len(f)
        require_fits(3 * 8 * max(m**4, m**2 * rows.size), "the ddNTK", "use fewer points")
        unit = np.eye(m)
        pairs = np.indices((m, m)).reshape(2, -1)
        bent = rows.bend_pull(unit[pairs[0]], f[pairs[1]]).reshape(m, m, -1)  # psi_a f_c
        kappa = np.einsum("acp,bdp->abcd", bent, bent, optimize=True)
        nu = np.asarray(_trilinear(self.model, self.params, rows.x, rows.unscaled(f)))
        return _finite(nu), _finite(kappa)

    @in_float64
    def contract(self, x0: ArrayLike, x1: ArrayLike, p1: ArrayLike) -> np.ndarray:
        r"""$\sum_{bcd} \nu_{abcd}\, p^1_b\, p^1_c\, p^1_d$, (n0, out), from `x0` (n0, d), `x1` and `p1`."""
        first = self._derivatives(x1, "x1")
        rows = self._derivatives(x0, "x0")
        return _finite(rows.twist(first.pull(self._weights(p1, "p1", first))).reshape(-1, rows.out))


def _finite(found: np.ndarray) -> np.ndarray:
    if not np.isfinite(found).all():
        raise ValueError(
            "`params` and the inputs are too large: derivatives of this model overflow. Scale them towards 1."
        )
    return found


@jax.jit
def _trilinear(model, params, x, f):
    """Psi_a[f_b, f_c, f_d], (m, m, m, m)."""
    function, theta = flat(model, params, x)

    def third(b, c, d):
        return along(along(along(function, b), c), d)(theta)

    inner = jax.vmap(third, in_axes=(None, None, 0))
    return jnp.moveaxis(jax.vmap(jax.vmap(inner, (None, 0, None)), (0, None, None))(f, f, f), 3, 0)
