"""The rich limit: accuracy for seconds against training networks, errors by case, and how cost grows.

    .venv/bin/python benchmarks/rich.py [--quick] [--large] [--write]

A run of the theory is compared with the mean of trained networks: as many of them as give the mean with the same error
are said, from their own spread over 16 seeds, with the seconds that they would take. Two hidden layers of width 4096
take minutes to train 16 times, and come only with --large.
"""

import argparse
import time

import jax
import numpy as np
from _common import report, table
from _record import keep

import nearkernel as nk
from nearkernel.forecasts import MeanField

DIM, NEW, SEEDS = 10, 10, 16


def problem(points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs on a sphere, labeled by the sign of one coordinate."""
    draw = np.random.default_rng(0).normal(size=(points + NEW, DIM))
    x = np.sqrt(DIM) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    return x[:points], np.sign(x[:points, 0]), x[points:]


def network(widths: tuple[int, ...], activation: str = "tanh") -> nk.MLP:
    return nk.MLP(DIM, widths, 1, activation, weight_var=2.0, parametrization="mean_field")


def descent(x: np.ndarray, depth: int, steps: int, activation: str = "tanh") -> nk.GradientDescent:
    share = 0.3 if depth == 1 else 0.2
    lam = np.linalg.eigvalsh(nk.kernels.NTK(network((8,) * depth, activation))(x))[-1]
    return nk.GradientDescent(share / float(lam), steps)


def limit(
    points: int, depth: int, steps: int, clouds: MeanField, activation: str = "tanh"
) -> tuple[float, float, object]:
    """Seconds, CPU seconds and the forecast, after a first short run that compiles."""
    x, y, new = problem(points)
    algorithm, net = descent(x, depth, steps, activation), network((64,) * depth, activation)
    nk.forecast(net, x, y, algorithm.at(2), new, theory=clouds)
    start, cpu = time.perf_counter(), time.process_time()
    law = nk.forecast(net, x, y, algorithm, new, theory=clouds)
    return time.perf_counter() - start, time.process_time() - cpu, law


def relative(error: np.ndarray, mean: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2) / np.mean(mean**2)))


def sizes(quick: bool, large: bool) -> list[dict[str, str]]:
    """What the theory takes, by case."""
    cases = [
        ("tanh", 16, 1, 100, MeanField(neurons=8192, scrambles=4, every=100)),
        ("tanh", 10, 2, 60, MeanField(neurons=2048, scrambles=4, every=60)),
    ]
    if not quick:
        cases += [
            ("tanh", 20, 2, 100, MeanField(neurons=4096, scrambles=8, every=100)),
            ("tanh", 10, 2, 60, MeanField(neurons=4096, scrambles=4, every=60)),
            ("relu", 10, 2, 60, MeanField(neurons=4096, scrambles=4, every=60)),
        ]
    if large:
        cases += [
            ("tanh", 1000, 1, 1000, MeanField(neurons=2048, scrambles=3, every=1000, dtype="float32")),
            ("tanh", 100, 2, 500,
             MeanField(neurons=8192, scrambles=4, every=500, tol=0.03, look=8, dtype="float32")),
        ]  # fmt: skip
    lines = []
    for activation, points, depth, steps, chosen in cases:
        seconds, cpu, law = limit(points, depth, steps, chosen, activation)
        lines.append(
            {
                "hidden layers": f"{depth} {activation}",
                "points": str(points),
                "steps": str(steps),
                "neurons": f"{chosen.neurons} x {chosen.scrambles}",
                "seconds": f"{seconds:.3g}",
                "CPU s": f"{cpu:.3g}",
                "error, %": f"{100 * relative(law.error, law.mean):.2g}",
                "rank": " ".join(f"{q}/{p}" for q, p in law.rank) or "-",
                "status": str(law.status.kind.name),
            }
        )
    return lines


def networks(quick: bool, large: bool) -> list[dict[str, str]]:
    """How many trained networks does a run of the theory replace?"""
    if quick:
        return against(1, 16, 100, MeanField(neurons=8192, scrambles=4, every=100), (256,))
    deep = (1024, 4096) if large else (1024,)
    return [
        *against(1, 16, 100, MeanField(neurons=8192, scrambles=4, every=100), (1024, 4096)),
        *against(2, 10, 60, MeanField(neurons=2048, scrambles=8, every=60), deep),
    ]


def against(
    depth: int, points: int, steps: int, clouds: MeanField, widths: tuple[int, ...]
) -> list[dict[str, str]]:
    """A row for each width of the networks."""
    x, y, new = problem(points)
    algorithm = descent(x, depth, steps)
    seconds, cpu, law = limit(points, depth, steps, clouds)
    lines = []
    for width in widths:
        model = nk.Scaled(network((width,) * depth))

        def one(seed: int, model=model) -> np.ndarray:
            run = nk.simulate(model, model.init(jax.random.key(seed)), x, y, algorithm)
            return np.asarray(model(run.params, new))[:, 0]

        one(0)
        start, before = time.perf_counter(), time.process_time()
        found = np.array([one(seed) for seed in range(1, SEEDS + 1)])
        each, each_cpu = (time.perf_counter() - start) / SEEDS, (time.process_time() - before) / SEEDS
        spread = relative(found.std(axis=0, ddof=1), law.mean)
        own = relative(law.error, law.mean)
        count = (spread / own) ** 2
        keep(f"{depth} hidden of width {width}", "trained networks", count * each_cpu, cpu)
        lines.append(
            {
                "hidden layers": str(depth),
                "width": str(width),
                "theory, CPU s": f"{cpu:.2g}",
                "theory error, %": f"{100 * own:.2g}",
                "one network, CPU s": f"{each_cpu:.2g}",
                "its distance, %": f"{100 * relative(found - law.mean, law.mean):.2g}",
                f"mean of {SEEDS}, %": f"{100 * relative(found.mean(axis=0) - law.mean, law.mean):.2g}",
                "networks for equal error": f"{count:.0f}",
                "their CPU s": f"{count * each_cpu:.2g}",
                "seconds (theory, one network)": f"{seconds:.2g}, {each:.2g}",
            }
        )
    return lines


def exponents(quick: bool) -> list[dict[str, str]]:
    """Powers of CPU seconds in points, steps and neurons, two hidden layers, fitted over three sizes."""
    base = {"points": 10, "steps": 40, "neurons": 2048}
    tried = {"points": (5, 10, 20), "steps": (20, 40, 80), "neurons": (2048, 4096, 8192)}
    if quick:
        base = {"points": 6, "steps": 20, "neurons": 1024}
        tried = {"points": (3, 6, 12), "steps": (10, 20, 40), "neurons": (1024, 2048, 4096)}
    known: dict[tuple[int, ...], float] = {}

    def cost(points: int, steps: int, neurons: int) -> float:
        chosen, size = MeanField(neurons=neurons, scrambles=2, every=steps), (points, steps, neurons)
        if size not in known:
            known[size] = min(limit(points, 2, steps, chosen)[1] for _ in range(1 if quick else 2))
        return known[size]

    lines = []
    for name, values in tried.items():
        costs = [cost(**{**base, name: value}) for value in values]
        power = np.polyfit(np.log(values), np.log(costs), 1)[0]
        lines.append(
            {
                "in": name,
                "sizes": ", ".join(map(str, values)),
                "CPU s": ", ".join(f"{each:.2g}" for each in costs),
                "power": f"{power:.2f}",
            }
        )
    return lines


def make(options: argparse.Namespace) -> str:
    tables = (
        sizes(options.quick, options.large),
        networks(options.quick, options.large),
        exponents(options.quick),
    )
    parts = [table(rows) for rows in tables]
    return "\n\n".join(parts)


if __name__ == "__main__":
    report(
        __doc__,
        "rich",
        make,
        quick={"action": "store_true", "help": "small cases only"},
        large={
            "action": "store_true",
            "help": "also 1000 and 100 points, and two hidden layers of width 4096: many minutes",
        },
    )
