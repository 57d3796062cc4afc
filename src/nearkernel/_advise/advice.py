"""The advice itself: initialization, learning rates, fluctuations, and how the defaults would do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

import nearkernel as nk

from ..statistics._gradient_spread import outside
from .finite import FiniteWidth, finite_width
from .flow import Flow, measured, predicted, verdict
from .options import Inputs, Options
from .starts import DEFAULTS, Start, critical_start, how_to_type

BAD_FACTOR = 2.0  # a draw is bad if its gradients are off by more than this


@dataclasses.dataclass(frozen=True)
class Rates:
    """Largest stable rates of gradient descent on 1/2 mean (z - y)^2, from the kernel of infinite width."""

    tangent_kernel: float  # mean over inputs of Theta(x, x)
    stable: float  # in NTK scaling; of weights in layers of the usual kind: times C_W / fan_in
    hidden_weights: float  # the same in standard scaling, for a layer whose fan-in is the width
    biases: float
    single: float  # one rate for all parameters, standard scaling
    condition: float | None  # of the kernel matrix of the data
    rows: int  # 0: no data, and the rates hold for any number of inputs


@dataclasses.dataclass(frozen=True)
class Spread:
    """How much gradients |dz/dx|^2 vary from draw to draw."""

    depth_over_width: float
    variance: float  # of their logarithm
    bad_draw: float
    exact: bool  # the law of relu networks is; of others the first order in depth/width


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What becomes of signals and gradients from one initialization."""

    start: Start
    weight_var: float
    bias_var: float
    predicted: Flow
    measured: Flow
    verdict: str


@dataclasses.dataclass(frozen=True)
class Advice:
    critical: nk.statistics.Critical
    input_scale: float
    how_to_type: dict[str, str]
    rates: Rates
    spread: Spread
    outcomes: tuple[Outcome, ...]
    finite: FiniteWidth | None  # if a tolerance was given


def advise(options: Options, inputs: Inputs, say: Callable[[str], None]) -> Advice:
    critical = options.critical
    scale = 1.0
    if critical.fixed_point > 0:  # inputs whose first layer is at K* already
        scale = float(
            np.sqrt((critical.fixed_point - critical.bias_var) / (critical.weight_var * inputs.size))
        )
    say("reckoning learning rates")
    net = network(options, critical, inputs.in_dim, options.width)
    rates = _rates(net, inputs, scale)
    spread = _spread(net, scale**2 * inputs.size)
    finite = None
    if options.tolerance is not None:
        say("forecasting trained networks")
        finite = finite_width(net, inputs, scale, options.tolerance)
    outcomes = []
    for start in (critical_start(critical.weight_var, critical.bias_var), *DEFAULTS):
        say(f"drawing networks, {start.name}")
        size = inputs.size * (scale**2 if start.name == "critical" else 1.0)
        shape = options.activation, start, options.depth, options.width, inputs.in_dim, size
        theory, found = predicted(*shape), measured(*shape, options.seed)
        variances = start.variances(options.width, options.width)
        outcomes.append(Outcome(start, *variances, theory, found, verdict(theory)))
    typed = how_to_type(critical.weight_var, critical.bias_var, options.width)
    return Advice(critical, scale, typed, rates, spread, tuple(outcomes), finite)


def network(options: Options, critical: nk.statistics.Critical, in_dim: int, width: int) -> nk.MLP:
    return nk.MLP(
        in_dim,
        (width,) * options.depth,
        1,
        critical.activation,
        critical.weight_var,
        critical.bias_var,
        "standard",
    )


def _typical(in_dim: int, mean_square: float) -> np.ndarray:
    return np.full((1, in_dim), np.sqrt(mean_square))


def _rates(net: nk.MLP, inputs: Inputs, scale: float) -> Rates:
    """With data from the largest eigenvalue of their kernel matrix; without, from the largest it could have."""
    rows = _typical(net.in_dim, 1.0) if inputs.rows is None else inputs.rows
    found = nk.statistics.learning_rates(net, scale * rows)
    stable = found.stable * len(rows)  # of the mean loss
    weight_var, bias_var = float(net.weight_var), float(net.bias_var)
    return Rates(
        tangent_kernel=float(found.shares.sum()),
        stable=stable,
        hidden_weights=stable * weight_var / net.widths[-1],
        biases=stable * bias_var,
        single=stable * float(found.shares.sum() / found.plain_shares.sum()),
        condition=None if inputs.rows is None else found.condition,
        rows=0 if inputs.rows is None else len(rows),
    )


def _spread(net: nk.MLP, size: float) -> Spread:
    ratio = len(net.widths) / net.widths[0]
    if isinstance(net.activation, nk.activations.PiecewiseLinear) and net.activation.left == 0:
        return Spread(ratio, nk.statistics.input_gradient(net).log_var, bad_draw(net, 0.0), True)
    hidden = float(nk.statistics.gradient_spread(net, _typical(net.in_dim, size)).gradient[-1, 0])
    return Spread(ratio, hidden + 2 / net.in_dim, bad_draw(net, hidden), False)


def bad_draw(net: nk.MLP, hidden: float) -> float:
    """How likely |dz/dx| is off by `BAD_FACTOR`: exactly for relu, else from the variance of ln |dz/dz^1|^2."""
    if hidden:
        return float(outside(hidden + 2 / net.in_dim, BAD_FACTOR))
    law = nk.statistics.input_gradient(net)
    low, high = law.cdf(np.log(law.second_moment) + 2 * np.log(BAD_FACTOR) * np.array([-1, 1]))
    return float(low + 1 - high)
