r"""How far the neurons of every layer move in the first step of gradient descent, computed from kernels.

With residuals $e = f - y$ of the first outputs, the tangent kernel $\Theta$ of a layer's preactivations (each layer
with its own rate), the variance $B$ of its entries between different neurons, and the covariance $G$ of
$\sqrt N\, df/dz$,

$$\mathbb{E}[(\Delta z_x)^2] = \eta^2 \sum_{ab} e_a e_b\, G_{ab}
\left[\frac{\Theta_{xa} \Theta_{xb}}{N_l} + \frac{B_{xab}}{N_{l-1}}\right].$$

From layer to layer, $\Theta'$ is the contribution of the layer's own weights, times their rates, plus
$C\, \mathbb{E}[s' s']\, \Theta$, and

$$B'_{xab} = C^2 \left\{\mathbb{E}[s'_x s'_x s'_a s'_b]\, \Theta_{xa} \Theta_{xb}
+ \frac{N_l}{N_{l-1}}\, \mathbb{E}[s'_x s'_x]\, \mathbb{E}[s'_a s'_b]\, B_{xab}\right\}.$$

$B$ is the contribution of the layers below: every neuron moves with all others of its layer. Outputs move by
$-\eta\, \Theta e$.
"""

from typing import Any, NamedTuple

import numpy as np

from ..._base.check import positive, targets, truth
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.base import AbstractActivation
from ...activations.closed import PiecewiseLinear
from ...kernels.wide.network import activation_averages
from ...models.networks.chain import Chain, chain_of
from ...models.networks.network import AbstractNetwork
from ..averages.piecewise import Pieces
from ..averages.quadrature import Smooth
from ..averages.relu_family import Folded

_SPACING, _REACH = 0.05, 40.0  # of the logarithm of the integral's variable


@in_float64
def first_move(
    net: AbstractNetwork, x: ArrayLike, y: ArrayLike, lr: float, *, factors: bool = True
) -> np.ndarray:
    """The root mean square change of preactivations in the first step of gradient descent, layer by layer.

    It is the mean over networks of the root mean square over neurons and inputs, to leading order in the width and in
    `lr`. `nk.statistics.coordinate_check` measures it.

    **Arguments:** `net`, an `nk.MLP` with a smooth activation or one of the ReLU family, in any parametrization; `x`
    (n, d) and `y` (n,) or (n, out), training data, one or two dozen points if there are several hidden layers; `lr`;
    `factors`: whether learning rates are multiplied by `net.lr_factors()`.

    **Returns:** (layers,), hidden layers and outputs.
    """
    chain = chain_of(net, "first_move", hidden=True, mean_field=True)
    if not all(map(has_moves, chain.activations)):
        raise ValueError("`net` must have smooth activations, or activations of the ReLU family.")
    x, widths = chain.inputs(x), chain.widths
    y = targets(y, len(x), out=chain.out_dim)
    lr = float(positive(lr, "lr"))
    signals, slopes = zip(*activation_averages(chain.flat(), x), strict=True)
    layers = _layers(chain, x, signals, truth(factors, "factors"))
    kernels = [layer.kernel for layer in layers[:-1]]
    theta, b = layers[0].own, np.zeros((len(x),) * 3)
    moves = []
    for k in range(len(widths)):
        back = slopes[k] * _backward(layers[k + 1 :], slopes[k + 1 :])
        before = widths[k - 1] if k else 1
        squares = theta[:, :, None] * theta[:, None, :] / widths[k] + b / before
        moves.append((back * squares).mean(axis=0))
        c, ratio = layers[k + 1].variance, widths[k] / before
        if k + 1 < len(widths):
            straight = _three_slopes(chain.activations[k], kernels[k])
            carried = ratio * np.diagonal(slopes[k])[:, None, None] * slopes[k]
            b = c**2 * (straight * theta[:, :, None] * theta[:, None, :] + carried * b)
        theta = layers[k + 1].own + c * slopes[k] * theta
    moves.append(theta.T @ theta / (len(x) * chain.out_dim))
    return lr * np.array([mean_root(each, layers[-1].kernel, y) for each in moves])


class _Layer(NamedTuple):
    own: np.ndarray  # what its own parameters add to the tangent kernel, with their rates
    variance: float  # of its weights, times the fan-in
    kernel: np.ndarray  # covariance of its outputs


def _layers(chain: Chain, x: np.ndarray, signals: Any, factors: bool) -> list[_Layer]:
    plain = [{"weight": 1.0, "bias": 1.0}] * len(chain.stages)
    rates = chain.entries(chain.net.lr_factors()) if factors else plain
    layers = []
    for stage, rate, signal in zip(chain.stages, rates, (x @ x.T / chain.in_dim, *signals), strict=True):
        weight, bias = (float(scale) ** 2 for scale in stage.dense.scales(stage.fan_in))
        own = float(rate["weight"]) * weight * stage.fan_in * signal + float(rate["bias"]) * bias
        layers.append(_Layer(own, stage.gain, stage.gain * signal + stage.bias_var))
    return layers


def _backward(above: list[_Layer], slopes: tuple) -> Any:
    """Covariance, times the width, of derivatives by what leaves an activation."""
    total: Any = above[-1].variance
    for layer, slope in zip(above[:-1], slopes, strict=True):
        total = total * layer.variance * slope
    return total


def has_moves(activation: AbstractActivation) -> bool:
    """Whether averages of four slopes are known."""
    return activation.smooth or isinstance(activation, PiecewiseLinear)


def _three_slopes(activation: AbstractActivation, kernel: np.ndarray) -> np.ndarray:
    """E[s'_x s'_x s'_a s'_b] as [x, a, b]."""
    few = lambda four: len(set(four)) < 4
    if not activation.breaks:
        found = Smooth(activation, float(np.diagonal(kernel).max())).averages(kernel, few)
    elif activation.smooth:
        found = Pieces(activation).averages(kernel, False, few)
    else:
        assert isinstance(activation, PiecewiseLinear)
        found = Folded(activation).averages(kernel, False)
    return np.einsum("xxab->xab", found.four(1, 1, 1, 1))


def mean_root(form: np.ndarray, cov: np.ndarray, y: np.ndarray) -> float:
    r"""E[(sum_k e_k^T Q e_k)^(1/2)] for Q = `form` and e_k ~ N(y_k, `cov`), the columns of `y` (n, out).

    $\mathbb{E}\sqrt{M} = \frac{1}{2 \sqrt\pi} \int_0^\infty t^{-3/2} (1 - \mathbb{E}\, e^{-tM})\, dt$, in ln t.
    """
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    lam, turn = np.linalg.eigh(root.T @ form @ root)
    lam = np.maximum(lam, 0.0)
    across = ((turn.T @ root.T @ form @ y) ** 2).sum(axis=1)
    at_mean = float(np.einsum("ak,ab,bk->", y, form, y))
    mean = at_mean + y.shape[1] * lam.sum()
    if mean <= 0:
        return 0.0
    u = np.arange(-_REACH, _REACH + _SPACING, _SPACING)
    t = np.exp(u)[:, None] / mean
    grown = 1.0 + 2.0 * t * lam
    exponent = -t[:, 0] * at_mean + (2.0 * t**2 * across / grown).sum(axis=1)
    transform = np.exp(np.minimum(exponent, 0.0) - 0.5 * y.shape[1] * np.log(grown).sum(axis=1))
    return float(np.sqrt(mean / (4 * np.pi)) * _SPACING * (np.exp(-u / 2) * (1.0 - transform)).sum())
