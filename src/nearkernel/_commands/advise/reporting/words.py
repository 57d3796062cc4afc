"""The advice in words, for the terminal and the report alike."""

from __future__ import annotations

import math

from .. import blocks, flow, maximal
from ..advice import BAD_FACTOR, Advice
from ..blocks import BLOCKS
from ..finite import LARGE, FiniteWidth, KinkWidth, SmoothWidth
from ..inputs import Inputs
from ..maximal import Carried
from ..options import Options
from ..train import BASE_WIDTH, SIGMAS, Run, Training, gap

RATES = "Learning rates"
CHANGES = "Change of size from the first to the last hidden layer, by initialization"
DIRECTIONS = "Share of directions in which a small change survives, from the first to the last hidden layer"
CALLS = {
    "PyTorch": "init_(model)",
    "Flax": "params = init_(params, jax.random.key(0))",
    "Keras": "init_(model)",
}
TRAINED_HEAD = ("", "test rows", "rate")
DIRECTIONS_HEAD = ("", "predicted", "measured")
CARRIED_HEAD = ("", "initial variance", "gradient descent", "Adam")
ATTENTION_HEAD = ("", "predicted", "measured")
MOVES_HEAD = ("", "predicted", "measured")  # powers; as wide as 80 columns allow
CHANGES_HEAD = ("", "signal", "measured", "gradient", "measured", "verdict")


def network(options: Options) -> str:
    if options.block != "plain":
        block = BLOCKS[options.block]
        tokens = f", for {options.sequence} tokens" if block.attends else ""
        return f"a first layer and {options.depth - 1} {block.words} of width {options.width}{tokens}"
    return f"{options.depth} hidden layer{'s' * (options.depth > 1)} of width {options.width}"


def initialization(options: Options, advice: Advice) -> list[str]:
    lines = [_point(options, advice), *_practice(options, advice)]
    if abs(advice.input_scale - 1) > 0.01:
        lines.append(
            f"Multiply standardized inputs by {advice.input_scale:.4g}: the variance of the first layer is then K*."
        )
    return lines


def _point(options: Options, advice: Advice) -> str:
    """The variances, and what they do at this depth."""
    critical = advice.critical
    if critical.block is not None:
        factor = advice.outcomes[0].predicted.gradient_factor
        blocks_ = f"{critical.block['blocks']:.0f} block{'s' * (critical.block['blocks'] > 1)}"
        return (
            f"{critical.universality.capitalize()}: {critical.message} Gradients change by a factor of {factor:.3g} in "
            f"{blocks_}. {blocks.angles(critical.block)}"
        )
    if not critical.fixed_point > 0:
        return f"Critical ({critical.universality}): {critical.message}"
    k, start, off = critical.fixed_point, advice.outcomes[0].start, 1.2
    size = (off * k - critical.bias_var) / critical.weight_var
    shape = (start, options.depth, 1, 1, size)
    near = flow.predicted(options.activation, BLOCKS["plain"], *shape).signal[-1] / k
    return (
        f"Critical: weight_var = {critical.weight_var:.8g}, bias_var = {critical.bias_var:.8g} keep signals of "
        f"variance K* = {k:.5g} and their gradients; a variance of {off:g} K* is {near:.3g} K* after {options.depth} "
        "layers."
    )


def _practice(options: Options, advice: Advice) -> list[str]:
    """What is advised beside what practitioners do: orthogonal weights, GPT-2's factor, or nothing."""
    block, first, lines = BLOCKS[options.block], advice.outcomes[0], []
    critical = advice.critical
    if first.start.law == "orthogonal":
        normal, far = advice.outcomes[1].directions, first.directions
        assert far is not None and normal is not None
        he = "This is He's initialization with orthogonal weights. " * (
            critical.weight_var == 2 and critical.bias_var == 0
        )
        lines.append(
            f"{he}Orthogonal weights keep more: a small change survives in {_percent(far.predicted)} of all directions "
            f"after {options.depth} layers, with normal weights in {_percent(normal.predicted)}."
        )
    if block.skip:
        assert critical.block is not None
        branches = critical.block["blocks"] * (2 if block.attends else 1)
        factor = f"the root of the number of branches, here sqrt({branches:.0f}) = {branches**0.5:.3g}"
        here = (
            "as these variances do"
            if not block.norm
            else f"row {advice.outcomes[1 if block.attends else 2].start.name}"
        )
        lines.append(
            f"GPT-2 divides initial weights that write into the sum by {factor}: {here}. Orthogonal weights do not pay "
            "in blocks that are near the identity."
        )
    same = [name for name in options.frameworks if name in advice.unchanged]
    if same:
        lines.append(
            f"{', '.join(same)}: change nothing. The default keeps signals and gradients as well as these "
            "variances or better."
        )
    return lines


def rates(options: Options, advice: Advice) -> tuple[dict[str, str], list[str]]:
    """Largest stable rates by how they are set, and what else is known of the data."""
    found = advice.rates
    known = f"for these {found.rows} rows" if found.rows else "for any number of such inputs"
    biases = f"; biases {found.biases:.3g}" if found.biases else ""
    terms = {
        "gradient descent, one rate": f"stable below about {found.single:.3g} {known}",
        "layer by layer": f"{found.stable:.3g} C_W / fan_in: {found.hidden_weights:.3g} at fan-in "
        f"{options.width}{biases}",
    }
    if found.adam is None:
        terms["Adam"] = "not known: tune it on a narrow network, --tuned-width carries it over"
    else:
        terms["Adam, a first guess"] = f"{found.adam / options.depth:.2g}, to be tuned"
    remarks = ["Gradient descent is on 1/2 mean (z - y)^2; for nn.MSELoss use half of these rates."]
    if found.adam is not None:
        remarks.append(
            f"Adam's first step on one input moves a hidden layer by its own size at {found.adam:.2g}; the guess is "
            f"this over {options.depth} layers. --train adam tunes it, --tuned-width carries it to other widths."
        )
    if found.condition is not None:
        remarks.append(
            f"The slowest direction of these rows needs {found.condition:.3g} times as long as the fastest."
            if math.isfinite(found.condition)
            else "Some rows are equal, or nearly so: their difference is never learned."
        )
    return terms, remarks


def spread(advice: Advice) -> tuple[str, list[str]]:
    """Title and sentences on how much networks differ from draw to draw."""
    found = advice.spread
    law = "exactly" if found.exact else "to first order in it"
    law = f"measured on {found.networks} networks" if found.networks else law
    least = 1 / found.networks if found.networks else 1e-4  # what so many draws, or a first order, can tell
    share = f"less than {_percent(least)}" if found.bad_draw < least else _percent(found.bad_draw)
    return f"Depth over width is {found.depth_over_width:.3g}", [
        f"Over initializations a gradient varies by a factor of {math.exp(found.variance**0.5 / 2):.3g} ({law}).",
        f"Gradients off by more than a factor of {BAD_FACTOR:g}: {share} of all draws.",
    ]


def finite(options: Options, found: FiniteWidth) -> tuple[str, list[str]]:
    """Title and sentences on trained networks of this width."""
    rows = f"{found.train_rows} rows, tested on {found.new_rows} other{'s' * (found.new_rows > 1)}"
    title = f"Networks trained to convergence on {rows}, compared with infinite width"
    off = (
        f"At width {options.width} their mean is off by {found.mean_shift:.2g} deviations, their variance by "
        f"{_percent(found.variance_shift)}"
    )
    within = [f"Within {found.tolerance:g} at width {found.width_within:.0f} and above."]
    within = within if math.isfinite(found.width_within) else []
    if isinstance(found, KinkWidth):
        return title, [f"{off} (± {found.error:.1g}).", *within, *_kinks(options, found)]
    assert isinstance(found, SmoothWidth)
    lines = [f"{off}; largest contribution: {found.largest}.", *within]
    lines.append(
        f"Expected loss of a left-out row: {found.losses[-1]:.3g}, at infinite width {found.losses_when_wide[-1]:.3g}."
    )
    if options.depth > 1:
        best = found.best_depth
        lines.append(
            f"Of depths 1 to {options.depth} the best at this width is {best}, depth/width {best / options.width:.2g}: "
            f"{found.losses[best - 1]:.3g}."
        )
    if found.expansion > LARGE:
        lines.append(
            f"This is order 1/width only; its contributions add up to {found.expansion:.2g}, so the next order may not "
            "be small."
        )
    return title, lines


def _kinks(options: Options, found: KinkWidth) -> list[str]:
    lines = [f"Neurons cross the kink of {options.activation} in training: this falls as width^(-1/2)."]
    if found.far:
        lines.append(
            f"Training moves preactivations by {found.movement:.2g} of their spread; the next order may not be small."
        )
    return lines


def training(options: Options, found: Training) -> tuple[str, list[str]]:
    """Title and sentences on short runs from each initialization."""
    way = "gradient descent" if found.optimizer == "gd" else "Adam"
    title = f"{found.steps} steps of {way} on {found.rows} rows, from each initialization"
    score = "Test rows that are right" if found.classes else "Variance of test rows that is explained"
    advised, strongest, seeds = found.runs[0], found.strongest, len(found.runs[0].scores)
    also = [run for run in found.runs if run.name in ("orthogonal", "normal", "He") and run is not strongest]
    lines = [
        *(conclusion(advised, run) for run in (strongest, *also)),
        f"{score}, of {found.test_rows}: mean and standard error of {seeds} seeds, width {found.width}, batches of "
        f"{found.batch}. Each initialization has the best of {len(found.rates)} rates, chosen on as many other rows. "
        f"Below {SIGMAS:g} standard errors (sigma) two of them are called as good as each other.",
    ]
    if found.optimizer == "adam" and options.width > BASE_WIDTH:
        ratio = BASE_WIDTH / options.width
        lines.append(
            f"At width {options.width} muP keeps this rate if hidden and output weights have {ratio:.3g} times the "
            f"rate and the initial output weights are multiplied by {ratio**0.5:.3g}."
        )
    return title, lines


def trained_rows(found: Training) -> list[tuple[str, ...]]:
    """One row per initialization, below `TRAINED_HEAD`."""
    return [
        (run.name, f"{100 * run.score:.1f} ± {100 * run.error:.1f} %", f"{run.rate:.2g}")
        for run in found.runs
    ]


def conclusion(advised: Run, other: Run) -> str:
    """Which of the two initializations is better, if either is."""
    difference, error, sigmas = gap(advised, other)
    name = {"orthogonal": "orthogonal weights", "normal": "normal weights"}.get(other.name, other.name)
    size = f"{100 * abs(difference):.1f} ± {100 * error:.1f} points ({abs(sigmas):.1f} sigma)"
    if abs(sigmas) < SIGMAS or difference == 0:
        ahead = "ahead" if difference >= 0 else "behind"
        return f"{name[0].upper() + name[1:]} {'are' if ' ' in name else 'is'} as good here: advised is {size} {ahead}."
    if sigmas > 0:
        return f"Advised beats {name} by {size}."
    return f"{name[0].upper() + name[1:]} beats advised by {size}: use {name}."


def attention(options: Options) -> tuple[str, list[str]]:
    """Title and sentences on blocks with attention."""
    title = (
        f"Correlation of two of {options.sequence} tokens after the last block, independent before the first"
    )
    return title, [
        "Blocks are z + Attention(LayerNorm(z)), then z + W s(V LayerNorm(z)), with scores divided by the dimension of "
        "a head: attention begins as a mean over tokens. Tokens of correlation 1 are all the same, and attention "
        "cannot distinguish them."
    ]


def attention_rows(advice: Advice) -> list[tuple[str, ...]]:
    """One row per initialization, below `ATTENTION_HEAD`."""
    rows: list[tuple[str, ...]] = []
    for outcome in advice.outcomes:
        theory, found, error = outcome.predicted.alike, outcome.measured.alike, outcome.measured.alike_error
        assert theory is not None and found is not None and error is not None
        rows.append((outcome.start.name, f"{theory[-1]:.3g}", f"{found[-1]:.3g} ±{error[-1]:.1g}"))
    return rows


def carried(options: Options, found: Carried) -> tuple[str, list[str], dict[str, str]]:
    """Title and sentences on maximal updates, and how to call the code."""
    title = (
        f"A learning rate tuned at width {found.tuned_width}, carried over to width {options.width} (muP, "
        f"r = {found.ratio:.4g})"
    )
    size = f"{found.depth} hidden layer{'s' * (found.depth > 1)}"
    if options.block != "plain":
        size = f"a first layer and {found.depth - 1} block{'s' * (found.depth != 2)}"
    lines = [
        "Factors on the variance of initial weights, C_W / fan_in, and on the rate that was tuned. `base` below is the "
        f"same model at width {found.tuned_width}. With attention, add heads of the same dimension; if their dimension "
        "grows instead, divide scores by it, not by its root.",
        f"Coordinate check: powers of the width with which layers move in the first step, 0 where a rate carries over; "
        f"measured on {found.networks} networks of {size} at widths {' and '.join(map(str, found.widths))} each, ± one "
        "standard error.",
    ]
    return title, lines, maximal.CALLS


def carried_rows(found: Carried) -> list[tuple[str, ...]]:
    """One row per kind of parameters, below `CARRIED_HEAD`."""
    parts = (found.initial, found.sgd, found.adam)
    return [(kind, *(f"{part[kind]:.4g}" for part in parts)) for kind in found.initial]


def moves_rows(found: Carried) -> list[tuple[str, ...]]:
    """One row per optimizer, scaling and layer, below `MOVES_HEAD`."""
    names = {"sgd": "gradient descent", "adam": "Adam"}
    return [
        (
            f"{names[each.optimizer]}, {each.scaling}, {each.layer}",
            f"{each.predicted:.2g}",
            f"{each.measured:.2f} ±{each.error:.2f}",
        )
        for each in found.moves
    ]


def changes(advice: Advice) -> list[tuple[str, ...]]:
    """One row per initialization, below `CHANGES_HEAD`."""
    return [
        (
            outcome.start.name,
            f"{outcome.predicted.signal_factor:.2g}",
            _with_error(outcome.measured.signal_factor, outcome.measured.signal_factor_sem),
            f"{outcome.predicted.gradient_factor:.2g}",
            _with_error(outcome.measured.gradient_factor, outcome.measured.gradient_factor_sem),
            outcome.verdict,
        )
        for outcome in advice.outcomes
    ]


def direction_rows(advice: Advice) -> list[tuple[str, ...]]:
    """One row per initialization, below `DIRECTIONS_HEAD`; none where layers are added to their input."""
    return [
        (
            outcome.start.name,
            f"{100 * far.predicted:.2g} %",
            f"{100 * far.measured:.2g} ±{100 * far.error:.1g} %",
        )
        for outcome in advice.outcomes
        if (far := outcome.directions) is not None
    ]


def directions(advice: Advice) -> str:
    far = advice.outcomes[0].directions
    assert far is not None
    return (
        "(mean of s^2)^2 / mean of s^4 over the singular values s of the Jacobian, 100 % if all are equal; measured "
        f"on {far.networks} networks of width {far.width}."
    )


def rows_in_words(advice: Advice) -> str:
    """What the rows of the tables are."""
    return " ".join(f"{each.start.name}: {each.start.words}." for each in advice.outcomes)


def measured(options: Options, inputs: Inputs, advice: Advice) -> list[str]:
    """How the columns were measured, and notes on the data."""
    found = advice.outcomes[0].measured
    narrower = f" of width {found.width}" if found.width < options.width else ""
    first = f"Measured on {found.networks} random networks{narrower} each, ± one standard error."
    return [first, rows_in_words(advice), *(f"Note: {note}." for note in inputs.notes)]


def _with_error(value: float, sem: float) -> str:
    return f"{value:.2g} ±{100 * sem / value:.0f}%" if 0 < value < math.inf else f"{value:.2g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"{share:.1e}"
