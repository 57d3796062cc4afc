"""`nearkernel advise` from options to files: reckon, draw, write, show."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from .._predict.command import progress
from .._predict.output import check_writable, write_together
from .._predict.summary import plain, versions
from .advice import BAD_FACTOR, Advice, Outcome, advise
from .finite import LARGE, FiniteWidth
from .options import Inputs, Options
from .picture import picture

FILES = ("advice.json", "advice.png")


def advise_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    with progress() as say:
        say("looking for the critical point")
        options.critical  # noqa: B018  an activation without one is refused before the data are read
        say("reading the data")
        inputs = options.inputs()
        advice = advise(options, inputs, say)
        text = advice_json(options, inputs, advice)
        say("drawing the picture")
        write_together(out, {"advice.json": text, "advice.png": picture(options, inputs, advice)[0]})
    if print_json:
        sys.stdout.write(text)
    else:
        _print(options, inputs, advice, out)


def advice_json(options: Options, inputs: Inputs, advice: Advice) -> str:
    critical = advice.critical
    document = {
        "settings": dataclasses.asdict(options),
        "data": inputs.name or None,
        "critical": {
            "weight_var": critical.weight_var,
            "bias_var": critical.bias_var,
            "fixed_point": critical.fixed_point,
            "universality": critical.universality,
            "message": critical.message,
            "input_scale": advice.input_scale,
        },
        "how_to_type": advice.how_to_type,
        "learning_rates": {"loss": "1/2 mean (z - y)^2", **dataclasses.asdict(advice.rates)},
        "fluctuations": {**dataclasses.asdict(advice.spread), "bad_factor": BAD_FACTOR},
        "finite_width": None if advice.finite is None else dataclasses.asdict(advice.finite),
        "initializations": {outcome.start.name: _outcome(outcome) for outcome in advice.outcomes},
        "versions": versions(),
    }
    return json.dumps(plain(document), indent=2, ensure_ascii=False) + "\n"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    found = outcome.measured
    return {
        "is": outcome.start.words,
        "weight_var": outcome.weight_var,
        "bias_var": outcome.bias_var,
        "verdict": outcome.verdict,
        **{
            name: {
                "predicted": getattr(outcome.predicted, f"{name}_factor"),
                "measured": getattr(found, f"{name}_factor"),
                "standard_error": getattr(found, f"{name}_factor_sem"),
                "predicted_mean_squares": getattr(outcome.predicted, name),
                "measured_mean_squares": getattr(found, name),
            }
            for name in ("signal", "gradient")
        },
        "networks": found.networks,
        "network_width": found.width,
    }


def _print(options: Options, inputs: Inputs, advice: Advice, out: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    say = lambda text="", **style: console.print(text, markup=False, **style)
    critical, rates, spread = advice.critical, advice.rates, advice.spread
    layers = f"{options.depth} hidden layer{'s' * (options.depth > 1)} of width {options.width}"
    say(f"{options.activation}, {layers}; {inputs.name or 'standardised inputs'}", style="bold")

    say("\nInitialization", style="bold")
    say(f"Critical ({critical.universality}): {critical.message}")
    if abs(advice.input_scale - 1) > 0.01:
        say(f"Multiply standardised inputs by {advice.input_scale:.4g}: then the first layer starts at K*.")
    for name, code in advice.how_to_type.items():
        for i, line in enumerate(code.split("\n")):
            say(f"  {name if i == 0 else '':9}{line}")

    say(
        "\nLearning rate of plain gradient descent on 1/2 mean (z - y)^2; of nn.MSELoss, half of it",
        style="bold",
    )
    known = f"for these {rates.rows} rows" if rates.rows else "for any number of such inputs"
    say(f"  all parameters alike          stable below about {rates.single:.3g} {known}")
    biases = f"; biases {rates.biases:.3g}" if rates.biases else ""
    say(
        f"  layer by layer                {rates.stable:.3g} C_W / fan_in: {rates.hidden_weights:.3g} at fan-in "
        f"{options.width}{biases}"
    )
    if rates.condition is not None and math.isfinite(rates.condition):
        say(f"  the slowest direction of these rows needs {rates.condition:.3g} times as long as the fastest")
    elif rates.condition is not None:
        say("  some rows are equal, or almost: their difference is never learnt")

    say(f"\nDepth over width is {spread.depth_over_width:.3g}", style="bold")
    law = "exactly" if spread.exact else "to first order in it"
    say(
        f"  From draw to draw the logarithm of a squared gradient varies by ±{spread.variance**0.5:.2g} ({law})."
    )
    say(f"  Gradients off by more than a factor of {BAD_FACTOR:g}: {_percent(spread.bad_draw)} of all draws.")

    if advice.finite is not None:
        _print_finite(say, options, advice.finite)

    say("\nChange of size from the first to the last hidden layer, here and by the defaults of", style="bold")
    console.print(_table(advice))
    found = advice.outcomes[0].measured
    narrower = f" of width {found.width}" if found.width < options.width else ""
    say(f"Measured on {found.networks} random networks{narrower} each, ± one standard error.")
    for note in inputs.notes:
        say(f"Note: {note}.")
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")


def _print_finite(say: Any, options: Options, found: FiniteWidth) -> None:
    rows = f"{found.train_rows} rows, seen at {found.new_rows} other{'s' * (found.new_rows > 1)}"
    say(f"\nNetworks trained to the end on {rows}, against infinite width", style="bold")
    say(
        f"  At width {options.width} their mean is off by {found.mean_shift:.2g} deviations, their variance by "
        f"{_percent(found.variance_shift)}; largest part: {found.largest}."
    )
    if math.isfinite(found.width_within):
        say(f"  Within {found.tolerance:g} from width {found.width_within:.0f} on.")
    if found.expansion > LARGE:
        say(
            f"  This is the order 1/width alone; its parts add up to {found.expansion:.2g}, the next may not be small."
        )


def _table(advice: Advice) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("", "signal", "measured", "gradient", "measured", "so"):
        table.add_column(title, justify="left" if title in ("", "so") else "right", no_wrap=True)
    for outcome in advice.outcomes:
        theory, found = outcome.predicted, outcome.measured
        table.add_row(
            outcome.start.name,
            f"{theory.signal_factor:.2g}",
            _with_error(found.signal_factor, found.signal_factor_sem),
            f"{theory.gradient_factor:.2g}",
            _with_error(found.gradient_factor, found.gradient_factor_sem),
            outcome.verdict,
        )
    return table


def _with_error(value: float, sem: float) -> str:
    return f"{value:.2g} ±{100 * sem / value:.0f}%" if value > 0 else f"{value:.2g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"{share:.1e}"
