"""The coordinate check: how far the neurons of every layer move in training, over the width."""

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._check import inputs, targets, whole, wholes
from .._keys import Key
from .._precision import in_float64
from .._result import Result
from ..dynamics import Adam, GradientDescent, simulate
from ..models import MLP
from ._measure import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CoordinateCheckResult(Result, eqx.Module):
    """The root mean square change of preactivations in a few steps of training, over neurons and inputs, layer by
    layer.

    **Fields:** `widths` (k,); `moves` (k, layers), means over networks, and their standard errors `sem`; the last
    layer is the outputs; `slopes` (layers,), the fitted powers of the width, and `slopes_sem`; `predicted` (layers,),
    the powers predicted by the theory of the first step. If all are 0, every layer learns at the same rate at any
    width, and a learning rate carries over.
    """

    widths: np.ndarray
    moves: np.ndarray
    sem: np.ndarray
    slopes: np.ndarray
    slopes_sem: np.ndarray
    predicted: np.ndarray

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the change of every layer against the width on Matplotlib's `axes`."""
        from .._plots.lines import draw_lines

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
    net: MLP,
    x: Any,
    y: Any,
    algorithm: GradientDescent | Adam,
    widths: Any = (64, 256, 1024),
    key: Key = 0,
    draws: int = 32,
    *,
    factors: bool = True,
) -> CoordinateCheckResult:
    """A coordinate check: trains `net` at several widths for a few steps and measures how much each layer moves.

    **Arguments:** `net`, an `nk.MLP`; `x` (n, d); `y` (n,) or (n, out); `algorithm`, `nk.GradientDescent` or
    `nk.Adam`, with few steps and a small learning rate; `widths`, at least two; `key`; `draws`, networks per width;
    `factors`: whether learning rates are multiplied by `net.lr_factors()`.
    """
    if not isinstance(net, MLP) or not net.widths:
        raise TypeError("`net` must be an nk.MLP with hidden layers.")
    if not isinstance(algorithm, GradientDescent | Adam):
        raise TypeError(f"`algorithm` must be GradientDescent or Adam; got {type(algorithm).__name__}.")
    if isinstance(algorithm, Adam) and factors and net.parametrization != "mup":
        raise ValueError('`factors` for Adam exist only for parametrization "mup": pass `factors=False`.')
    sizes = wholes(widths, "widths")
    if len(set(sizes)) < 2:
        raise ValueError(f"`widths` must hold at least two widths; got {widths}.")
    x = inputs(x, "x", net.in_shape)
    y = targets(y, len(x), out=net.out_dim)
    whole(draws, "draws", 2, most=100_000)
    found = [_moves(_resized(net, size), x, y, algorithm, factors, key, draws) for size in sizes]
    moves, sem = (np.array([getattr(each, part) for each in found]) for part in ("mean", "sem"))
    away = np.log(sizes) - np.mean(np.log(sizes))
    share = away / (away @ away)
    return CoordinateCheckResult(
        np.array(sizes), moves, sem, share @ np.log(moves), np.sqrt(share**2 @ (sem / moves) ** 2),
        _predicted(net, algorithm, factors),
    )  # fmt: skip


def _resized(net: MLP, width: int) -> MLP:
    return dataclasses.replace(net, widths=(width,) * len(net.widths))


def _moves(net: MLP, x, y, algorithm, factors: bool, key, draws: int):
    rates = net.lr_factors("adam" if isinstance(algorithm, Adam) else "sgd") if factors else None

    def one(params):
        after = simulate(net, params, x, y, algorithm, lr_factors=rates).params
        both = zip(net.layer_outputs(params, x), net.layer_outputs(after, x), strict=True)
        return jnp.stack([jnp.sqrt(jnp.mean((new - old) ** 2)) for old, new in both])

    return measure(one, net, draws, key)


def _predicted(net: MLP, algorithm, factors: bool) -> np.ndarray:
    """Powers of the width in the first step: first hidden layer, further ones, outputs."""
    adam = isinstance(algorithm, Adam)
    if net.parametrization == "mup" or (net.parametrization == "mean_field" and factors):
        if net.parametrization == "mup" and not factors:
            powers = (0.0, 1.0, 1.0) if adam else (-1.0, 0.0, 1.0)
        else:
            powers = (0.0, 0.0, 0.0)
    elif adam:
        powers = {"standard": (0.0, 1.0, 1.5), "ntk": (0.0, 0.5, 1.0), "mean_field": (0.0, 0.5, 0.5)}[
            net.parametrization
        ]
    elif net.parametrization == "standard" and not factors:
        powers = (-0.5, 0.5, 1.0)
    elif net.parametrization == "mean_field":
        powers = (-1.0, -1.0, -1.0)
    else:
        powers = (-0.5, -0.5, 0.0)
    first, others, last = powers
    return np.array([first, *([others] * (len(net.widths) - 1)), last])
