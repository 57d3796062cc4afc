r"""How much signals and gradients differ between networks of finite width, to order 1/width.

Four relative variances are carried from layer to layer, at one input, already divided by the widths:

- $v$ of the variance $K$ of the signal, $v' K'^2 = C_W^2 \operatorname{Var}(s^2)/n + \chi_\parallel^2 v K^2$;
- $d$ of $K$ with the squared gradient $g$;
- $a$ of $g$ from neuron to neuron, and $b$ of $g$ along one direction.

A gradient's own spread is $a + 2 b$, as for a $\chi^2$ variable. For ReLU, $v = a + 2 b = 5 \sum 1/n$.
"""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
import scipy.special

from ... import activations
from ..._base.check import positive
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.averages.breaks import on_numpy, slope_of
from ...activations.averages.series import Series, nodes_per_row, series
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class GradientSpreadResult(Result, eqx.Module):
    r"""Relative variances over initializations, to order 1/width, for each layer and input: all (layers, n).

    **Fields:** `mean_gradient`, $\mathbb{E}[g]$ of the squared derivative $g$ of a neuron with respect to the
    preactivations of the first layer; `gradient`, $\operatorname{Var}(g) / \mathbb{E}[g]^2$; `signal`,
    $\operatorname{Var}(v) / \mathbb{E}[v]^2$ of a neuron's variance $v$ given the layer below, which is one third of
    its excess kurtosis.
    """

    mean_gradient: np.ndarray
    signal: np.ndarray
    gradient: np.ndarray

    def bad_draw(self, factor: float = 2.0) -> np.ndarray:
        r"""The probability (n,) that the output's gradient is off by more than `factor`, if $\ln g$ is normal.

        For small variances the variance of $\ln g$ is the relative variance of $g$; its mean is chosen to give the
        exact $\mathbb{E}[g]$.
        """
        if positive(factor, "factor") <= 1:
            raise ValueError(f"`factor` must be greater than 1; got {factor}.")
        return outside(self.gradient[-1], factor)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the relative variance of squared gradients by layer, one line per input, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        number = np.arange(1, len(self.gradient) + 1)
        return draw_lines(
            number, self.gradient, axes, xlabel="layer", ylabel="relative variance of squared gradients"
        )


def outside(variance: Any, factor: float) -> np.ndarray:
    """P(g < E[g]/factor^2 or g > factor^2 E[g]) of a log-normal g whose logarithm has this variance."""
    deviation = np.sqrt(np.maximum(variance, 1e-300))
    reach = 2 * np.log(factor) / deviation
    return scipy.special.ndtr(-reach + deviation / 2) + scipy.special.ndtr(-reach - deviation / 2)


@in_float64
def gradient_spread(net: AbstractNetwork, x: ArrayLike) -> GradientSpreadResult:
    """How much signals and gradients of networks like `net` vary over initializations.

    **Arguments:** `net`, alternating `Dense` and `Activation`, such as an `nk.MLP`, in "ntk" or "standard" scaling,
    of any activations, variances and widths; `x` (n, d).

    **Returns:** a `GradientSpreadResult`, layer $l$ in row $l - 1$. It is first order in depth/width: where it reaches
    1, it still estimates the spread of the logarithms, but moments are dominated by rare draws.
    """
    chain = chain_of(net, "gradient_spread")
    first, *hidden = chain.stages
    x = chain.inputs(x)
    k = first.bias_var + first.weight_var * np.sum(x * x, axis=1) / first.fan_in
    zero = np.zeros(len(x))
    mean, v, d, a, b = np.ones(len(x)), zero, zero, zero, zero
    rows = [(mean, v, a + 2 * b)]
    for stage in hidden:
        at, n, c = averages(stage.activation, k), stage.fan_in, stage.weight_var
        chi, par, bend = c * at["11"], c * at["par"], c * at["bend"]
        moved = bend / chi * k  # relative change of the squared slope by that of the variance
        k_next = stage.bias_var + c * at["00"]
        a = a + (at["1111"] / at["11"] ** 2 - 1) / n + moved**2 * v + 2 * moved * d
        b = b + at["1111"] / at["11"] ** 2 / n
        shared = (at["0011"] / (at["00"] * at["11"]) - 1) / n * (c * at["00"] / k_next)
        d = shared + par * k / k_next * (moved * v + d)
        v = (c / k_next) ** 2 * (at["0000"] - at["00"] ** 2) / n + (par * k / k_next) ** 2 * v
        k, mean = k_next, mean * chi
        rows.append((mean, v, a + 2 * b))
    return GradientSpreadResult(*(np.stack(column) for column in zip(*rows, strict=True)))


def averages(activation: activations.AbstractActivation, k: np.ndarray) -> dict[str, np.ndarray]:
    """Over z ~ N(0, k): products of s ("0") and s' ("1"), and the derivatives by k of E[s^2] and E[s'^2]."""
    expansion = activation if isinstance(activation, Series) else series(activation, "activation")
    k = np.maximum(k, 1e-12)
    z, weights = nodes_per_row(expansion.panels(float(k.max())), k)
    u = np.sqrt(k) * z
    s = on_numpy(expansion.function)(u)
    slope = on_numpy(slope_of(expansion.function))(u)
    products = {"00": s * s, "11": slope**2, "0000": s**4, "0011": (s * slope) ** 2, "1111": slope**4}
    found = {name: np.sum(weights * value, axis=0) for name, value in products.items()}
    for name, value in (("par", products["00"]), ("bend", products["11"])):
        found[name] = np.sum(weights * value * (z * z - 1), axis=0) / (2 * k)  # by parts: kinks do not matter
    return found
