r"""A network whose layers are clouds, trained step by step: the mean-field limit, or a network drawn at finite width.

Fields are of order 1 at any width: preactivations h^l, activations s(h^l), backward g^l = gamma0 sqrt(N_l N_L) df/dh^l.
Averages < > run over a layer, gamma_l = gamma0 sqrt(N_L / N_l), and e is the derivative of the loss by the outputs:

    h^1 = omega xi,   h^{l+1} = W^l s(h^l) + b^{l+1},   f = (sqrt(C_W) <a s(h^L)> + beta) / gamma0,
    g^L = s'(h^L) sqrt(C_W) a,   g^l = s'(h^l) (W^l)^T g^{l+1}.

Gradient descent moves W^l by -lr gamma_{l+1} C_W sum e g^{l+1} s(h^l)^T, b^l by -lr gamma_l C_b sum e g^l, and so on.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg

from ...activations.base import AbstractActivation
from ...models.networks.mlp import MLP
from .cloud import AbstractCloud
from .conditioned_gaussian import KnownMatrix


class Layout(NamedTuple):
    """What of a network the limit depends on. Hidden layers are numbered from 0; variances are those of what leads to
    each of them, and of what leads to the outputs."""

    activations: tuple[Any, ...]
    weight_vars: tuple[float, ...]
    bias_vars: tuple[float, ...]
    outputs: int
    richness: float  # gamma0
    gammas: tuple[float, ...]  # of each hidden layer
    kappas: tuple[float, ...]  # of each matrix between two of them

    @property
    def depth(self) -> int:
        return len(self.gammas)

    def metric(self, layer: int, features: np.ndarray) -> np.ndarray:
        """What the parameters that lead to `layer` add to a tangent kernel, before gradients, from `features` below."""
        return self.weight_vars[layer] * features + self.bias_vars[layer]


def layout_of(net: MLP, richness: float) -> Layout:
    width = np.asarray(net.widths, dtype=np.float64)
    layers = [net.dense(k) for k in range(len(width) + 1)]
    return Layout(
        net.activations, tuple(float(layer.weight_var) for layer in layers),
        tuple(float(layer.bias_var) for layer in layers), net.out_dim, richness,
        tuple(richness * np.sqrt(width[-1] / width)), tuple(np.sqrt(width[:-1] / width[1:])),
    )  # fmt: skip


class Fields(NamedTuple):
    """A forward pass: preactivations, activations and slopes of each layer (rows, M); <s(h^l), q> of each matrix."""

    before: list[np.ndarray]
    after: list[np.ndarray]
    slopes: list[np.ndarray]
    along: list[np.ndarray]

    def rows(self, which: Any) -> "Fields":
        return Fields(*([part[which] for part in parts] for parts in self))


class Change(NamedTuple):
    """A direction in which the network can move; a field each of what is trained."""

    first: np.ndarray
    matrices: list[np.ndarray]
    biases: list[np.ndarray]
    readout: np.ndarray
    last_bias: np.ndarray

    def plus(self, other: "Change", amount: float, own: float = 1.0) -> "Change":
        """own * self + amount * other; matrices that were known in fewer directions are 0 in the others."""

        def mixed(one, two):
            total = own * one
            if len(one) < len(two):
                total = np.concatenate([total, np.zeros_like(two[len(one) :])])
            total[: len(two)] += amount * two
            return total

        return jax.tree.map(mixed, self, other)


class CloudNetwork:
    """A network of `clouds`, one per hidden layer, at initialization.

    **Arguments:** `layout`; `clouds`; `first_dim`, the dimension of the space xi that inputs are given in, with
    xi . xi' = C_b + C_W x . x'/d; `tol`, see `KnownMatrix`.
    """

    def __init__(self, layout: Layout, clouds: Sequence[AbstractCloud], first_dim: int, tol: float):
        self.layout, self.clouds = layout, list(clouds)
        self.first = clouds[0].fresh(first_dim, False)
        self.biases = [
            var**0.5 * cloud.fresh(1, False)[0] if var else np.zeros(cloud.size, self.first.dtype)
            for cloud, var in zip(clouds[1:], layout.bias_vars[1:], strict=False)
        ]
        self.readout = clouds[-1].fresh(layout.outputs, True)
        self.last_bias = np.zeros(layout.outputs)
        self.matrices = [
            KnownMatrix(left, right, var, kappa, tol)
            for left, right, var, kappa in zip(
                clouds, clouds[1:], layout.weight_vars[1:], layout.kappas, strict=False
            )
        ]

    @property
    def rank(self) -> list[tuple[int, int]]:
        return [matrix.rank for matrix in self.matrices]

    def forward(self, xi: np.ndarray, learn: bool = True, begin: Any = None) -> Fields:
        """Fields at inputs `xi` (rows, first_dim). `begin`: for each matrix the first directions to ask for."""
        fields = Fields([], [], [], [])
        h = xi.astype(self.first.dtype) @ self.first
        for layer in range(self.layout.depth):
            after, slope = value_and_slope(self.layout.activations[layer], h)
            for part, found in zip(fields, (h, after, slope), strict=False):
                part.append(found)
            if layer < len(self.matrices):
                if begin is not None:
                    self.matrices[layer].begin(after, begin[layer], forward=True)
                along, h = self.matrices[layer].forward(after, learn and begin is None)
                fields.along.append(along)
                h = h + self.biases[layer]
        return fields

    def outputs(self, fields: Fields) -> np.ndarray:
        """(rows, out)."""
        last = self.clouds[-1].inner(fields.after[-1], self.readout)
        return (self.layout.weight_vars[-1] ** 0.5 * last + self.last_bias) / self.layout.richness

    def backward(
        self, fields: Fields, seed: np.ndarray, learn: bool = True, begin: Any = None
    ) -> list[np.ndarray]:
        """sum_o seed_o g^l_o at the rows of `fields`, of every layer, for `seed` (rows, out)."""
        z = self.layout.weight_vars[-1] ** 0.5 * (seed.astype(self.readout.dtype) @ self.readout)
        found = [fields.slopes[-1] * z]
        for layer in reversed(range(len(self.matrices))):
            if begin is not None:
                self.matrices[layer].begin(found[0], begin[layer], forward=False)
            z = self.matrices[layer].backward(found[0], learn and begin is None)
            found.insert(0, fields.slopes[layer] * z)
        return found

    def force(self, xi: np.ndarray, fields: Fields, error: np.ndarray, learn: bool = True) -> Change:
        """The gradient of the loss, where its derivative by the outputs at the rows of `fields` is `error`."""
        layout = self.layout
        seed, size = directions_of(error)
        gradients = [g * size[:, None].astype(g.dtype) for g in self.backward(fields, seed, learn)]
        matrices = [
            (gamma * var) * matrix.change(along, g)
            for matrix, along, g, gamma, var in zip(
                self.matrices,
                fields.along,
                gradients[1:],
                layout.gammas[1:],
                layout.weight_vars[1:-1],
                strict=True,
            )
        ]
        biases = [
            (gamma * var) * g.sum(axis=0)
            for g, gamma, var in zip(gradients[1:], layout.gammas[1:], layout.bias_vars[1:-1], strict=True)
        ]
        first = layout.gammas[0] * (xi.T.astype(self.first.dtype) @ gradients[0])
        after = fields.after[-1]
        readout = (layout.richness * layout.weight_vars[-1] ** 0.5) * (error.T.astype(after.dtype) @ after)
        return Change(
            first, matrices, biases, readout, layout.richness * layout.bias_vars[-1] * error.sum(axis=0)
        )

    def shift(self, change: Change, amount: float) -> None:
        """Moves by `amount` times `change`."""
        self.first += amount * change.first
        for matrix, part in zip(self.matrices, change.matrices, strict=True):
            matrix.shift(part, amount)
        for bias, part in zip(self.biases, change.biases, strict=True):
            bias += amount * part
        self.readout += amount * change.readout
        self.last_bias = self.last_bias + amount * change.last_bias

    def decay(self, share: float) -> None:
        """Takes away this share of all parameters."""
        for matrix in self.matrices:
            matrix.decay(share)
        for part in (self.first, *self.biases, self.readout):
            part *= np.asarray(1.0 - share, part.dtype)
        self.last_bias = (1.0 - share) * self.last_bias

    def features(self, fields: Fields) -> list[np.ndarray]:
        """<s(h^l) s(h^l)> of every layer, (rows, rows)."""
        return [cloud.inner(after, after) for cloud, after in zip(self.clouds, fields.after, strict=True)]

    def tangent(
        self, xi: np.ndarray, features: Sequence[np.ndarray], gradients: Sequence[np.ndarray]
    ) -> np.ndarray:
        """The tangent kernel from <s s> and <g g> of every layer; gradients of the outputs themselves come last."""
        layout = self.layout
        metrics = [xi @ xi.T, *map(layout.metric, range(1, layout.depth + 1), features)]
        return sum(metric * gram for metric, gram in zip(metrics, gradients, strict=True))

    def sharpness(self, xi: np.ndarray, fields: Fields, error: np.ndarray) -> float:
        """The largest eigenvalue of the tangent kernel at the rows of `fields`, each in the direction of its error."""
        seed, _ = directions_of(error)
        grams = [
            cloud.inner(g, g)
            for cloud, g in zip(self.clouds, self.backward(fields, seed, False), strict=True)
        ]
        return largest_eigenvalue(self.tangent(xi, self.features(fields), [*grams, seed @ seed.T]))


def largest_eigenvalue(matrix: np.ndarray) -> float:
    """Of a symmetric matrix, to a few digits if it is large."""
    if not np.isfinite(matrix).all():
        return np.nan
    if len(matrix) < 200:
        return float(np.linalg.eigvalsh(matrix)[-1])
    start = np.ones(len(matrix))
    return float(
        scipy.sparse.linalg.eigsh(matrix, 1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)[0]
    )


def directions_of(error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, out) as unit vectors and sizes; of one output the sign goes with the size."""
    if error.shape[1] == 1:
        return np.ones_like(error), error[:, 0]
    size = np.linalg.norm(error, axis=1)
    first = np.eye(1, error.shape[1])
    return np.where(size[:, None] > 0, error / np.where(size > 0, size, 1.0)[:, None], first), size


def value_and_slope(activation: AbstractActivation, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.asarray(part, h.dtype) for part in _jit_value_and_slope(activation, h))  # type: ignore[return-value]


@jax.jit
def _jit_value_and_slope(activation, h):
    return jax.jvp(lambda z: activation(z), (h,), (jnp.ones_like(h),))
