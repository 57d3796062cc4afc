r"""The first change of the tangent kernel of a random ReLU network in training, at any width.

A step of gradient descent on $\frac12 (z - y)^2$ at one input changes
$\Theta = \sum_l \lambda_l \lVert h_{l-1}\rVert^2 \lVert\delta_l\rVert^2$ by
$-\eta\, (z - y)\, \nabla z \cdot \nabla \Theta$. With $A$ the Jacobian from $z_k$ to $h_{l-1}$ and
$\lambda_l = C_W / \text{fan-in}$, each pair of layers $k < l$ gives

$$4 \lambda_k \lambda_l\, z\, \lVert h_{k-1}\rVert^2 \lVert\delta_l\rVert^2\;
h_{l-1} \cdot A A^\top W_l^\top \delta_l .$$

At one input, the signs of neurons are effectively independent of all lengths, so the mean is a product of
$\mathbb{E} \lVert h_{k-1}\rVert^4$, $\mathbb{E} \operatorname{tr}(A^\top A)^2$ and
$\mathbb{E} \lVert\delta_l\rVert^4$, each of which follows by a recursion over layers.
"""

import numpy as np

from ..._base.types import ArrayLike
from ...models.networks.network import AbstractNetwork
from .relu_paths import without_biases


def relu_ntk_change(net: AbstractNetwork, x: ArrayLike) -> np.ndarray:
    r"""The mean change of the tangent kernel, $\mathbb{E}[z\, \nabla z \cdot \nabla \Theta]$, exact at any width: (n,).

    A step of gradient descent on $(z - y)^2/2$ at an input changes $\Theta(x, x)$ by $-\eta$ times this mean on
    average, to first order in $\eta$, for every y. Relative to $\mathbb{E}[\Theta]^2$ it grows as depth/width while
    that is small, and faster beyond.

    **Arguments:** `net`, a relu (or leaky relu, abs, linear) network with one output and `bias_var` = 0, in "ntk"
    scaling; `x` (n, d).
    """
    chain, activation = without_biases(net, "relu_ntk_change", "The change of the tangent kernel")
    if chain.parametrization != "ntk" or chain.out_dim != 1:
        raise ValueError('`net` must have one output and parametrization="ntk".')
    x = chain.inputs(x)
    power2, power4 = (0.5 * (activation.right**k + activation.left**k) for k in (2, 4))
    widths, last = chain.widths, len(chain.stages)
    lam = [0.0, *(stage.weight_var / stage.fan_in for stage in chain.stages)]  # of layer l at [l]

    def same(n: int) -> float:  # one neuron twice
        return n * power4

    def two(n: int) -> float:  # two neurons
        return n * (n - 1) * power2**2

    ahead, behind = [1.0], {last: 1.0}  # E|h_k|^4 over |x|^4, and E|delta_l|^4
    for k, n in enumerate(widths, start=1):
        ahead.append(lam[k] ** 2 * (3 * same(n) + two(n)) * ahead[-1])
    for l in range(last - 1, 0, -1):
        n = widths[l - 1]
        behind[l] = lam[l + 1] ** 2 * (3 * same(n) + two(n)) * behind[l + 1]
    total = 0.0
    for k in range(1, last):
        n = widths[k - 1]
        squared, traced = same(n), same(n) + two(n)  # E tr N^2 and E (tr N)^2 of N = A A^T
        for l in range(k + 1, last + 1):
            total += 4 * (lam[k] * lam[l]) ** 2 * ahead[k - 1] * squared * behind[l]
            if l < last:
                n = widths[l - 1]
                both = same(n) * (traced + 2 * squared)
                squared, traced = (lam[l] ** 2 * (two(n) * part + both) for part in (squared, traced))
    return total * np.sum(x * x, axis=1) ** 2
