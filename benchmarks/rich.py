"""The rich limit: accuracy for seconds against training networks, errors by case, and how cost grows.

    .venv/bin/python benchmarks/rich.py [--quick] [--large] [--write]

A run of the theory is compared with the mean of trained networks: as many of them as give the mean with the same error
are said, from their own spread, with the seconds that they would take.
"""

import argparse
import time

import jax
import numpy as np
from _common import report, table

import nearkernel as nk

DIM, NEW = 10, 10


def problem(points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs on a sphere, labelled by the sign of one coordinate."""
    draw = np.random.default_rng(0).normal(size=(points + NEW, DIM))
    x = np.sqrt(DIM) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    return x[:points], np.sign(x[:points, 0]), x[points:]


def network(widths: tuple[int, ...]) -> nk.MLP:
    return nk.MLP(DIM, widths, 1, "tanh", weight_var=2.0, parametrization="mean_field")


def descent(x: np.ndarray, depth: int, steps: int) -> nk.GradientDescent:
    share = 0.3 if depth == 1 else 0.2
    lam = np.linalg.eigvalsh(nk.kernels.NTK(network((8,) * depth))(x))[-1]
    return nk.GradientDescent(share / float(lam), steps)


def limit(points: int, depth: int, steps: int, clouds) -> tuple[float, float, object]:
    """Seconds, CPU seconds and the forecast, after a first short run that compiles."""
    x, y, new = problem(points)
    algorithm, net = descent(x, depth, steps), network((64,) * depth)
    nk.forecast(net, x, y, algorithm.at(2), new, clouds=clouds)
    start, cpu = time.perf_counter(), time.process_time()
    law = nk.forecast(net, x, y, algorithm, new, clouds=clouds)
    return time.perf_counter() - start, time.process_time() - cpu, law


def relative(error: np.ndarray, mean: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2) / np.mean(mean**2)))


def sizes(quick: bool, large: bool) -> list[dict[str, str]]:
    """What the theory takes, by case."""
    clouds = nk.statistics.Clouds
    cases = [
        ("one hidden", 16, 1, 100, clouds(neurons=8192, scrambles=4, every=100)),
        ("two hidden", 10, 2, 60, clouds(neurons=2048, scrambles=4, every=60)),
    ]
    if not quick:
        cases.append(("two hidden", 20, 2, 100, clouds(neurons=4096, scrambles=4, every=100)))
    if large:
        cases += [
            ("one hidden", 1000, 1, 1000, clouds(neurons=2048, scrambles=3, every=1000)),
            ("two hidden", 100, 2, 500,
             clouds(neurons=8192, scrambles=4, every=500, tol=0.03, look=8, dtype="float32")),
        ]  # fmt: skip
    lines = []
    for name, points, depth, steps, chosen in cases:
        seconds, cpu, law = limit(points, depth, steps, chosen)
        lines.append(
            {
                "network": name,
                "points": str(points),
                "steps": str(steps),
                "neurons": str(chosen.neurons),
                "seconds": f"{seconds:.3g}",
                "CPU s": f"{cpu:.3g}",
                "error, %": f"{100 * relative(law.error, law.mean):.2g}",
                "rank": " ".join(f"{q}/{p}" for q, p in law.rank) or "-",
                "status": str(law.status.kind.name),
            }
        )
    return lines


def networks(quick: bool) -> list[dict[str, str]]:
    """How many trained networks does a run of the theory replace?"""
    points, steps = 16, 100
    x, y, new = problem(points)
    algorithm = descent(x, 1, steps)
    seconds, cpu, law = limit(points, 1, steps, nk.statistics.Clouds(neurons=8192, scrambles=4, every=steps))
    lines = []
    for width in (256,) if quick else (1024, 4096):
        net = network((width,))
        model, factors = nk.Scaled(net), net.lr_factors()
        both = {"params": factors, "start": factors}

        def one(seed: int, model=model, both=both) -> np.ndarray:
            run = nk.simulate(model, model.init(jax.random.key(seed)), x, y, algorithm, lr_factors=both)
            return np.asarray(model(run.params, new))[:, 0]

        one(0)
        start, before = time.perf_counter(), time.process_time()
        found = np.array([one(seed) for seed in range(1, 9)])
        each, each_cpu = (time.perf_counter() - start) / 8, (time.process_time() - before) / 8
        spread = relative(found.std(axis=0, ddof=1), law.mean)
        own = relative(law.error, law.mean)
        count = (spread / own) ** 2
        lines.append(
            {
                "width": str(width),
                "theory, CPU s": f"{cpu:.2g}",
                "theory error, %": f"{100 * own:.2g}",
                "one network, CPU s": f"{each_cpu:.2g}",
                "its distance, %": f"{100 * relative(found - law.mean, law.mean):.2g}",
                "mean of 8, %": f"{100 * relative(found.mean(axis=0) - law.mean, law.mean):.2g}",
                "networks for equal error": f"{count:.0f}",
                "their CPU s": f"{count * each_cpu:.0f}",
                "seconds (theory, one network)": f"{seconds:.2g}, {each:.2g}",
            }
        )
    return lines


def exponents(quick: bool) -> list[dict[str, str]]:
    """Powers of CPU seconds in points, steps and neurons, two hidden layers, from doublings."""
    base, lines = {"points": 10, "steps": 40, "neurons": 2048}, []

    def cost(points: int, steps: int, neurons: int) -> float:
        chosen = nk.statistics.Clouds(neurons=neurons, scrambles=2, every=steps)
        return min(limit(points, 2, steps, chosen)[1] for _ in range(1 if quick else 2))

    first = cost(**base)
    for name in base:
        second = cost(**{**base, name: 2 * base[name]})
        lines.append(
            {
                "in": name,
                "from": str(base[name]),
                "to": str(2 * base[name]),
                "power": f"{np.log2(second / first):.2f}",
            }
        )
    return lines


def make(options: argparse.Namespace) -> str:
    tables = sizes(options.quick, options.large), networks(options.quick), exponents(options.quick)
    parts = [table(rows) for rows in tables]
    return "\n\n".join(parts)


if __name__ == "__main__":
    report(
        __doc__,
        "rich",
        make,
        quick={"action": "store_true", "help": "small cases only"},
        large={"action": "store_true", "help": "also 1000 and 100 points, many minutes"},
    )
