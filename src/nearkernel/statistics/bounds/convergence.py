r"""A width threshold above which gradient flow provably reaches zero loss, and its rate.

With $\sigma^2 = \lambda_0$ the smallest eigenvalue of the tangent kernel $J J^\top$ at initialization and $r$ the
residual, let $J$ change by at most $M$ times the distance traveled. Since
$\frac{d}{dt} \lVert r\rVert \le -\sigma(t)\, \lVert\dot\theta\rVert$, a flow along which $\sigma(t) \ge \sigma/2$
travels at most $2 \lVert r(0)\rVert / \sigma$; so $J$ moves by at most $2 M \lVert r(0)\rVert / \sigma$, and
$\sigma(t)$ indeed stays above $\sigma/2$ if

$$4 M \lVert r(0)\rVert \le \lambda_0.$$

Since $\lVert r\rVert$ then falls at least as $e^{-\lambda_0 t/4}$, weights that move at most at the speed
$c \lVert r\rVert$ move at most by $4 c \lVert r(0)\rVert / \lambda_0$.

For one hidden layer $M$ falls as $1/\sqrt{\text{width}}$, which makes this a condition on the width,

$$\text{width} \ge \frac{32}{\lambda_0^2} \sup(s'')^2 \max(v)^2\, C_{W_1}^2 C_{W_2}
\sum_a \frac{\lVert x_a\rVert^4}{d^2}\, L(0), \qquad L = \tfrac12 \sum r^2 .$$

With $m$ inputs of length $\sqrt d$ the sum is $m$, and with the mean loss $L/m$ it reads
$\text{width} \ge c\, m^2 (L/m) / \lambda_0^2$.
"""

from typing import Any

import equinox as eqx
import numpy as np

from ..._base.check import numeric, targets
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.averages.breaks import slope_of
from ...kernels.empirical.ntk import EmpiricalNTK
from ...models.base import Params
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params
from .concentration import supremum


class Guarantee(Result, eqx.Module):
    r"""A convergence guarantee for gradient flow of the first layer's weights.

    **Fields:** `smallest`, smallest eigenvalue $\lambda_0$ of their tangent kernel at initialization; `loss` at
    initialization, $\frac12 \sum (z - y)^2$; `width` of the network; `threshold`, the smallest width for which
    convergence is guaranteed; `lr_factors`, the tree that freezes all other parameters; `speed`, the maximum speed of a
    neuron's weights divided by $\lVert z - y\rVert$.
    """

    smallest: float
    loss: float
    width: int = eqx.field(static=True)
    threshold: float
    lr_factors: Any
    speed: float

    @property
    def holds(self) -> bool:
        return self.width >= self.threshold

    @property
    def distance(self) -> float:
        r"""$2 \lVert z - y\rVert / \sqrt{\lambda_0}$, the maximum distance of all weights if `holds`."""
        return float(2 * np.sqrt(2 * self.loss / self.smallest)) if self.smallest > 0 else np.inf

    @property
    def neuron_distance(self) -> float:
        r"""$4 c \lVert z - y\rVert / \lambda_0$ with $c$ = `speed`: the largest move of a neuron's weights if `holds`.

        It is of order $1/\sqrt{\text{width}}$.
        """
        return float(4 * np.sqrt(2 * self.loss) * self.speed / self.smallest) if self.smallest > 0 else np.inf

    def bound(self, time: Any) -> np.ndarray:
        r"""$L(0)\, e^{-\lambda_0 t / 2}$, an upper bound on the loss at every `time` if `holds`."""
        return self.loss * np.exp(-0.5 * self.smallest * numeric(time, "time"))

    def linear_bound(self, time: Any) -> np.ndarray:
        r"""$L(0)\, e^{-2 \lambda_0 t}$, a bound at `time` while the smallest eigenvalue is at least $\lambda_0$."""
        return self.loss * np.exp(-2.0 * self.smallest * numeric(time, "time"))


@in_float64
def convergence_guarantee(net: AbstractNetwork, params: Params, x: ArrayLike, y: ArrayLike) -> Guarantee:
    """Checks whether `net` is wide enough to guarantee that gradient flow of its first layer reaches zero loss.

    **Arguments:** `net` in "ntk" scaling with one hidden layer, one output and a smooth activation whose second
    derivative is bounded ("tanh", "erf", "gelu", "sin", ...); `params`, the initial parameters; `x` (n, d); `y` (n,).
    Train with `nk.simulate(..., nk.GradientFlow(), lr_factors=guarantee.lr_factors)`.
    """
    chain = chain_of(net, "convergence_guarantee")
    # a theorem about one hidden layer whose weights alone move
    if len(chain.widths) != 1 or chain.out_dim != 1 or chain.parametrization != "ntk":
        raise ValueError('`net` must be in "ntk" scaling, with one hidden layer and one output.')
    params = checked_params(net, params)
    x = chain.inputs(x)
    y = targets(y, len(x), out=1)
    first, last = chain.stages
    activation = last.activation
    curvature = supremum(slope_of(slope_of(activation)))
    if activation.kinks or curvature == 0.0 or np.isinf(curvature):
        raise ValueError(
            "`net` needs a smooth activation with a bounded second derivative, e.g. tanh or gelu."
        )
    frozen = {"weight": 0.0, "bias": 0.0}
    factors = chain.params([frozen | {"weight": 1.0}, frozen])
    kernel = EmpiricalNTK(net, params, factors)(x)
    smallest = max(float(np.linalg.eigvalsh(kernel)[0]), 0.0)
    residual = np.linalg.norm(np.asarray(net(params, x)) - y)
    lengths = np.sum(x * x, axis=1) / chain.in_dim
    readout = float(np.abs(np.asarray(chain.entries(params)[1]["weight"])).max())
    scale = first.weight_var * last.weight_var**0.5
    change = curvature * readout * scale * float(np.linalg.norm(lengths))  # M sqrt(width)
    threshold = (4 * change * residual / smallest) ** 2 if smallest > 0 else np.inf
    slope = supremum(slope_of(activation))
    width = last.fan_in
    speed = (first.weight_var * last.weight_var) ** 0.5 * slope * readout * np.sqrt(lengths.sum() / width)
    loss = 0.5 * float(residual) ** 2
    return Guarantee(smallest, loss, width, float(threshold), factors, float(speed))
