r"""Moments of random ReLU networks with weights of any symmetric distribution, exact at any width.

For every input, a neuron is active with probability 1/2, independently of even functions of the weights. So three
numbers follow a recursion over layers. For vectors $a$ and $b$ of a layer, such as columns of its derivative with
respect to the input,

$$A = \mathbb{E}[\lVert a\rVert^2 \lVert b\rVert^2], \qquad C = \mathbb{E}[(a \cdot b)^2], \qquad
B = \mathbb{E}\Big[\sum_i a_i^2 b_i^2\Big], \qquad M = A + 2 C + (\mu_4 - 3) B.$$

With weights of variance $v$ and fourth moment $\mu_4 v^2$, slopes $s$ and $n$ neurons in the next layer,

$$B' = n\, \mathbb{E}[s^4]\, v^2 M, \qquad A' = B' + n (n - 1)\, \mathbb{E}[s^2]^2\, v^2 A, \qquad
C' = B' + n (n - 1)\, \mathbb{E}[s^2]^2\, v^2 C,$$

and $v^2 M$ is the moment of an output. Only $B$ depends on the distribution of the weights: its weight falls as
1/width.
"""

import equinox as eqx
import numpy as np

from ..._base.check import finite_result, real_number
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...models.networks.chain import Chain
from ...models.networks.network import AbstractNetwork
from .relu_paths import without_biases


class ReluMomentsResult(Result, eqx.Module):
    r"""Moments of one output $z$ of a random ReLU network, and of $g = \lVert dz/dx\rVert^2$.

    **Fields:** `second` $\mathbb{E}[z^2]$ and `fourth` $\mathbb{E}[z^4]$, each (n,); `gradient_second` $\mathbb{E}[g]$
    and `gradient_fourth` $\mathbb{E}[g^2]$,
    equal at all inputs; `kurtosis` of the weights.
    """

    second: np.ndarray
    fourth: np.ndarray
    gradient_second: float
    gradient_fourth: float
    kurtosis: float

    @property
    def excess(self) -> np.ndarray:
        """The excess kurtosis (n,) of z, 0 for a normal distribution."""
        return self.fourth / self.second**2 - 3


@in_float64
def relu_moments(net: AbstractNetwork, x: ArrayLike, kurtosis: float = 3.0) -> ReluMomentsResult:
    """Second and fourth moments of outputs and input gradients over initializations, for any symmetric weights.

    **Arguments:** `net`, a relu-like `nk.MLP` with `bias_var` = 0, whose variances may differ from layer to layer; `x`
    (n, d), without zero rows; `kurtosis` >= 1, the fourth moment of the weights divided by their squared variance: 3
    for normal weights, 1.8 for uniform ones. The distribution must be continuous. `nk.models.symmetric_init` draws
    networks with such weights.
    """
    chain, activation = without_biases(net, "relu_moments", "The fourth moment with weights of any law")
    x = chain.inputs(x)
    if np.any(np.sum(x * x, axis=1) == 0):
        raise ValueError("`x` must not contain the input 0, where all outputs are 0.")
    kurtosis = float(real_number(kurtosis, "kurtosis"))
    if not 1 <= kurtosis <= 1e6:
        raise ValueError(f"`kurtosis` must be from 1 to 1e6; got {kurtosis:g}.")
    squares = np.sum(x * x, axis=1)
    m = float(chain.in_dim)
    start = np.column_stack([squares**2, squares**2, np.sum(x**4, axis=1)])
    # All pairs of unit vectors: equal ones, and those at right angles.
    start = np.vstack([start, [m * m, m, m]])
    with np.errstate(over="ignore", invalid="ignore"):
        second, fourth = _through(chain, activation, np.append(squares, m), start, kurtosis)
    finite_result((second, fourth), "`kurtosis`, `x` or a variance is")
    return ReluMomentsResult(second[:-1], fourth[:-1], float(second[-1]), float(fourth[-1]), kurtosis)


def _through(
    chain: Chain, activation: PiecewiseLinear, square: np.ndarray, start: np.ndarray, kurtosis: float
):
    """E[z^2] and E[z^4] of one output, from squared lengths and (A, C, B), each row its own."""
    power2, power4 = (0.5 * (activation.right**k + activation.left**k) for k in (2, 4))
    a, c, b = start.T
    for stage in chain.stages:
        n, v = stage.dense.width, stage.gain / stage.fan_in
        both = v * v * (a + 2 * c + (kurtosis - 3) * b)
        if stage is chain.stages[-1]:
            return v * square, both
        b = n * power4 * both
        others = n * (n - 1) * (power2 * v) ** 2
        a, c, square = b + others * a, b + others * c, n * power2 * v * square
    raise AssertionError("a network has an output")
