r"""The expected loss of trained networks of every depth, to order 1/width: which depth is best at which width.

Each row is left out in turn and predicted by networks trained on the others. All tensors are made once,
and a layer of the deepest network is the output of a shallower one: all depths and rows cost one propagation.
"""

import equinox as eqx
import jax
import numpy as np

from ..._base.check import inputs, positive, targets
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...dynamics.algorithms.losses import Squared
from ...dynamics.algorithms.spectral import GradientDescent, GradientFlow, SpectralAlgorithm
from ...models.networks.chain import chain_of
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork
from ...statistics.width.fluctuations import Fluctuations, fluctuations
from ..theory import Problem
from .exact_training import ExactTraining
from .forecast import FiniteForecast
from .theory import FiniteWidth


class DepthLossesResult(Result, eqx.Module):
    r"""The expected leave-one-out loss $\frac12 \lVert f - y\rVert^2$, averaged over rows, for each depth.

    **Fields:** `depths` (L,); `bias` and `variance` (L,), halves of squared bias and variance at infinite width;
    `bias_slope` and `variance_slope` (L,), corrections, to be divided by the width and added; `expansion` (L,),
    `width` times `expansion` of `FiniteForecast`, the median over rows: divided by the width it should be below 0.25.
    """

    depths: np.ndarray
    bias: np.ndarray
    variance: np.ndarray
    bias_slope: np.ndarray
    variance_slope: np.ndarray
    expansion: np.ndarray

    def at(self, width: float) -> np.ndarray:
        """The losses (L,) of networks with this hidden width."""
        slope = self.bias_slope + self.variance_slope
        return self.bias + self.variance + slope / positive(width, "width", finite=False)

    def best(self, width: float) -> int:
        """The depth with the smallest loss at this width."""
        return int(self.depths[np.argmin(self.at(width))])


@in_float64
def depth_losses(
    net: AbstractNetwork, x: ArrayLike, y: ArrayLike, algorithm: SpectralAlgorithm | None = None
) -> DepthLossesResult:
    """The expected loss, to order 1/width, of trained networks of every depth up to that of `net`.

    Each row is left out in turn and predicted by networks trained on the others.

    **Arguments:** `net`, an `nk.MLP` whose hidden layers have equal widths, activations and variances; `x` (n, d), at
    most a dozen rows; `y` (n,) or (n, out); `algorithm`, same as `nk.forecast(..., theory=nk.FiniteWidth())`.
    """
    mlp = chain_of(net, "depth_losses").mlp()
    algorithm = GradientFlow() if algorithm is None else algorithm
    if not mlp.uniform or len(set(mlp.widths)) != 1:
        raise ValueError(
            "`net` must have the same width, activation, weight_var and bias_var in all hidden layers."
        )
    x = inputs(x, "x", mlp.in_dim)
    y = targets(y, len(x), out=mlp.out_dim)
    if len(np.unique(x, axis=0)) < max(len(x), 2):
        raise ValueError("`x` must have at least two rows, all different: each is left out in turn.")
    problem = Problem(mlp, x, y, algorithm, Squared())
    FiniteWidth().require(problem)
    rows = [
        [_left_out(mlp, x, y, problem.plain, layer, row) for row in range(len(x))]
        for layer in fluctuations(mlp, x)[1:]
    ]
    parts = np.array(rows).transpose(2, 0, 1)  # [part, depth, row]
    bias, variance, bias_slope, variance_slope = parts[:4].mean(axis=2)
    depths, expansion = np.arange(1, len(rows) + 1), np.median(parts[4], axis=1)
    return DepthLossesResult(depths, bias, variance, bias_slope, variance_slope, expansion)


def _left_out(
    net: MLP,
    x: np.ndarray,
    y: np.ndarray,
    algorithm: GradientDescent | GradientFlow,
    layer: Fluctuations,
    row: int,
) -> tuple[float, ...]:
    """Bias, variance, both as slopes over 1/width, and the expansion, of one row."""
    order = np.r_[np.delete(np.arange(len(x)), row), row]
    last = jax.tree.map(lambda array: array[np.ix_(*[order] * array.ndim)], layer)
    training = ExactTraining(net, x[order[:-1]], y[order[:-1]], False, x[[row]], last)
    law = FiniteForecast(training, algorithm, FiniteWidth())
    if not law.ok:
        raise ValueError(f"`algorithm` {law.status}.")
    wide, loss = law.terms[0] - y[row], law.expected_loss(y[[row]])
    bias, variance = float((wide**2).sum()) / 2, float(np.einsum("bibi->", law.cov_terms[0])) / 2
    slopes = float(loss.bias.sum()) - bias, float(loss.variance.sum()) - variance
    return bias, variance, *(law.width * slope for slope in slopes), law.width * law.expansion
