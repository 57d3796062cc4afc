"""The tangent kernel of a random relu network: mean and second moment, at any width."""

import equinox as eqx
import numpy as np

from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...kernels.wide.network import NTK
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork
from .relu_mean_ntk import mean_ntk
from .relu_paths import without_biases


class ReluNTKResult(Result, eqx.Module):
    r"""Moments of the tangent kernel $\Theta$ (of one output) over initializations.

    **Fields:** `mean` (n, n), over networks of these widths. It has a closed form on the diagonal,
    $2 (L + 1) \lVert x\rVert^2 / d$ for $L$ hidden ReLU layers at $C_W = 2$, and off the diagonal for one hidden layer
    and for linear networks. Off the diagonal with more hidden layers it comes from quadrature, with errors below 1e-4
    for three hidden layers, 1e-3 for ten and 3e-3 for thirty, relative to the square root of the product of both
    diagonal entries; they are ten times smaller unless inputs are nearly parallel. `second_moment` (n,),
    $\mathbb{E}[\Theta_{aa}^2]$, exact; `other_output` (n,), $\mathbb{E}[\Theta_{12}^2]$ between two different outputs
    at the same input, exact.
    """

    mean: np.ndarray
    second_moment: np.ndarray
    other_output: np.ndarray

    @property
    def std(self) -> np.ndarray:
        r"""The standard deviation (n,) of $\Theta_{aa}$ over initializations."""
        return np.sqrt(np.maximum(self.second_moment - np.diagonal(self.mean) ** 2, 0.0))

    @property
    def ratio(self) -> float:
        r"""$\mathbb{E}[\Theta_{aa}^2] / \mathbb{E}[\Theta_{aa}]^2$, equal at all inputs: the spread of single networks
        around the mean.

        With $\tau = \sum_l 1/n_l$, it is about $1 + \frac{11}{3} \tau$ for ReLU at small $\tau$ and $e^{5 \tau}/3$ at
        large $\tau$: $e^{5 \tau}$ is its
        order of magnitude, not its value.
        """
        return float(self.second_moment[0] / self.mean[0, 0] ** 2)


@in_float64
def relu_ntk(net: AbstractNetwork, x: ArrayLike) -> ReluNTKResult:
    """Mean and second moment of the tangent kernel of a ReLU (or leaky ReLU, abs, linear) network without biases.

    **Arguments:** `net` with `bias_var` = 0, in "ntk" scaling or with the learning rates of `net.lr_factors()`;
    `x` (n, d), without zero rows.

    **Returns:** a `ReluNTKResult`. With several inputs and two or more hidden layers, the first call for each width
    takes about a second; the number of inputs has little effect.
    """
    chain, activation = without_biases(net, "relu_ntk", "The second moment of the tangent kernel")
    if chain.parametrization == "mean_field":
        raise ValueError('`net` must have parametrization "ntk" or "standard"; got "mean_field".')
    net, x = chain.mlp(), chain.inputs(x)
    size = np.sum(x * x, axis=1) / net.in_dim
    if np.any(size == 0):
        raise ValueError(
            f"`x` must not contain the input 0 (row {int(np.argmin(size))}): its tangent kernel is 0."
        )
    own, other = _second_moments(net, activation)
    return ReluNTKResult(_mean(net, activation, x), own * size**2, other * size**2)


def _mean(net: MLP, activation: PiecewiseLinear, x: np.ndarray) -> np.ndarray:
    """E[Theta]. Off the diagonal it is not that of wide networks if a second hidden layer sees random angles."""
    wide = np.asarray(NTK(net)(x))
    if len(x) == 1 or len(net.widths) < 2 or activation.right == activation.left:
        return wide
    length = np.linalg.norm(x, axis=1)
    angle = np.arccos(np.clip((x / length[:, None]) @ (x / length[:, None]).T, -1.0, 1.0))
    # The law does not depend on which of the two is left.
    small, large = sorted((float(activation.left), float(activation.right)), key=abs)
    gain = float(net.weight_var)
    mean = mean_ntk(net.widths, small / large, gain * large**2, angle)
    mean = mean * (gain * np.outer(length, length) / net.in_dim)
    np.fill_diagonal(mean, np.diagonal(wide))
    return mean


def _second_moments(net: MLP, activation: PiecewiseLinear) -> tuple[float, float]:
    """E[Theta_11^2] and E[Theta_12^2] at an input with |x|^2 = d.

    With g the conditional variance of a layer's neurons and t that of its kernel, what is carried from layer to layer
    are the averages of g^2, g t and t^2, for equal (gg, gt, tt) and for crossed (gt_cross, tt_cross) neurons.
    """
    c = float(net.weight_var)
    power2, power4 = (0.5 * (activation.right**k + activation.left**k) for k in (2, 4))
    gg, gt, tt, gt_cross, tt_cross = c * c, c * c, c * c, 0.0, 0.0
    for n in net.widths:

        def mixed(same, crossed, n=n):
            return c**2 * (power4 / n * (same + 2 * crossed) + (1 - 1 / n) * power2**2 * same)

        def crossing(same, crossed, n=n):
            return c**2 * (power4 / n * (same + 2 * crossed) + (1 - 1 / n) * power2**2 * crossed)

        gg = c**2 * (3 * power4 / n + (1 - 1 / n) * power2**2) * gg
        tt, tt_cross = gg + 2 * mixed(gt, gt_cross) + mixed(tt, tt_cross), crossing(tt, tt_cross)
        gt, gt_cross = gg + mixed(gt, gt_cross), crossing(gt, gt_cross)
    return tt + 2 * tt_cross, tt_cross
