"""The coordinate check: how far the neurons of every layer move in training, as a function of the width."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, targets, truth, whole, wholes
from ..._base.keys import Key
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...dynamics.algorithms.adaptive import Adam
from ...dynamics.algorithms.spectral import GradientDescent
from ...dynamics.simulation.simulate import simulate
from ...models.networks.chain import chain_or_none
from ...models.networks.maximal_update import MaximalUpdate
from ...models.networks.network import AbstractNetwork
from ..measuring import measure
from .first_move import first_move, has_moves
from .width_powers import powers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 16  # of several hidden layers: averages of three inputs in each


class CoordinateCheckResult(Result, eqx.Module):
    """The root mean square change of preactivations in a few steps of training, over neurons and inputs, layer by
    layer.

    **Fields:** `widths` (k,); `moves` (k, layers), means over networks, and their standard errors `sem`; the last
    layer is the outputs; `slopes` (layers,), the fitted powers of the width, and `slopes_sem`; `predicted` (layers,),
    the powers predicted by the theory of the first step. If all are 0, every layer learns at the same rate at any
    width, and a learning rate carries over. `expected` (k, layers): the moves predicted by `nk.statistics.first_move`;
    nan unless `net` is an `nk.MLP` or alternating `Dense` and `Activation`, with at most 16 points if it has several
    hidden layers, and `algorithm` is one step
    of gradient descent.
    """

    widths: np.ndarray
    moves: np.ndarray
    sem: np.ndarray
    slopes: np.ndarray
    slopes_sem: np.ndarray
    predicted: np.ndarray
    expected: np.ndarray

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the change of every layer against the width on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        names = [
            f"{'outputs' if i == len(self.slopes) else f'layer {i}'}: width^{slope:.2f}"
            for i, slope in enumerate(self.slopes, 1)
        ]
        return draw_lines(
            self.widths, self.moves, axes, errors=2 * self.sem, labels=names, xlabel="width",
            ylabel="move of preactivations", log="xy",
        )  # fmt: skip


@in_float64
def coordinate_check(
    net: AbstractNetwork | MaximalUpdate,
    x: ArrayLike,
    y: ArrayLike,
    algorithm: GradientDescent | Adam,
    widths: Any = (64, 256, 1024),
    key: Key = 0,
    draws: int = 32,
    *,
    factors: bool = True,
) -> CoordinateCheckResult:
    """A coordinate check: trains `net` at several widths for a few steps and measures how much each layer moves.

    **Arguments:** `net`, an `nk.MLP`, `nk.MaximalUpdate` or `nk.Network` of layers that `nk.MaximalUpdate` supports;
    `x` (n, *in_shape); `y` (n,) or (n, out); `algorithm`, `nk.GradientDescent` or `nk.Adam`, with a few steps and a
    small learning rate; `widths`, at least two: of all hidden layers of an `nk.MLP`, or of the first layer of other
    networks, whose other widths scale in proportion; `key`; `draws`, networks per width; `factors`: whether learning
    rates are multiplied by `net.lr_factors()`.
    """
    network = net.net if isinstance(net, MaximalUpdate) else net
    if not isinstance(network, AbstractNetwork) or network.readout() is None:
        raise TypeError("`net` must be an nk.MLP or nk.Network with hidden layers, or an nk.MaximalUpdate.")
    if chain_or_none(network) is None:
        MaximalUpdate(network)  # raises if its layers cannot be made wider together
    if not isinstance(algorithm, GradientDescent | Adam):
        raise TypeError(f"`algorithm` must be GradientDescent or Adam; got {type(algorithm).__name__}.")
    if isinstance(algorithm, Adam) and factors and not _maximal(net):
        raise ValueError(
            '`factors` for Adam exist only for parametrization "mup" and nk.MaximalUpdate: pass `factors=False`.'
        )
    if not algorithm.steps:
        raise ValueError("`steps` of `algorithm` must be at least 1: without a step no layer moves.")
    truth(factors, "factors")
    sizes = wholes(widths, "widths")
    if len(set(sizes)) < 2:
        raise ValueError(f"`widths` must hold at least two widths; got {widths}.")
    x = inputs(x, "x", net.in_shape)
    y = targets(y, len(x), out=network.layers.shape(net.in_shape)[-1])
    whole(draws, "draws", 2, most=100_000)
    nets = [net.of_width(size) for size in sizes]
    found = [_moves(each, x, y, algorithm, factors, key, draws) for each in nets]
    moves, sem = (np.array([getattr(each, part) for each in found]) for part in ("mean", "sem"))
    if not (moves > 0).all():
        raise ValueError("a layer does not move at all: `x` and `y` must give every layer a gradient.")
    away = np.log(sizes) - np.mean(np.log(sizes))
    share = away / (away @ away)
    adam = isinstance(algorithm, Adam)
    narrow = net.of_width(64)
    wide = narrow.of_width(128)  # exactly twice every width, however those of `net` were rounded
    rates, wide_rates = (_factors(each, adam, factors) for each in (narrow, wide))
    return CoordinateCheckResult(
        np.array(sizes), moves, sem, share @ np.log(moves), np.sqrt(share**2 @ (sem / moves) ** 2),
        powers(narrow, wide, rates, wide_rates, adam),
        np.array([_expected(each, x, y, algorithm, factors, moves.shape[1]) for each in nets]),
    )  # fmt: skip


def _maximal(net: AbstractNetwork | MaximalUpdate) -> bool:
    return isinstance(net, MaximalUpdate) or net.maximal


def _factors(net: Any, adam: bool, factors: bool) -> Any:
    if not factors:
        return None
    return net.lr_factors("adam" if adam else "sgd") if _maximal(net) else net.lr_factors()


def _moves(net: Any, x, y, algorithm, factors: bool, key, draws: int):
    outputs = net.net.layer_outputs if isinstance(net, MaximalUpdate) else net.layer_outputs

    def one(params):
        after = simulate(net, params, x, y, algorithm, lr_factors=None if factors else 1.0).params
        both = zip(outputs(params, x), outputs(after, x), strict=True)
        return jnp.stack([jnp.sqrt(jnp.mean((new - old) ** 2)) for old, new in both])

    return measure(one, net, draws, key)


def _expected(net: Any, x, y, algorithm, factors: bool, layers: int) -> np.ndarray:
    """The moves by theory, or nan."""
    chain = chain_or_none(net)
    if (
        chain is None
        or not isinstance(algorithm, GradientDescent)
        or algorithm.steps != 1
        or not all(map(has_moves, chain.activations))
        or (len(chain.widths) > 1 and len(x) > _MOST_POINTS)
    ):
        return np.full(layers, np.nan)
    return first_move(net, x, y, algorithm.lr, factors=factors)
