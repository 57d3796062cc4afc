"""Learning rates predicted from the infinite-width kernel."""

import equinox as eqx
import numpy as np

from ..._base.check import inputs
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.wide.network import NTK
from ...models.networks.network import AbstractNetwork, require_wide
from .layer_shares import layer_settings, tangent_shares


class LearningRatesResult(Result, eqx.Module):
    r"""Learning rates of gradient descent on $\frac12 \sum (z - y)^2$, with `net.lr_factors()` applied.

    **Fields:** `largest` and `smallest` eigenvalue of the tangent kernel matrix; `shares` (layers, 2): the
    contributions of the weights and the biases of each layer to the tangent kernel, averaged over the inputs;
    `plain_shares`, the same with one learning rate for all parameters and no factors.
    """

    largest: float
    smallest: float
    shares: np.ndarray
    plain_shares: np.ndarray

    @property
    def stable(self) -> float:
        r"""The largest stable learning rate, $2 / \lambda_{\max}$."""
        return 2.0 / self.largest

    @property
    def best(self) -> float:
        r"""The best constant rate, $2 / (\lambda_{\max} + \lambda_{\min})$: the slowest direction contracts fastest."""
        return 2.0 / (self.largest + self.smallest)

    @property
    def condition(self) -> float:
        r"""The condition number $\lambda_{\max} / \lambda_{\min}$; inf if the kernel is singular to rounding."""
        return self.largest / self.smallest if self.smallest > 1e-14 * self.largest else float(np.inf)

    @property
    def contraction(self) -> float:
        """The contraction of the slowest direction per step at `best`: $(c - 1)/(c + 1)$ with $c$ = `condition`."""
        return float(1.0 - 2.0 / (1.0 + self.condition))


@in_float64
def learning_rates(net: AbstractNetwork, x: ArrayLike) -> LearningRatesResult:
    r"""Stable and best learning rates for `x` from infinite-width theory, and each layer's share of the tangent
    kernel.

    In an MLP, the weights of layer $l$ contribute $C_W \mathbb{E}[s^2]_{l-1} \prod_{m \ge l} C_W
    \mathbb{E}[s'^2]_m$ to the tangent kernel at one input, and its biases $C_b \prod_{m \ge l} C_W
    \mathbb{E}[s'^2]_m$. In "ntk" scaling these are of order one at any width. In "standard" scaling a single learning
    rate multiplies them by $\text{fan-in} / C_W$ and $1 / C_b$, so weights need rates of order 1/fan-in; in
    "mean_field" scaling it divides them by the last width, so all layers need rates of that order. `net.lr_factors()`
    corrects both.

    **Arguments:** `net`, an `nk.MLP` or `nk.Network`; `x` (n, *in_shape), the training inputs.
    """
    require_wide(net, "learning_rates")
    x = inputs(x, "x", net.in_shape)
    settings = layer_settings(net)
    weights, biases = tangent_shares(net, x, len(settings.bias_var))
    shares = np.stack([weights, settings.bias_var * biases], axis=1)
    # A bias of variance 0 has factor 0 in "standard" scaling, and learns without it.
    learns = settings.factors > 0
    plain = np.where(learns, shares, np.stack([weights, biases], axis=1)) / np.where(
        learns, settings.factors, 1.0
    )
    lam = np.linalg.eigvalsh(NTK(net)(x)) if len(x) > 1 else np.array([shares.sum()])
    return LearningRatesResult(float(lam[-1]), max(float(lam[0]), 0.0), shares, plain)
