r"""The class structure of a classifier's second moments: how much of them the class means explain.

For cross-entropy, the Gauss-Newton matrix is a second moment, $G = \sum_i \sum_{c'} p_i(c')\, g_{ic'} g_{ic'}^\top$, of
the gradient $g_{ic'}$ that point $i$ would have if its label were $c'$, weighted by the model's probability of that
label. With $c$ the true class of $i$, the weighted means over the points of a class, $g_{cc'}$, and over the wrong
labels, $g_c$, split it into four parts,

| part | sum | eigenvalues |
|---|---|---|
| class | $\sum_c w_c\, g_c g_c^\top$ | at most $C$ outliers |
| cross | $\sum_{cc'} w_{cc'} (g_{cc'} - g_c)(g_{cc'} - g_c)^\top$ | at most $C (C - 2)$ more |
| within | $\sum_{icc'} w_{icc'} (g_{icc'} - g_{cc'})(g_{icc'} - g_{cc'})^\top$ | the bulk |
| same | $\sum_i w_{icc}\, g_{icc} g_{icc}^\top$ | the true label |

with $c' \ne c$ in the first three; they sum to $G$ exactly. All weights are $w_{icc'} = p_i(c')$, summed: plain
averages would not add up.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..._base.check import class_names, inputs, numeric, plain_array, whole
from ..._base.types import ArrayLike, Params, PyTree
from ..._run.precision import in_float64
from ...models.base import AbstractModel
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params
from .operators import GaussNewton, sandwich
from .symmetric import AbstractOperator

PARTS = np.eye(4)  # class, cross, within, same: data, not names, so that one compilation serves all


def class_labels(labels: ArrayLike, n: int, least: int = 2) -> tuple[np.ndarray, int]:
    """(n,) class numbers 0 .. C - 1 (one-hot rows are read too) and C; every class must occur."""
    array = plain_array(labels, "labels")
    if _is_one_hot(array):
        array = array.argmax(axis=1)
    names, index = np.unique(class_names(array, n), return_inverse=True)
    if len(names) < least:
        raise ValueError(f"`labels` must have at least {least} classes; got only {names[0]!r}.")
    return index, len(names)


def _is_one_hot(array: np.ndarray) -> bool:
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "biuf":
        return False
    return bool(np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all())


def output_labels(labels: ArrayLike, n: int, out: int) -> np.ndarray:
    """(n,) output numbers 0 .. out - 1: as given if such numbers or one-hot rows, else classes in sorted order."""
    array = plain_array(labels, "labels")
    index, classes = class_labels(labels, n)
    if array.ndim == 2 and array.shape[1] == out:
        return array.argmax(axis=1)
    if array.ndim == 1 and array.dtype.kind in "iu" and 0 <= array.min() and array.max() < out:
        return array
    if classes != out:
        raise ValueError(f"`labels` has {classes} classes, but the model has {out} outputs.")
    return index


class ClassSplit(NamedTuple):
    """A matrix split by class, as matrices (k, k) or operators; see `gauss_newton_classes`.

    **Fields:** `between`, `cross`, `within`, `same`, which sum to `total`.
    """

    between: PyTree
    cross: PyTree
    within: PyTree
    same: PyTree
    total: PyTree


class _Means(eqx.Module):
    """Weighted means over the points of a class and over its wrong labels."""

    own: jax.Array  # (n, C) one-hot true class
    weights: jax.Array  # (n, C) w_icc'

    def part(self, part: PyTree, s: jax.Array) -> jax.Array:
        """Of values s_icc' (n, C, ...): w_icc' times what the part sees of them, whose parts sum to w_icc' s_icc'."""
        extra = (1,) * (s.ndim - 2)
        own = self.own.reshape(*self.own.shape, *extra)
        weights = self.weights.reshape(*self.weights.shape, *extra)
        wrong = (1 - own) * weights
        sum_ccl = jnp.einsum("nc,nl...->cl...", self.own, wrong * s)
        w_ccl = jnp.einsum("nc,nl...->cl...", self.own, wrong)
        mean_ccl = _ratio(sum_ccl, w_ccl)
        mean_c = _ratio(sum_ccl.sum(axis=1), w_ccl.sum(axis=1))
        of_point = jnp.einsum("nc,cl...->nl...", self.own, mean_ccl)
        of_class = jnp.einsum("nc,c...->n...", self.own, mean_c)[:, None]
        seen = part[0] * of_class + part[1] * (of_point - of_class) + part[2] * (s - of_point)
        return wrong * seen + part[3] * own * weights * s


def _ratio(a, b):
    return jnp.where(b > 0, a / jnp.where(b > 0, b, 1.0), 0.0)


class GaussNewtonPart(AbstractOperator):
    """One part of the cross-entropy Gauss-Newton matrix, as an operator; made by `gauss_newton_classes`."""

    model: AbstractModel
    params: Params
    x: jax.Array
    own: jax.Array
    part: jax.Array  # a row of PARTS

    @property
    def size(self) -> int:
        return sum(int(np.prod(np.shape(leaf))) for leaf in jax.tree.leaves(self.params))

    def product(self, vector: jax.Array) -> jax.Array:
        unravel = ravel_pytree(self.params)[1]

        def outer(z, dz):
            p = jax.nn.softmax(z, axis=-1)
            along = jnp.sum(p * dz, axis=1, keepdims=True) - dz  # g_icc' . vector for every label c'
            coefficient = _Means(self.own, p).part(self.part, along)
            # The sum over c' of coefficient (p - e_c').
            return coefficient.sum(axis=1, keepdims=True) * p - coefficient

        product = sandwich(self.model, self.params, self.x, unravel(vector), outer)
        return ravel_pytree(product)[0]


@in_float64
def gauss_newton_classes(model: AbstractModel, params: Params, x: ArrayLike, labels: ArrayLike) -> ClassSplit:
    r"""The Gauss-Newton matrix of the cross-entropy, split by class into operators that sum to it exactly.

    **Arguments:** `model` with one output per class; `params`; `x` (n, d); `labels` (n,), or one-hot (n, classes).

    **Returns:** operators `between` (class means, rank $\le C$), `cross` (cross-class means, rank $\le C (C - 2)$),
    `within` (deviations of the points), `same` (the true label), and `total`, the whole matrix.
    """
    params = checked_params(model, params)
    x = inputs(x, "x", model.in_shape)
    out = jax.eval_shape(model, params, x[:1]).shape[1]
    own = np.eye(out)[output_labels(labels, len(x), out)]
    total = GaussNewton(model, params, x, own, "cross_entropy")
    parts = [
        GaussNewtonPart(model, total.params, total.x, jnp.asarray(own), jnp.asarray(part)) for part in PARTS
    ]
    between, cross, within, same = parts
    return ClassSplit(between=between, cross=cross, within=within, same=same, total=total)


class FeatureSplit(NamedTuple):
    r"""Second moments (k, k) of features: `between` class means and `within` classes, with sum `total`.

    `common` is the part of `between` that all classes share, $m m^\top$ for the global mean $m$. `centered`, the rest
    of it, is the covariance of the class means.
    """

    between: np.ndarray
    within: np.ndarray
    total: np.ndarray
    common: np.ndarray

    @property
    def centered(self) -> np.ndarray:
        """The second moment of the centered class means, `between` - `common`."""
        return self.between - self.common


def feature_classes(features: ArrayLike, labels: ArrayLike) -> FeatureSplit:
    r"""The second moment of `features` (n, k), split into class means and deviations from them.

    $$\frac1n \sum_i h_i h_i^\top = \sum_c \frac{n_c}{n} m_c m_c^\top + \frac1n \sum_i (h_i - m_c)(h_i - m_c)^\top$$

    for classes of any sizes $n_c$. `labels` are (n,), or one-hot (n, classes).
    """
    features = inputs(features, "features")
    index, classes = class_labels(labels, len(features))
    own, n = np.eye(classes)[index], len(features)
    means = (own.T @ features) / own.sum(axis=0)[:, None]
    rest = features - means[index]
    between = (means.T * own.mean(axis=0)) @ means
    center = features.mean(axis=0)
    return FeatureSplit(between, rest.T @ rest / n, features.T @ features / n, np.outer(center, center))


@in_float64
def gradient_classes(
    model: AbstractNetwork, params: Params, x: ArrayLike, labels: ArrayLike, layer: int
) -> ClassSplit:
    r"""The second moment of backpropagated gradients at one layer of a classifier, split by classes.

    $d_{icc'}$ is the gradient of the cross-entropy with respect to the layer's outputs (the preactivations of a
    dense layer, all positions and channels of a convolution) if the label of point $i$ were $c'$. The matrix is
    $\frac1n \sum_{icc'} p_i(c')\, d_{icc'} d_{icc'}^\top$, and it splits into the same parts as `gauss_newton_classes`.

    **Arguments:** `model`, an `nk.MLP` or `nk.Network` with one output per class; `params`; `x`; `labels`; `layer` =
    1 ... L, counting layers with parameters.
    """
    if not isinstance(model, AbstractNetwork):
        raise TypeError(f"`model` must be an nk.MLP or nk.Network; got {type(model).__name__}.")
    x = inputs(x, "x", model.in_shape)
    depth = sum(each.has_params() for each in model.layers.layers)
    layer = whole(layer, "layer", 1)
    if layer > depth:
        raise ValueError(f"`layer` must be at most {depth}, the output layer; got {layer}.")
    out = model.layers.shape(model.in_shape)[-1]
    index = output_labels(labels, len(x), out)
    params = checked_params(model, params)
    params = jax.tree.map(lambda leaf: jnp.asarray(numeric(leaf, "params")), params)
    own = jnp.asarray(np.eye(out)[index])
    between, cross, within, same, total = map(
        np.asarray, _gradient_parts(model, params, jnp.asarray(x), own, layer)
    )
    return ClassSplit(between=between, cross=cross, within=within, same=same, total=total)


@jax.jit(static_argnums=4)
def _gradient_parts(model: AbstractNetwork, params: Params, x: jax.Array, own: jax.Array, layer: int):
    lower, upper = model.cut(layer)
    inner = lower(params[:layer], x)
    preactivations = inner.reshape(len(x), -1)

    def above(z):
        return upper(params[layer:], z.reshape(-1, *inner.shape[1:]))

    outputs = above(preactivations)
    p = jax.nn.softmax(outputs, axis=-1)
    jacobian = jax.vmap(jax.jacrev(lambda z: above(z[None])[0]))(preactivations)  # (n, out, width)
    gradients = jnp.einsum("no,now->nw", p, jacobian)[:, None] - jacobian  # (n, label, width)
    means = _Means(own, p)
    moments = [jnp.einsum("nlw,nlv->wv", means.part(part, gradients), gradients) for part in PARTS]
    return *(moment / len(x) for moment in moments), sum(moments) / len(x)
