"""What the initialization of `nearkernel advise` is worth: deep networks trained on scikit-learn's data sets.

    python docs/advised.py            # about five minutes; writes its table into guides/initialize.md and README.md
    python docs/advised.py --show     # prints it alone

This is `nearkernel advise --train adam` at full width: 100 steps of Adam from each initialization, 5 seeds. Each has
the learning rate, of three, with the best score on rows that are neither trained on nor tested on.
"""

import argparse
import dataclasses
import re
import time
from pathlib import Path

from nearkernel._commands.advise import advice, train
from nearkernel._commands.advise.blocks import BLOCKS
from nearkernel._commands.advise.inputs import inputs_of
from nearkernel._commands.advise.options import Options
from nearkernel._commands.advise.starts import DEFAULTS, Start, usual_starts

ROOT = Path(__file__).parents[1]
SEEDS, RATES = 5, (3e-4, 1e-3, 3e-3)
DEFAULT_NAMES = [start.name for start in DEFAULTS]


@dataclasses.dataclass(frozen=True)
class Deep:
    """A deep network and its data."""

    activation: str
    block: str = "plain"
    depth: int = 24
    width: int = 128
    data: str = "digits"

    @property
    def options(self) -> Options:
        return Options(self.activation, self.depth, self.width, self.block, data=self.data, train="adam")

    @property
    def starts(self) -> list[tuple[Start, float]]:
        """Advised, He (in blocks over the root of their number), and two defaults: Flax's is as Keras' inside."""
        block, found = BLOCKS[self.block], self.options
        scale, orthogonal = advice.plan(found, inputs_of(found))
        usual = usual_starts(block, self.depth - 1, self.width)
        usual = [
            start for start in usual if start.name != ("He" if block.skip else "") and start.name != "Flax"
        ]
        first = advice.advised(found.critical, block, orthogonal)[0]
        return [(first, scale), *((start, 1.0) for start in usual)]


NETWORKS = (
    Deep("gelu"),
    Deep("relu"),
    Deep("tanh"),
    Deep("gelu", data="breast_cancer"),
    Deep("relu", "residual"),
)


def measured(net: Deep, rates: tuple[float, ...] = RATES) -> train.Training:
    inputs = inputs_of(net.options)
    assert inputs.rows is not None and inputs.targets is not None
    return train.trained(
        net.activation, BLOCKS[net.block], net.starts, net.depth, net.width, inputs.rows, inputs.targets,
        inputs.classes, "adam", 0.0, 0, SEEDS, rates,
    )  # fmt: skip


def row(net: Deep, found: train.Training) -> str:
    """Of the table, in percent: the best of the defaults, He, advised, and how it compares with the strongest."""
    advised, *others = found.runs
    best = max((run for run in others if run.name in DEFAULT_NAMES), key=lambda run: run.score)
    he = next(run for run in others if run.name not in DEFAULT_NAMES)
    cell = lambda run: f"{100 * run.score:.1f} ± {100 * run.error:.1f}"
    kind = f"{net.activation}, residual" if net.block == "residual" else net.activation
    scaled = "" if he.name == "He" else " (/√L)"
    sigmas = train.gap(advised, found.strongest)[2]
    than = "ties" if abs(sigmas) < train.SIGMAS else "beats" if sigmas > 0 else "loses to"
    cells = [f"{kind}, {net.data}", f"{cell(best)} ({best.name})", cell(he) + scaled, cell(advised)]
    return "|" + "|".join([*cells, f"{than} {found.strongest.name} ({sigmas:+.1f}σ)"]) + "|"


def into(text: str, made: str) -> str:
    """`text` with a new table between the marks."""
    marked = r"(<!-- advised: begin -->\n).*?(<!-- advised: end -->)"
    return re.sub(marked, lambda found: f"{found[1]}{made}\n{found[2]}", text, flags=re.DOTALL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print the table, write nothing")
    chosen = parser.parse_args()
    lines = ["|24 layers of 128|best default|He|advised|verdict|", "|---|---|---|---|---|"]
    for net in NETWORKS:
        begun, found = time.process_time(), measured(net)
        lines.append(row(net, found))
        print(lines[-1])
        print(
            {run.name: run.rate for run in found.runs}, f"{time.process_time() - begun:.0f} CPU s", flush=True
        )
    if not chosen.show:
        for page in (ROOT / "README.md", ROOT / "docs/guides/initialize.md"):
            page.write_text(into(page.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")
