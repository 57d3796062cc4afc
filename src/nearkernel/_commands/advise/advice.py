"""The advice itself: initialization, learning rates, fluctuations, and how the defaults would do."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import nearkernel as nk

from ...statistics.width.gradient_spread import outside
from . import blocks, flow, isometry, transformer
from .blocks import BLOCKS, Point
from .finite import FiniteWidth, finite_width
from .flow import Flow, verdict
from .inputs import Inputs
from .isometry import Directions
from .maximal import Carried, carried
from .options import Options
from .starts import DEFAULTS, Start, advised_starts, usual_starts
from .train import BASE_WIDTH, Training, trained
from .typed import how_to_type

BAD_FACTOR = 2.0  # a draw is bad if its gradients are off by more than this
_FEW_DIRECTIONS = 0.18  # with normal weights; orthogonal ones are advised if fewer survive
_CLOSE = 0.05  # a default is left as it is if its logarithms of factors are no further from 0 than advised, within this


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
    adam: float | None = None  # moves a hidden layer by its own size in the first step; None: not known


@dataclasses.dataclass(frozen=True)
class Spread:
    """How much gradients |dz/dx|^2 vary from draw to draw."""

    depth_over_width: float
    variance: float  # of their logarithm
    bad_draw: float
    exact: bool  # the law of relu networks is; of others the first order in depth/width
    networks: int = 0  # of orthogonal weights, residual and normalized networks: measured on so many


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What becomes of signals and gradients from one initialization."""

    start: Start
    weight_var: float
    bias_var: float
    predicted: Flow
    measured: Flow
    verdict: str
    directions: Directions | None = None  # of layers that are not added to their input

    @property
    def away(self) -> float:
        """How far signals and gradients are from keeping their size: the larger logarithm."""
        factors = (self.predicted.signal_factor, self.predicted.gradient_factor)
        return max(abs(math.log(max(factor, 1e-300))) for factor in factors)


@dataclasses.dataclass(frozen=True)
class Advice:
    critical: Point
    input_scale: float
    how_to_type: dict[str, str]
    rates: Rates
    spread: Spread
    outcomes: tuple[Outcome, ...]
    finite: FiniteWidth | None  # if a tolerance was given
    training: Training | None = None  # if networks were to be trained
    carried: Carried | None = None  # if a tuned width was given

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The frameworks whose default is as good as what is advised, or better."""
        first = self.outcomes[0]
        names = {start.name for start in DEFAULTS}
        if first.start.law == "orthogonal" or abs(self.input_scale - 1) > 0.01:
            return ()
        close = lambda one, other: one <= other + _CLOSE
        return tuple(
            each.start.name
            for each in self.outcomes
            if each.start.name in names
            and each.verdict == "fine"
            and close(each.away, first.away)
            and close(_alike(each), _alike(first))
        )


def _alike(outcome: Outcome) -> float:
    """Correlation of two tokens at the end, of a transformer."""
    return 0.0 if outcome.predicted.alike is None else float(outcome.predicted.alike[-1])


def advise(options: Options, inputs: Inputs, say: Callable[[str], None]) -> Advice:
    critical = options.critical
    scale, orthogonal = plan(options, inputs)
    say("computing learning rates")
    net = network(options, critical, inputs.in_dim, options.width)
    rates = _rates(net, inputs, scale, options, critical)
    finite = None
    if options.tolerance is not None:
        assert isinstance(net, nk.MLP)
        say("forecasting trained networks")
        finite = finite_width(net, inputs, scale, options.tolerance, options.kinked)
    block, outcomes = BLOCKS[options.block], []
    starts = [
        *advised(critical, block, orthogonal),
        *usual_starts(block, max(options.depth - 1, 1), options.width),
    ]
    for start in starts:
        say(f"drawing networks, {start.name}")
        size = inputs.size * (scale**2 if start.advised else 1.0)
        shape = (start, options.depth, options.width, inputs.in_dim, size)
        theory, found = _flows(options, shape)
        variances = start.variances(options.width, options.width)
        far = None
        if not block.skip and options.depth > 1:
            far = isometry.directions(
                options.activation, block, start, theory, options.depth, options.width, options.seed
            )
        outcomes.append(Outcome(start, *variances, theory, found, verdict(found), far))
    spread = (
        _spread(net, scale**2 * inputs.size)
        if isinstance(net, nk.MLP) and not orthogonal
        else _measured_spread(options, inputs.in_dim, outcomes[0].measured)
    )
    training = None
    if options.train is not None:
        assert inputs.examples is not None and inputs.targets is not None
        say("training networks")
        training = trained(
            options.activation,
            block,
            [(start, scale if start.advised else 1.0) for start in starts],
            options.depth,
            min(options.width, BASE_WIDTH),
            inputs.examples,
            inputs.targets,
            inputs.classes,
            options.train,
            rates.single,
            options.seed,
            options.seeds,
        )
    over = None
    if options.tuned_width is not None:
        say("checking maximal updates")
        over = carried(options, critical, scale)
    advice = Advice(critical, scale, {}, rates, spread, tuple(outcomes), finite, training, over)
    typed = how_to_type(
        critical.weight_var, critical.bias_var, options.depth, block.skip and not block.norm, orthogonal
    )
    shown = [name for name in options.frameworks if name not in advice.unchanged]
    return dataclasses.replace(advice, how_to_type={name: typed[name] for name in shown})


def advised(point: Point, block: blocks.Block, orthogonal: bool) -> list[Start]:
    return advised_starts(
        point.weight_var, point.bias_var, block, orthogonal, ends=1.0 if block.skip else None
    )


def plan(options: Options, inputs: Inputs) -> tuple[float, bool]:
    """The factor of the inputs; and whether weights are to be orthogonal, because changes would survive in few
    directions with normal ones."""
    point, block, scale = options.critical, BLOCKS[options.block], 1.0
    if point.fixed_point > 0:  # inputs whose first layer is at K* already
        scale = float(np.sqrt((point.fixed_point - point.bias_var) / (point.weight_var * inputs.size)))
    if block.skip or options.depth < 2:
        return scale, False
    _, normal = advised(point, block, orthogonal=True)
    shape = (options.depth, options.width, inputs.in_dim, scale**2 * inputs.size)
    theory = flow.predicted(options.activation, block, normal, *shape)
    return scale, isometry.predicted(options.activation, block, normal, theory) < _FEW_DIRECTIONS


def _flows(options: Options, shape: tuple[Start, int, int, int, float]) -> tuple[Flow, Flow]:
    """Predicted and measured."""
    s, block, seed = options.activation, BLOCKS[options.block], options.seed
    if block.attends:
        tokens = options.sequence
        return transformer.predicted(s, tokens, *shape), transformer.measured(s, tokens, *shape, seed)
    return flow.predicted(s, block, *shape), flow.measured(s, block, *shape, seed)


def network(options: Options, critical: Point, in_dim: int, width: int) -> nk.MLP | nk.Network:
    if options.block != "plain":
        return blocks.network(BLOCKS[options.block], critical, in_dim, width, options.depth)
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


def _rates(net: nk.MLP | nk.Network, inputs: Inputs, scale: float, options: Options, point: Point) -> Rates:
    """With data from the largest eigenvalue of their kernel matrix; without, from the largest it could have."""
    rows = _typical(net.in_shape[0], 1.0) if inputs.rows is None else inputs.rows
    found = nk.statistics.learning_rates(net, scale * rows)
    stable = found.stable * len(rows)  # of the mean loss
    return Rates(
        tangent_kernel=float(found.shares.sum()),
        stable=stable,
        hidden_weights=stable * point.weight_var / options.width,
        biases=stable * point.bias_var,
        single=stable * float(found.shares.sum() / found.plain_shares.sum()),
        condition=None if inputs.rows is None else found.condition,
        rows=0 if inputs.rows is None else len(rows),
        adam=adam_move(options, point, inputs.in_dim, scale**2 * inputs.size),
    )


def adam_move(options: Options, point: Point, in_dim: int, size: float) -> float | None:
    """The rate at which Adam's first step on one input moves the last hidden layer by its own size.

    The step changes each weight by the rate, with the sign of the product of what enters and the gradient: a neuron
    moves by rate * (fan_in E|s| + 1), the 1 for its bias.
    """
    block = BLOCKS[options.block]
    if block.attends or options.depth < 2:
        return None
    start = advised(point, block, orthogonal=False)[0]
    signal = flow.predicted(
        options.activation, block, start, options.depth, options.width, in_dim, size
    ).signal
    with jax.enable_x64(True):
        z, weights = np.polynomial.hermite_e.hermegauss(200)
        enters = point.activation(np.sqrt(1.0 if block.norm else signal[-2]) * z)
        mean = float(np.abs(enters) @ weights / weights.sum())
    return float(np.sqrt(signal[-1])) / (options.width * mean + 1)


def _spread(net: nk.MLP, size: float) -> Spread:
    ratio = len(net.widths) / net.widths[0]
    if isinstance(net.activation, nk.results.PiecewiseLinear) and net.activation.left == 0:
        return Spread(ratio, nk.theory.input_gradient(net).log_var, bad_draw(net, 0.0), True)
    hidden = float(nk.theory.gradient_spread(net, _typical(net.in_dim, size)).gradient[-1, 0])
    return Spread(ratio, hidden + 2 / net.in_dim, bad_draw(net, hidden), False)


def _measured_spread(options: Options, in_dim: int, found: Flow) -> Spread:
    """From networks that were drawn: the order 1/width of layers that are added or normalized is not known."""
    hidden = math.log1p(found.networks * float(found.gradient_error[-1]) ** 2)
    ratio = options.depth / options.width
    return Spread(
        ratio, hidden + 2 / in_dim, float(outside(hidden + 2 / in_dim, BAD_FACTOR)), False, found.networks
    )


def bad_draw(net: Any, hidden: float) -> float:
    """How likely |dz/dx| is off by `BAD_FACTOR`: exactly for relu, else from the variance of ln |dz/dz^1|^2."""
    if hidden:
        return float(outside(hidden + 2 / net.in_shape[0], BAD_FACTOR))
    law = nk.theory.input_gradient(net)
    low, high = law.cdf(np.log(law.second_moment) + 2 * np.log(BAD_FACTOR) * np.array([-1, 1]))
    return float(low + 1 - high)
