"""The tangent kernel of a finite network at given parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, one_of
from ..._base.types import Array, ArrayLike, Params
from ..._run.memory import require_fits, rows_that_fit
from ..._run.precision import in_float64, is_traced
from ...models.base import AbstractModel, count_parameters
from ...models.expansion.derivatives import ModelDerivatives, jacobian
from ...models.networks.network import AbstractNetwork
from ...models.networks.scaled import Scaled
from ...models.params import floating_params, root_factors, training_factors
from ..base import AbstractKernel
from ..finiteness import require_finite
from ..tiles import pieces
from .outer_products import Side, contracts, layer_contraction, layer_drift, layer_side, moving_layer_side
from .traced_products import jacobian_side, tapped_side

METHODS = ("auto", "layers", "jacobian", "products")
BUDGET = 512 * 2**20  # for gradients, or what they are made of


class EmpiricalNTK(AbstractKernel):
    r"""The tangent kernel of a model, $\Theta_{ij} = \sum_\mu \lambda_\mu\, \partial_\mu z_i\, \partial_\mu z_j$.

    `kernel(x1, x2)` (n1, n2) is the mean over outputs of the diagonal blocks (the trace divided by the number of
    outputs); `kernel.full(x1, x2)` (n1, out, n2, out) contains all blocks.

    **Arguments:**

    - `model`: any model.
    - `params`: its parameters.
    - `lr_factors`: learning-rate factors $\lambda_\mu$, same as `nk.simulate`: by default the model's own, 1.0 for
      the plain kernel.
    - `method`: "layers" contracts layer by layer, without the Jacobian of any weight array that enters a single matrix
      product or convolution; "jacobian" contracts Jacobians in chunks; "products" pushes each gradient through the
      model, which is cheaper for models with many outputs; "auto" is "layers" if most parameters are in such arrays,
      otherwise whichever of the other two needs fewer operations.
    """

    model: AbstractModel
    params: Params
    lr_factors: Params | None
    method: str = eqx.field(static=True)

    def __init__(
        self, model: AbstractModel, params: Params, lr_factors: Params | None = None, method: str = "auto"
    ):
        self.model, self.method = model, one_of(method, "method", METHODS)
        self.params = floating_params(model, params)
        self.lr_factors = training_factors(model, self.params, lr_factors)  # None: all are 1
        if self.method == "layers" and not self._one_factor_each():
            raise ValueError('`method="layers"` needs one learning-rate factor for each array; use "auto".')

    def _one_factor_each(self) -> bool:
        """Whether every array of parameters has one factor, not one for each of its entries."""
        return all(np.ndim(factor) == 0 for factor in jax.tree.leaves(self.lr_factors))

    def _by_layers(self) -> bool:
        fits = isinstance(self.model, AbstractNetwork) and contracts(self.model.layers)
        fits = fits and self._one_factor_each()
        return fits and self.method not in ("jacobian", "products")

    def _outputs(self, x: np.ndarray) -> int:
        if isinstance(self.model, AbstractNetwork):  # without tracing it
            return self.model.layers.shape(self.model.in_shape)[-1]
        return jax.eval_shape(self.model, self.params, x[:1]).shape[1]

    def _factors(self) -> Params:
        return jax.tree.map(lambda _: 1.0, self.params) if self.lr_factors is None else self.lr_factors

    def input_dim(self) -> "int | tuple[int, ...] | None":
        return self.model.in_shape

    @in_float64
    def full(self, x1: ArrayLike, x2: ArrayLike | None = None) -> Array:
        """The kernel of every pair of outputs at `x1` and `x2`, (n1, out, n2, out)."""
        if is_traced(self, x1, x2):
            return self._traced_full(x1, x2)
        x1 = inputs(x1, "x1" if x2 is not None else "x", self.input_dim())
        x2 = None if x2 is None else inputs(x2, "x2", x1.shape[1:])
        return require_finite(self._contract(x1, x2, full=True), x1, x2, "EmpiricalNTK.full(x1, x2)")

    @in_float64
    def half_drift(self, direction: Params, x1: ArrayLike, x2: ArrayLike) -> np.ndarray:
        r"""$\frac{d}{ds} J(\theta + s d)(x_1) \cdot J(\theta)(x_2)$ at $s = 0$, (n1, out, n2, out), at `x1` and `x2`.

        The direction $d$ = `direction` is a tree like `params`. When the parameters move along it, the kernel changes
        by `half_drift(direction, x1, x2)` plus its transpose.
        """
        direction = floating_params(self.model, direction, "direction")
        x1 = inputs(x1, "x1", self.input_dim())
        x2 = inputs(x2, "x2", x1.shape[1:])
        return require_finite(self._half_drift(direction, x1, x2), x1, x2, "half_drift(x1, x2)")

    def _half_drift(self, direction: Params, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        if isinstance(self.model, Scaled):
            step = direction["params"] if self.model.centered else direction
            return self.model.alpha**2 * self._inside()._half_drift(step, x1, x2)
        out = self._outputs(x1)
        require_fits(8 * len(x1) * len(x2) * out**2, "the drift of a tangent kernel", "use fewer points")
        if self._by_layers():
            assert isinstance(self.model, AbstractNetwork)
            side1, moves1 = moving_layer_side(self.model, self.params, direction, self._factors(), x1)
            side2 = layer_side(self.model, self.params, self._factors(), x2)
            return layer_drift(side1, moves1, side2, out)
        count = count_parameters(self.params)
        chunk = rows_that_fit(3 * 8 * out * count, BUDGET)
        drift = np.empty((len(x1), out, len(x2), out))
        for i in range(0, len(x1), chunk):
            for j in range(0, len(x2), chunk):
                block = _half_drift(self, direction, x1[i : i + chunk], x2[j : j + chunk])
                drift[i : i + chunk, :, j : j + chunk] = block
        return drift

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return self._contract(x1, x2, full=False)

    def _contract(self, x1: np.ndarray, x2: np.ndarray | None, full: bool) -> np.ndarray:
        out = self._outputs(x1)
        n1, n2 = len(x1), len(x1 if x2 is None else x2)
        size = 8 * n1 * n2 * (out * out if full else 1)
        require_fits(size, f"a tangent kernel of {n1} x {n2} points", "use fewer points, or `kernel.blocks`")
        if isinstance(self.model, Scaled):
            return self.model.alpha**2 * self._inside()._contract(x1, x2, full)
        if self._by_layers():
            assert isinstance(self.model, AbstractNetwork)
            side1 = layer_side(self.model, self.params, self._factors(), x1)
            side2 = side1 if x2 is None else layer_side(self.model, self.params, self._factors(), x2)
            return layer_contraction(side1, side2, out, full)
        by_products = self.method == "auto" and self._products_win(x1, n2, out, full)
        if self.method == "products" or by_products:
            return self._by_products(x1, x1 if x2 is None else x2, out, full)
        return self._by_sides(x1, x2, out, full)

    def _side(self, x: Array) -> Side:
        made = jacobian_side if self.method == "jacobian" else tapped_side
        return made(self.model, self.params, self._factors(), x)

    def _side_parts(self, x: np.ndarray) -> list:
        """Shapes of what is kept of one input; traced once."""
        return jax.tree.leaves(jax.eval_shape(self._side, x[:1]))

    def _products_win(self, x: np.ndarray, n2: int, out: int, full: bool) -> bool:
        """Operations an entry: a push costs two evaluations, a contraction of Jacobians P multiply-adds."""
        count = count_parameters(self.params)
        if 2 * sum(part.size for part in self._side_parts(x)) < out * count:
            return False  # most gradients are not formed
        contraction = 2 * count * (out if full else 1)
        return n2 > 1 and 2 * _operations(self.model, self.params, x) < contraction

    def _by_products(self, x1: np.ndarray, x2: np.ndarray, out: int, full: bool) -> np.ndarray:
        """Each gradient at x1, pushed through the model at x2."""
        count = count_parameters(self.params)
        chunk = rows_that_fit(3 * 8 * out * count, BUDGET)
        derivatives = ModelDerivatives(self.model, self.params, x2, 1)
        kernel = np.empty((len(x1), out, len(x2), out) if full else (len(x1), len(x2)))
        for at in range(0, len(x1), chunk):
            rows = _jacobian_rows(self, x1[at : at + chunk], chunk).reshape(-1, count)
            if self.lr_factors is not None:
                rows = rows * np.asarray(root_factors(self.lr_factors, self.params))
            block = derivatives.push(rows).reshape(-1, out, len(x2), out)
            kernel[at : at + chunk] = block if full else np.einsum("iojo->ij", block) / out
        return kernel

    def _inside(self) -> "EmpiricalNTK":
        """The kernel of the model that a scaled one scales, which may know a faster way."""
        assert isinstance(self.model, Scaled)
        moving, params = self.model.moving(self.params)
        factors = self.lr_factors["params"] if self.model.centered and self.lr_factors else self.lr_factors
        return EmpiricalNTK(moving.model, params, 1.0 if factors is None else factors, self.method)

    def _by_sides(self, x1: np.ndarray, x2: np.ndarray | None, out: int, full: bool) -> np.ndarray:
        """Gradients of a few rows at a time, or what they are made of, against those of a few others."""
        bytes_per_row = sum(part.size * part.dtype.itemsize for part in self._side_parts(x1))
        chunk = rows_that_fit(bytes_per_row, BUDGET)
        other = x1 if x2 is None else x2
        kernel = np.empty((len(x1), out, len(other), out) if full else (len(x1), len(other)))
        side = lambda x: _side_rows(self, x, chunk)
        for rows in pieces(slice(0, len(x1)), chunk):
            left = side(x1[rows])
            for columns in pieces(slice(0, rows.stop if x2 is None else len(other)), chunk):
                mirror = x2 is None and rows != columns
                right = left if x2 is None and not mirror else side(other[columns])
                block = layer_contraction(left, right, out, full)
                if full:
                    kernel[rows, :, columns] = block
                else:
                    kernel[rows, columns] = block
                if mirror and full:
                    kernel[columns, :, rows] = block.transpose(2, 3, 0, 1)
                elif mirror:
                    kernel[columns, rows] = block.T
        return kernel

    def _jacobian(self, x: Array, params: Params | None = None) -> jax.Array:
        """(n, out, P), each column scaled by the root of its learning-rate factor."""
        params = self.params if params is None else params
        derivative = jacobian(self.model, params, x)
        roots = root_factors(self.lr_factors, self.params)
        return derivative if roots is None else derivative * roots

    def _traced_full(self, x1: Array, x2: Array | None) -> jax.Array:
        left = self._jacobian(x1)
        return jnp.tensordot(left, left if x2 is None else self._jacobian(x2), axes=([2], [2]))

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        return (
            jnp.einsum("iojo->ij", self._traced_full(x1, x2))
            / jax.eval_shape(self.model, self.params, x1).shape[1]
        )

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [np.diagonal(self.matrix(x[at : at + 64], None)) for at in range(0, len(x), 64)]
        )


def _operations(model: AbstractModel, params: Params, x: np.ndarray) -> float:
    """Floating-point operations of one input, as the compiler counts them."""
    # A function, not the model itself: a model that holds lists of parameters has no hash.
    counts = [
        jax.jit(lambda p, x: model(p, x)).lower(params, x[:1].repeat(n, 0)).cost_analysis() for n in (1, 2)
    ]
    flops = [float((count or {}).get("flops", np.inf)) for count in counts]
    return flops[1] - flops[0] if np.isfinite(flops).all() else np.inf


@jax.jit
def _jacobian(kernel: EmpiricalNTK, x):
    return kernel._jacobian(x)


@jax.jit
def _half_drift(kernel: EmpiricalNTK, direction, x1, x2):
    moved = jax.jvp(lambda p: kernel._jacobian(x1, p), (kernel.params,), (direction,))[1]
    return jnp.tensordot(moved, kernel._jacobian(x2), axes=([2], [2]))


def _jacobian_rows(kernel: EmpiricalNTK, x: np.ndarray, chunk: int) -> np.ndarray:
    return np.asarray(_jacobian(kernel, _padded_rows(x, chunk)))[: len(x)]


def _side_rows(kernel: EmpiricalNTK, x: np.ndarray, chunk: int) -> Side:
    return jax.tree.map(lambda a: a[: len(x)], kernel._side(_padded_rows(x, chunk)))


def _padded_rows(x: np.ndarray, chunk: int) -> np.ndarray:
    """To full chunks, so that one compilation serves all."""
    rows = min(chunk, 1 << (len(x) - 1).bit_length()) - len(x)
    return np.pad(x, [(0, rows), *[(0, 0)] * (x.ndim - 1)], mode="edge")
