"""Makes statistics_table.md: every correction of order 1/n beside what drawn networks show.

    python docs/statistics_table.py            # all cases (half an hour)
    python docs/statistics_table.py --quick    # a tenth of the networks

Measured values are taken at three widths and extrapolated to 1/width = 0 by a parabola; errors are standard errors.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk
from nearkernel._commands.claims.rows import in_sigmas
from nearkernel.statistics.width.fluctuations import FIELDS

PATH = Path(__file__).parent / "statistics_table.md"
WIDTHS = (8, 16, 32)
UP_TO_NTK = [FIELDS[letter] for letter in "VGHDFAB"]
BEYOND = [FIELDS[letter] for letter in "PQRSTU"]
LIMIT = 4.0


@dataclasses.dataclass(frozen=True)
class Case:
    """Networks with hidden layers of widths n * shape; `inputs` random inputs of three features."""

    name: str
    activation: Any
    weight_var: float
    bias_var: float
    shape: tuple[int, ...]
    inputs: int
    beyond: bool

    @property
    def layer(self) -> int:
        return len(self.shape) + 1

    def net(self, n: int) -> nk.MLP:
        widths = tuple(n * ratio for ratio in self.shape)
        return nk.MLP(3, widths, 2, self.activation, self.weight_var, self.bias_var)


def hard_tanh(z):
    return jnp.clip(z, -1.0, 1.0)


def cases() -> list[Case]:
    gelu = nk.critical("gelu")
    return [
        Case("tanh", "tanh", 1.5, 0.1, (1,), 2, True),
        Case("tanh", "tanh", 1.5, 0.1, (1, 1), 2, True),
        Case("gelu", "gelu", gelu.weight_var, gelu.bias_var, (1, 1), 2, True),
        Case("erf", "erf", 1.2, 0.05, (2, 1, 2), 1, True),
        Case("sin", "sin", 1.3, 0.1, (1, 2), 3, False),
        Case("relu", "relu", 2.0, 0.0, (1, 1, 1), 2, False),
        Case("hard tanh", hard_tanh, 1.5, 0.1, (1, 1), 2, False),
    ]


def measured(case: Case, x: np.ndarray, fields: list[str], size: int) -> nk.results.Estimate:
    """At infinite width, from WIDTHS; the wider, the fewer networks."""
    found = []
    for n in WIDTHS:
        net = case.net(n)
        observable = nk.theory.observables(net, x, fields)
        found.append(nk.measure(observable, net, size * WIDTHS[0] // n, jax.random.key(n)))
    return nk.theory.extrapolated(found, [n * case.shape[-1] for n in WIDTHS])


def rows(case: Case, quick: bool, report: Callable[[str], None]) -> list[list[str]]:
    x = np.random.default_rng(1).normal(size=(case.inputs, 3))
    theory = nk.propagate(case.net(WIDTHS[-1]), x, order=1)[case.layer]
    found = []
    for fields, size in ((UP_TO_NTK, 64_000), (BEYOND if case.beyond else [], 24_000)):
        if not fields:
            continue
        start = time.perf_counter()
        estimate = measured(case, x, fields, size // 10 if quick else size)
        report(f"{case.name}, layer {case.layer}: {time.perf_counter() - start:.0f} s")
        for name in fields:
            expected, mean, sem = getattr(theory, name), estimate.mean[name], estimate.sem[name]
            sigmas = (mean - expected) / np.maximum(sem, 1e-12 * (1 + np.abs(expected)))
            at = tuple(k % case.inputs for k in (0, 1, 0, 1)[: expected.ndim])
            letter = next(key for key, value in FIELDS.items() if value == name)
            found.append(
                [
                    f"`{name}` ({letter})",
                    case.name,
                    str(case.layer),
                    "".join(map(str, at)),
                    f"{expected[at]:.5g}",
                    f"{mean[at]:.5g} ± {sem[at]:.2g}",
                    in_sigmas(sigmas[at]),
                    f"{np.sqrt(np.mean(sigmas**2)):.1f}",
                    f"{np.abs(sigmas).max():.1f}",
                ]
            )
    return found


def settings(case: Case) -> str:
    inputs = f"{case.inputs} input{'s' * (case.inputs > 1)}"
    variances = f"C_W = {case.weight_var:.6g}, C_b = {case.bias_var:.6g}"
    return f"- {case.name}, layer {case.layer}: {variances}, hidden widths n x {case.shape}, {inputs}."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the networks")
    chosen = parser.parse_args()
    table = []
    for case in cases():
        table += rows(case, chosen.quick, lambda line: print(line, file=sys.stderr, flush=True))
    heads = ["quantity", "activation", "layer", "entry", "theory", "measured", "sigmas", "rms", "worst"]
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *table)]
    worst = max(float(row[-1]) for row in table)
    text = f"""# Theory against measurement, to order 1/n

Each row: a field of `nk.propagate(net, x, order=1)[layer]` and the same from networks that were drawn at widths
{", ".join(map(str, WIDTHS))} (times the shape below) and extrapolated to 1/width = 0 by a parabola. *entry* gives the
inputs of the entry shown; *rms* and *worst* are over all entries of the tensor, in standard errors. Entries of a
tensor are strongly correlated, so a whole row moves together. The worst of {len(table)} rows is {worst:.1f}
standard errors.

{chr(10).join(lines)}

{chr(10).join(settings(case) for case in cases())}

Made by `python docs/statistics_table.py{" --quick" * chosen.quick}`.
"""
    PATH.write_text(text)
    print(text)
    if worst > LIMIT:
        sys.exit(f"error: a row is {worst:.1f} standard errors off.")


if __name__ == "__main__":
    main()
