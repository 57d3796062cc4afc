"""Statistics of networks: `nk.measure` against a loop over networks; `nk.propagate` and `nk.forecast` against limits.

    .venv/bin/python benchmarks/statistics.py [--quick] [--write]

The loop draws a network, computes the same observable by the same arithmetic, and adds it up, one network a turn: once
as one writes it, and once with all of a network compiled into one function. Loops are timed over a share of the
networks, in turns with `measure`, and scaled up. Each row of sampled neurons runs in its own process, whose peak is
that of all it holds, JAX included.
"""

import concurrent.futures
import multiprocessing
import time
import warnings

import jax
import numpy as np
from _common import report, table
from _worker import peak, reset_peak, resident

import nearkernel as nk

WIDTH, LAYERS, NETWORKS, TURNS, SHARE = 64, 5, 100_000, 2, 25
MEMORY = 2**30


def held() -> int:
    """Bytes that this process holds now, from which `peak` starts again."""
    reset_peak()
    return resident()


def timed(function, *arguments) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    function(*arguments)
    return time.perf_counter() - start, time.process_time() - cpu


def measured_v(networks: int) -> list[dict[str, str]]:
    """V of the last layer, one input: a line for each kind of loop."""
    net = nk.MLP(10, (WIDTH,) * (LAYERS - 1), 1, "tanh", weight_var=1.5, bias_var=0.1)
    x = np.random.default_rng(0).normal(size=(1, 10))
    observe, key = nk.theory.observables(net, x, "four_point"), jax.random.key(0)

    with jax.enable_x64(True):

        def one(index: int):
            return observe(net.init(jax.random.fold_in(key, index)))["four_point"]

        compiled = jax.jit(one)

        def loop(function, count: int) -> None:
            values = [np.asarray(function(index)) for index in range(count)]
            np.mean(values, axis=0), np.std(values, axis=0)

        loop(compiled, 1), loop(one, 1)
        before, ours, loops = held(), [], {"as written": [], "compiled": []}
        for _ in range(TURNS):
            loops["compiled"].append((SHARE, *timed(loop, compiled, networks // SHARE)))
            loops["as written"].append((networks / 20, *timed(loop, one, 20)))
            ours.append(timed(nk.measure, observe, net, networks, key))
        added = peak() - before
    seconds, cpu = (min(run[k] for run in ours) for k in (0, 1))
    lines = []
    for name, runs in loops.items():
        loop_seconds, loop_cpu = (min(run[0] * run[k] for run in runs) for k in (1, 2))
        missed = {"speed": loop_seconds < 5 * seconds, "memory": added > MEMORY}
        lines.append(
            {
                "row": f"measure V, {LAYERS} layers of width {WIDTH}, {networks} networks",
                "loop": name,
                "loop, s": f"{loop_seconds:.0f}",
                "ours, s": f"{seconds:.1f}",
                "loop/ours": f"{loop_seconds / seconds:.1f}",
                "target": "5",
                "in CPU s": f"{loop_cpu / cpu:.1f}",
                "peak, MB": f"{added / 1e6:.0f}",
                "missed": ", ".join(key for key, is_missed in missed.items() if is_missed) or "none",
            }
        )
    return lines


def limited(name: str, limit: float, function) -> dict[str, str]:
    """A line on a call that should take no longer than `limit` seconds."""
    before = held()
    seconds, cpu = timed(function)
    return {
        "row": name,
        "ours, s": f"{seconds:.1f}",
        "in CPU s": f"{cpu:.1f}",
        "limit, s": f"{limit:g}",
        "peak, MB": f"{(peak() - before) / 1e6:.0f}",
        "missed": "speed" if seconds > limit else "none",
    }


def propagated(inputs: int, limit: float) -> dict[str, str]:
    net = nk.MLP(10, (128,) * 9, 1, "tanh", weight_var=1.0)
    x = np.random.default_rng(inputs).normal(size=(inputs, 10))
    name = f"propagate(order=1), tanh, 10 layers, {inputs} inputs, first call"
    return limited(name, limit, lambda: nk.propagate(net, x, order=1))


def forecast(train: int, new: int) -> nk.results.FiniteForecast:
    net = nk.MLP(4, (128,) * 3, 1, "tanh", weight_var=1.5, bias_var=0.15)
    rng = np.random.default_rng(train)
    x, x_new = rng.normal(size=(train, 4)), rng.normal(size=(new, 4))
    law = nk.forecast(net, x, np.sin(x.sum(axis=1)), None, x_new, theory=nk.FiniteWidth())
    assert isinstance(law, nk.results.FiniteForecast)
    return law


def forecasts(train: int, new: int, limit: float) -> dict[str, str]:
    name = f"forecast(order=1), tanh, 3 hidden layers, {train} + {new} points"
    return limited(name, limit, lambda: forecast(train, new))


def cumulants(train: int, new: int, limit: float) -> dict[str, str]:
    """After a forecast: averages of three and four new inputs, if there are as many, are made for them."""
    law = forecast(train, new)
    name = f"cumulants(3), cumulants(4), 10000 draws of it, {train} + {new} points"
    return limited(name, limit, lambda: (law.cumulants(3), law.cumulants(4), law.sample(10_000, 0)))


def depths(rows: int, deepest: int, limit: float) -> dict[str, str]:
    net = nk.MLP(4, (128,) * deepest, 1, "tanh", weight_var=1.0)
    x = np.random.default_rng(rows).normal(size=(rows, 4))
    name = f"depth_losses, tanh, 1 to {deepest} hidden layers, {rows} rows"
    return limited(name, limit, lambda: nk.theory.depth_losses(net, x, np.sin(x.sum(axis=1))))


def sampled(
    train: int, new: int, depth: int, neurons: int, limit: float, most: float | None
) -> dict[str, str]:
    """Many points, by neurons that are drawn: seconds, and errors relative to the correction, rms over new points.

    The error of the mean should be below `most`, if given, and the memory of the process below `MEMORY`.
    """
    net = nk.MLP(5, (512,) * depth, 1, "tanh", weight_var=1.5, bias_var=0.15)
    rng = np.random.default_rng(train)
    x, x_new = rng.normal(size=(train, 5)), rng.normal(size=(new, 5))
    options, found = nk.FiniteWidth(tolerance=1e-9, most=neurons), []

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not small at this width, and all neurons are used
            found.append(nk.forecast(net, x, np.sin(x.sum(axis=1)), None, x_new, theory=options))

    seconds, cpu = timed(run)
    law = found[0]
    shares = [
        np.sqrt(np.mean(error**2) / np.mean(size**2))
        for error, size in (
            (law.error.mean, law.terms[1]),
            (np.diagonal(law.error.cov), np.diagonal(law.cov_terms[1])),
        )
    ]
    missed = {
        "speed": seconds > limit, "accuracy": most is not None and shares[0] > most, "memory": peak() > MEMORY
    }  # fmt: skip
    return {
        "row": f"forecast(order=1), tanh, {depth} hidden, {train} + {new} points, {law.neurons} neurons per layer",
        "ours, s": f"{seconds:.1f}",
        "in CPU s": f"{cpu:.1f}",
        "limit, s": f"{limit:g}",
        "error of mean, variance": ", ".join(f"{100 * share:.1f} %" for share in shares),
        "limit of mean": "" if most is None else f"{100 * most:g} %",
        "peak, MB": f"{peak() / 1e6:.0f}",
        "missed": ", ".join(key for key, is_missed in missed.items() if is_missed) or "none",
    }


def alone(function, *arguments):
    """In a new process, so that its peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(function, *arguments).result()


def measured(chosen) -> str:
    theory = [propagated(2, 5.0), propagated(8, 120.0), forecasts(2, 2, 30.0), forecasts(8, 4, 300.0)]
    theory += [cumulants(2, 2, 1.0), cumulants(3, 4, 60.0), depths(6, 8, 60.0)]
    scale = 16 if chosen.quick else 1
    many = [
        alone(sampled, 64, 100, 1, 2**17 // scale, 60.0, 0.03),
        alone(sampled, 128, 100, 1, 2**17 // scale, 180.0, 0.03),
        alone(sampled, 64, 100, 2, 2**15 // scale, 180.0, 0.05),
        alone(sampled, 256, 100, 1, 2**14 // scale, 600.0, None),
    ]
    experiment = measured_v(NETWORKS // 10 if chosen.quick else NETWORKS)
    return f"{table(experiment)}\n\n{table(theory)}\n\n{table(many)}"


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "a tenth of the networks"}
    report(__doc__, "statistics", measured, quick=quick)
