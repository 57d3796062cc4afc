r"""Margins beyond linear classifiers: of functions of a kernel's space, and of homogeneous networks."""

import equinox as eqx
import jax
import numpy as np

from ..._base.check import inputs, truth
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...kernels.function_space.positivity import KernelLike, positive_gram
from ...kernels.function_space.rkhs import RKHSFunction
from ...models.base import Params
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params
from .margin import max_margin, signs_of


class KernelMarginResult(Result, eqx.Module):
    r"""The maximum-margin classifier $\operatorname{sign}(f(x) + b)$ of a kernel: a hard-margin support vector machine.

    **Fields:** `function` $f$, of minimum norm with $y_i (f(x_i) + b) \ge 1$; `margin`, $1/\lVert f\rVert$; `dual`
    (n,), $a_i \ge 0$ with $f = \sum_i a_i y_i\, k(x_i, \cdot)$; `support`, indices with $a_i > 0$; `b`, 0 without a
    bias.
    """

    function: RKHSFunction
    margin: float
    dual: np.ndarray
    support: np.ndarray
    b: float = 0.0

    @in_float64
    def __call__(self, x_new: ArrayLike) -> np.ndarray:
        """The values $f(x) + b$, (m,), at new points (m, d). Positive values predict the larger label."""
        return self.function(x_new) + self.b


@in_float64
def kernel_margin(
    kernel: KernelLike, x: ArrayLike, labels: ArrayLike, bias: bool = False
) -> KernelMarginResult:
    r"""The maximum-margin classifier of a kernel: $\min \lVert f\rVert$ subject to $y_i (f(x_i) + b) \ge 1$.

    By the representer theorem it equals `max_margin` for any features with this kernel; a square root of the kernel
    matrix serves as features.

    **Arguments:** `kernel`, positive semidefinite; `x` (n, d); `labels` (n,), two values, of which the larger is the
    positive class; `bias`, whether to fit b. Raises `ValueError` if no function of the space separates the data.
    """
    x, bias = inputs(x), truth(bias, "bias")
    signs = signs_of(labels, len(x))
    values, vectors = np.linalg.eigh(positive_gram(kernel, x))
    real = values > len(x) * np.finfo(float).eps * values[-1]
    try:
        found = max_margin(vectors[:, real] * np.sqrt(values[real]), labels, bias)
    except ValueError:
        raise ValueError(
            "no function in the space of `kernel` separates `x` by `labels`: there is no margin."
        ) from None
    return KernelMarginResult(
        RKHSFunction(kernel, x, found.dual * signs), found.margin, found.dual, found.support, found.b
    )


@in_float64
def normalized_margin(net: AbstractNetwork, params: Params, x: ArrayLike, labels: ArrayLike) -> float:
    r"""The normalized margin $\min_i y_i z(x_i) / \lVert\theta\rVert^k$ of a network of homogeneity degree $k$.

    It does not change when the weights are rescaled. Once the data are separated, gradient flow on an exponential or
    logistic loss increases it.

    **Arguments:** `net`, an `nk.MLP` with one output and ReLU-like activations (its degree is its number of layers);
    `params`, with biases 0 or `bias_var` = 0 in "ntk" scaling; `x` (n, d); `labels` (n,), two values.
    """
    chain = chain_of(net, "normalized_margin", mean_field=True)
    if chain.out_dim != 1:
        raise ValueError(f"`net` must have one output; got {chain.out_dim}.")
    if not all(isinstance(each, PiecewiseLinear) for each in chain.activations):
        raise ValueError("`net` must have relu-like activations: others are not homogeneous.")
    params = checked_params(net, params)
    x = chain.inputs(x)
    signs = signs_of(labels, len(x))
    own = chain.entries(params)
    if any(np.any(stage.affine(entry)[1]) for stage, entry in zip(chain.stages, own, strict=True)):
        raise ValueError(
            "`params` must have biases 0: a network with biases is not homogeneous in its weights."
        )
    square = sum(float(np.sum(np.asarray(entry["weight"]) ** 2)) for entry in own)
    return float(np.min(signs * np.asarray(_outputs(net, params, x))) / square ** (len(own) / 2))


_outputs = jax.jit(lambda net, params, x: net(params, x)[:, 0])
