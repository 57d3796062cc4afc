"""Networks made of layers against neural-tangents 0.6.5: seconds, memory and agreement in one run.

    .venv/bin/python benchmarks/architectures.py [--quick] [--only TEXT] [--write]

As benchmarks/kernels.py does it: both see the same arrays, each in a process and an environment of its own, in turn.
"""

import dataclasses
import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from _common import Worker, beside, data, deviations, in_turn, report, table_of
from _record import keep

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.architectures import FLATTEN, GLOBAL, RELU, attention, conv, dense, pool, residual

CONV = conv(weight_var=2.0, bias_var=0.0)
# Operations an entry of both kernels needs, at least: window sums along two axes; relu with root and polynomials; ...
OPERATIONS = {
    "conv": 20,
    "activation": 30,
    "pool": 6,
    "dense": 8,
    "sum": 6,
    "attention": 0,
    "global": 2,
    "flatten": 2,
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A network, the number of inputs, and what is asked of us (`target`: their seconds over ours)."""

    label: str
    shape: tuple[int, ...]
    layers: list[Any]
    n: int
    task: str = "layers"
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    repeats: int = 5
    target: float = 3.0

    def arrays(self) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(0).normal
        found = {"x": draw(size=(self.n, *self.shape))}
        if self.task == "layers_empirical":
            for i, (weight, bias) in enumerate(self.parameters()):
                found |= {f"weight{i}": draw(size=weight), f"bias{i}": draw(size=bias)}
        return found

    def parameters(self):
        """Shapes of weights and biases: convolutions keep positions here, Flatten and Dense come last."""
        channels, width = self.shape[-1], self.options["width"]
        for kind, options in self.layers:
            if kind == "conv":
                yield (*options["filter"], channels, width), (width,)
                channels = width
            if kind == "flatten":
                channels *= math.prod(self.shape[:-1])
            if kind == "dense":
                yield (channels, options["width"]), (options["width"],)

    def flops(self) -> float:
        """Of the recursion over all pairs of inputs and positions, or of the contraction of gradients."""
        pairs, positions = self.n * (self.n + 1) / 2, math.prod(self.shape[:-1])
        if self.task == "layers_empirical":
            outputs, full = self.layers[-1][1]["width"], self.options["full"]
            rows, sums = (self.n * outputs, 1) if full else (self.n, outputs)
            return rows * rows * sums * sum(math.prod(weight) for weight, _ in self.parameters())
        total, mixes = 0.0, any(kind in ("global", "pool", "attention") for kind, _ in self.layers)
        compared = positions**2 if mixes else positions
        for kind, options in _flat(self.layers):
            if kind == "attention":
                total += pairs * 8 * positions**3
            total += pairs * compared * OPERATIONS[kind]
            if kind == "pool":
                compared /= math.prod(options["strides"]) ** 2
            if kind in ("global", "flatten"):
                compared = 1
        return total


def _flat(layers):
    for kind, options in layers:
        if kind == "sum":
            yield from itertools.chain.from_iterable(_flat(branch) for branch in options)
        yield kind, options


def rows(quick: bool) -> list[Row]:
    """All of them; `quick` on small images."""
    image = (8, 8, 3) if quick else (32, 32, 3)
    part = 4 if quick else 1
    five = [CONV, RELU] * 5
    flat = [*five, FLATTEN, dense()]
    myrtle = [CONV, RELU, CONV, RELU, pool(), CONV, RELU, pool(), CONV, RELU, pool(), GLOBAL, dense()]
    deep = [dense(), *[residual(RELU, dense(0.5, 0.0))] * 10, RELU, dense()]
    words = [dense(), attention(), RELU, dense(), residual(RELU, dense()), GLOBAL, dense()]
    convolutions = [CONV, RELU, CONV, RELU, FLATTEN]
    return [
        Row("5 convolutions, flatten", image, flat, 100 // part),
        Row("5 convolutions, flatten, float32", image, flat, 100 // part, options={"float32": True}),
        Row("5 convolutions, global pooling", image, [*five, GLOBAL, dense()], 4, repeats=2),
        Row("Myrtle-like: 4 convolutions, 3 pools", image, myrtle, 4, repeats=2),
        Row("residual MLP, 10 blocks", (784,), deep, 2000 // part),
        Row("attention, 32 positions", (32, 16), words, 48 // part),
        *(
            Row(
                f"empirical NTK, CNN, {outputs} output{'s' * (outputs > 1)}, {'full' if full else 'mean over outputs'}",
                (8, 8, 3),
                [*convolutions, ("dense", {**dense()[1], "width": outputs})],
                n // part,
                "layers_empirical",
                {"width": 32, "full": full},
            )
            for outputs, full, n in ((10, True, 48), (1, False, 200), (10, False, 200), (1, False, 1000))
        ),
    ]


def run(row: Row, rival: str) -> dict[str, str]:
    """One line of the table."""
    with (
        data(**row.arrays()) as folder,
        Worker(sys.executable, "_ours.py") as ours,
        Worker(rival, "_rival.py") as theirs,
        Worker(sys.executable, "_ours.py") as limit,
    ):
        options = {"folder": str(folder), "shape": row.shape, "layers": row.layers, **row.options}
        ours.ask("load", task=row.task, **options)
        theirs.ask("load", task=row.task, **options)
        limit.ask("load", task="peak_flops", folder=str(folder), flops=row.flops())
        us, them, least = in_turn([ours, theirs, limit], [row.repeats, row.repeats, max(3, row.repeats)])
        found, expected = ours.results(folder / "ours.npz"), theirs.results(folder / "theirs.npz")
    on, off = deviations(found, expected)
    keep(f"{row.label}, n = {row.n}", "neural-tangents", them.cpu, us.cpu)
    agree = (1e-4, 1e-4) if row.options.get("float32") else (1e-7, 1e-9)
    missed = {"agreement": on > agree[0] or off > agree[1]}
    return beside(row.label, row.n, row.target, us, them, least, (on, off), missed)


def measured(chosen) -> str:
    return table_of(rows(chosen.quick), run, chosen.only)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "small images, fewer inputs"}
    only = {"default": "", "help": "rows whose name holds this text"}
    report(__doc__, "architectures", measured, quick=quick, only=only)
