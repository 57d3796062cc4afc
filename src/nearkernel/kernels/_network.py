r"""The kernels of infinitely wide networks.

    K^1 = C_b + C_W x.y/d,  K^{l+1} = C_b + C_W E[s s],  Theta^{l+1} = K^{l+1} + C_W E[s' s'] Theta^l:

the derivative factor of the tangent kernel carries no C_b. Angles are carried as gaps through all layers, so
that nothing cancels near the diagonal.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import inputs
from .._memory import require_fits
from .._precision import in_float64, is_traced
from ..activations import AbstractActivation
from ..models import MLP
from ._base import AbstractKernel, InvariantKernel
from ._finite import require_finite
from ._tiles import Tiles, as_column, as_row, gaps, matrices, ready, traced_matrices

_UNROLLED = 6  # hidden layers of series activations


class Recursion(InvariantKernel):
    """Layer by layer from inputs to both kernels: what NNGP and NTK share, without the widths."""

    activations: tuple[AbstractActivation, ...]  # one a hidden layer
    weight_var: Any
    bias_var: Any
    in_dim: Any  # a number, but not a static one: a new one must not compile anew
    last_bias_only: bool = eqx.field(static=True)  # mean-field outputs start at their bias
    outputs: tuple[str, ...] = eqx.field(static=True)  # of "nngp", "ntk"

    @property
    def _looped(self) -> bool:
        """Whether JAX loops over the layers: it compiles sooner, and XLA computes nothing twice for the two matrices.

        Series have a number of terms of their own in each layer, and are looped over only when there are many.
        """
        return len(self.activations) > (1 if self.compiles_rows() else _UNROLLED)

    def compiles_rows(self) -> bool:
        return not any(activation.depends_on_range for activation in self.activations)

    def rows(self, norms: Any) -> dict:
        xp = np if isinstance(norms, np.ndarray) else jnp
        first = self._affine_rows(xp, norms / self.in_dim**0.5)
        first["ntk"] = first["root"] ** 2

        def layer(before, activation):
            own = activation.rows(before["root"] ** 2)
            after = self._affine_rows(xp, own["size"])
            after["ntk"] = after["root"] ** 2 + self.weight_var * own["slope"] * before["ntk"]
            return after, {**after, "activation": own}

        if self._looped and xp is jnp:
            last, layers = jax.lax.scan(
                lambda b, _: layer(b, self.activations[0]), first, length=len(self.activations)
            )
            return {"first": first, "layers": layers, "last": last}
        last, layers = first, []
        for activation in self.activations:
            last, rows = layer(last, activation)
            layers.append(rows)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *layers) if self._looped else layers
        return {"first": first, "layers": stacked, "last": last}

    def _affine_rows(self, xp, size: Any) -> dict:
        """Root of the variance after the layer, and the shares of weights and bias in it: a unit vector."""
        scaled = xp.sqrt(self.weight_var) * size
        square = self.bias_var + scaled**2
        some = (
            square > 0
        )  # an input of length 0, without biases, stays 0 and keeps its right angle to all others
        root = xp.sqrt(xp.where(some, square, 1.0))
        weight, bias = xp.where(some, scaled / root, 1.0), xp.where(some, xp.sqrt(self.bias_var) / root, 0.0)
        return {"root": xp.where(some, root, 0.0), "weight": weight, "bias": bias}

    def _affine(self, row1: dict, row2: dict, gap: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(covariance, gap) after the affine layer, from the gap of what goes into it: a sum of positive terms."""
        weight1, weight2 = row1["weight"], row2["weight"]
        gap = weight1 * weight2 * gap + 0.5 * ((weight1 - weight2) ** 2 + (row1["bias"] - row2["bias"]) ** 2)
        return row1["root"] * row2["root"] * (1.0 - gap), gap

    def _start(self, rows1, rows2, gap):
        covariance, gap = self._affine(rows1["first"], rows2["first"], gap)
        return covariance, covariance, gap

    def _step(self, row1, row2, state, averages):
        """One layer on, from the averages (gap, slope) that its activation gave."""
        gap, slope = averages
        covariance, gap = self._affine(row1, row2, gap)
        return covariance, covariance + self.weight_var * slope * state[1], gap

    def _select(self, state) -> tuple:
        nngp, ntk, _ = state
        if self.last_bias_only:
            nngp = jnp.zeros_like(nngp) + self.bias_var
        return tuple({"nngp": nngp, "ntk": ntk}[name] for name in self.outputs)

    def pairs(self, rows1, rows2, gap):
        def layer(state, row1, row2, activation):
            averages = activation.pair(row1["activation"], row2["activation"], state[2])
            return self._step(row1, row2, state, averages)

        state = self._start(rows1, rows2, gap)
        if self._looped:
            both = rows1["layers"], rows2["layers"]
            state, _ = jax.lax.scan(lambda s, rows: (layer(s, *rows, self.activations[0]), None), state, both)
        else:
            for activation, row1, row2 in zip(
                self.activations, rows1["layers"], rows2["layers"], strict=True
            ):
                state = layer(state, row1, row2, activation)
        return self._select(state)

    def overflow(self, rows: dict, i: int) -> str:
        """Which layer's variance, or tangent kernel, is not finite at input `i`."""
        layers = rows["layers"]
        if self._looped:
            layers = [jax.tree.map(lambda a, l=l: a[l], layers) for l in range(len(self.activations))]
        for layer, own in enumerate([rows["first"], *layers], start=1):
            for value, what in ((own["root"] ** 2, "variance"), (own["ntk"], "tangent kernel")):
                if not np.isfinite(value[..., i]):
                    return (
                        f"the {what} of layer {layer} overflows at `weight_var` = {float(self.weight_var):.3g}, "
                        f"`bias_var` = {float(self.bias_var):.3g}: lower them, or the depth"
                    )
        return super().overflow(rows, i)

    def diagonals(self, rows):
        nngp = rows["last"]["root"] ** 2
        nngp = 0.0 * nngp + self.bias_var if self.last_bias_only else nngp
        return tuple({"nngp": nngp, "ntk": rows["last"]["ntk"]}[name] for name in self.outputs)

    def prepared(self, norms: np.ndarray) -> "Recursion":
        """Each layer's activation made ready for the range of variances that reaches it."""
        if not any(activation.depends_on_range for activation in self.activations):
            return self
        ranges, ready_activations = [], []
        q = np.asarray(self.bias_var + self.weight_var * _spread(norms) ** 2 / self.in_dim)
        for layer, activation in enumerate(self.activations, start=1):
            if not np.isfinite(q).all():
                raise ValueError(
                    f"`x` is too large for this kernel: the variance of layer {layer} overflows at `weight_var` = "
                    f"{float(self.weight_var):.3g} and inputs of length {norms.max():.3g}."
                )
            ranges.append(q)
            ready_activations.append(activation.prepared(q))
            q = np.asarray(self.bias_var + self.weight_var * ready_activations[-1].moments(q).value)
        if self._looped:
            ready_activations = [self.activations[0].prepared(np.concatenate(ranges))] * len(self.activations)
        return eqx.tree_at(lambda r: r.activations, self, tuple(ready_activations))

    def repaired_pairs(self, rows1, rows2, gap: np.ndarray):
        """Layer by layer, with quadrature where a series does not reach; None if all of them do."""
        if min((activation.trusted_correlation() for activation in self.activations), default=1.0) >= 1.0:
            return None
        *_, last = self.states(rows1, rows2, gap)
        return self._select(last)

    def states(self, rows1, rows2, gap: np.ndarray) -> Iterator[tuple]:
        """(NNGP, NTK, gap) of each layer in turn, with quadrature where a series does not reach."""
        column, row = as_column(rows1), as_row(rows2)
        roots1, roots2 = rows1["first"]["root"], rows2["first"]["root"]
        affine = eqx.tree_at(lambda r: r.activations, self, ())  # JAX looks at every leaf at each call
        state = _jit_start(affine, {"first": column["first"]}, {"first": row["first"]}, gap)
        yield state
        for layer, activation in enumerate(self.activations):
            row1, row2 = self._layer(column, layer), self._layer(row, layer)
            out_gap, slope = _jit_pair(activation, row1["activation"], row2["activation"], state[2])
            now = np.asarray(state[2])
            far = np.abs(1.0 - now) > activation.trusted_correlation()
            if far.any():
                out_gap, slope = np.array(out_gap), np.array(slope)
                out_gap[far], slope[far] = self._quadrature(activation, roots1, roots2, now, far)
            state = _jit_step(affine, row1, row2, state, (out_gap, slope))
            yield state
            roots1, roots2 = self._layer(rows1, layer)["root"], self._layer(rows2, layer)["root"]

    def _layer(self, rows, layer: int):
        return jax.tree.map(lambda a: a[layer], rows["layers"]) if self._looped else rows["layers"][layer]

    @staticmethod
    def _quadrature(activation, roots1, roots2, gap, far):
        """Each distinct pair once: padding repeats the last row and column."""
        i, j = np.nonzero(far)
        asked = np.column_stack([roots1[i] ** 2, roots2[j] ** 2, gap[far]])
        distinct, back = np.unique(asked, axis=0, return_inverse=True)
        found_gap, found_slope = activation.quadrature(*distinct.T)
        return found_gap[back.ravel()], found_slope[back.ravel()]


_jit_start = jax.jit(lambda kernel, rows1, rows2, gap: kernel._start(rows1, rows2, gap))
_jit_pair = jax.jit(lambda activation, rows1, rows2, gap: activation.pair(rows1, rows2, gap))
_jit_step = jax.jit(lambda kernel, row1, row2, state, averages: kernel._step(row1, row2, state, averages))


def _spread(values: np.ndarray) -> np.ndarray:
    """A few values that span the range of `values`: preparing looks at the range only, and compiles once."""
    return np.quantile(values, np.linspace(0.0, 1.0, 8))


def _recursion(net: MLP, outputs: tuple[str, ...]) -> Recursion:
    if not isinstance(net, MLP):
        raise TypeError(
            f"`net` must be an nk.MLP: its infinite-width kernel is known; got {type(net).__name__}."
        )
    depth = len(net.widths)
    mean_field = net.parametrization == "mean_field" and depth > 0
    return Recursion(
        (net.activation,) * depth, net.weight_var, net.bias_var, float(net.in_dim), mean_field, outputs
    )


class _NetworkKernel(AbstractKernel):
    net: MLP
    output: eqx.AbstractClassVar[str]

    def __check_init__(self):
        _recursion(self.net, (self.output,))

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return _recursion(self.net, (self.output,)).matrix(x1, x2)

    def tiles(self, x: np.ndarray) -> Tiles:
        return _recursion(self.net, (self.output,)).tiles(x)

    def traced(self, x1: Any, x2: Any) -> jax.Array:
        return _recursion(self.net, (self.output,)).traced(x1, x2)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return _recursion(self.net, (self.output,)).diagonal(x)

    def input_dim(self) -> int:
        return self.net.in_dim


class NNGP(_NetworkKernel):
    """Covariance of one output of the infinitely wide `net` over initializations (its widths do not matter).

    K^1 = C_b + C_W x.y/d,    K^{l+1} = C_b + C_W E[s(u) s(v)],    (u, v) ~ N(0, K^l)
    """

    output = "nngp"


class NTK(_NetworkKernel):
    """Tangent kernel of one output of the infinitely wide `net`, trained with `net.lr_factors()`.

    Theta^1 = K^1,    Theta^{l+1} = K^{l+1} + C_W E[s'(u) s'(v)] Theta^l
    """

    output = "ntk"


@in_float64
def nngp_and_ntk(net: MLP, x1: Any, x2: Any = None) -> tuple[Any, Any]:
    """Both kernels of a network in one pass: (NNGP(net)(x1, x2), NTK(net)(x1, x2))."""
    kernel = _recursion(net, ("nngp", "ntk"))
    if is_traced(net, x1, x2):
        return traced_matrices(kernel, x1, x2)  # type: ignore[return-value]
    x1 = inputs(x1, "x1" if x2 is not None else "x", net.in_dim)
    return both_kernels(net, x1, None if x2 is None else inputs(x2, "x2", net.in_dim))


def both_kernels(net: MLP, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """`nngp_and_ntk` of checked inputs."""
    prepared, side1, side2 = ready(_recursion(net, ("nngp", "ntk")), x1, x2)
    nngp, ntk = matrices(prepared, side1, side2, 2)
    return require_finite(nngp, x1, x2, "NNGP(x1, x2)"), require_finite(ntk, x1, x2, "NTK(x1, x2)")


@in_float64
def layer_kernels(net: MLP, x: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(NNGP, NTK, 1 - correlation) of every layer, each (n, n), for inputs `x` (n, d)."""
    recursion = _recursion(net, ("nngp", "ntk"))
    x = inputs(x, "x", net.in_dim)
    kernel, side, _ = ready(recursion, x, None)
    require_fits(
        8 * (3 * len(net.sizes) + 9) * len(x) ** 2,
        f"kernels of {len(x)} points in every layer",
        "use fewer points",
    )
    rows = side.rows
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    gap = gaps(side.unit, side.unit, True)
    for state in kernel.states(rows, rows, gap):
        layer = len(found)
        diagonal = rows["first"] if layer == 0 else kernel._layer(rows, layer - 1)
        nngp, ntk, apart = (np.array(a) for a in state)
        for matrix, exact in ((nngp, diagonal["root"] ** 2), (ntk, diagonal["ntk"]), (apart, 0.0)):
            matrix[...] = 0.5 * (matrix + matrix.T)
            np.fill_diagonal(matrix, exact)
            require_finite(matrix, x, None, f"layer_kernels(net, x)[{layer}]")
        found.append((nngp, ntk, apart))
    if kernel.last_bias_only:
        found[-1] = (np.full_like(found[-1][0], net.bias_var), found[-1][1], np.zeros_like(found[-1][2]))
    return found
