"""`nearkernel kernel plan`: how long a matrix, a solution and a pass over centers would take, from rates of this
machine."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import nearkernel as nk

from ..._run.memory import human_bytes, parse_bytes
from ..streams import console, print_json, progress
from .options import Plan
from .settings import LENGTHS, kernel_settings, make_kernel

_WAYS = {
    "build": "matrix on disk",
    "direct": "factorization",
    "solve": "conjugate gradients",
    "centers": "centers, one pass",
}


def plan(options: Plan, as_json: bool) -> None:
    length = options.length
    if options.kernel in LENGTHS and length is None:
        length = options.d**0.5
    settings = kernel_settings(options, length)
    memory = None if options.memory is None else parse_bytes(options.memory, "--memory")
    typed: dict[str, Any] = {
        "disk": _speed(options.disk, "disk"),
        "network": _speed(options.network, "network"),
    }
    if options.entries is not None:
        if not 0 < options.entries < math.inf:
            raise ValueError(
                f"--entries {options.entries:g}: give entries per second and core, a finite number above 0."
            )
        typed |= dict.fromkeys(("build", "product", "entries"), options.entries)
    with progress() as shown:
        shown.say("measuring this machine")
        rates = nk.scale.measure_rates(make_kernel(settings, options.d), options.d, dtype=options.dtype)
    rates = dataclasses.replace(rates, **{name: value for name, value in typed.items() if value is not None})
    job = nk.scale.plan(
        options.n, options.d, rates, dtype_bytes=4 if options.dtype == "float32" else 8, workers=options.workers,
        machines=options.machines, iterations=options.iterations, centers=options.centers, memory=memory,
    )  # fmt: skip
    if as_json:
        print_json({**dataclasses.asdict(job), "kernel": settings, "rates": dataclasses.asdict(rates)})
        return
    console().print("\n".join(_lines(job, rates, options.kernel, options.dtype)))


def _speed(text: str | None, name: str) -> float | None:
    """Bytes per second of a text such as "1GB/s"."""
    if text is None:
        return None
    return float(parse_bytes(re.sub(r"\s*(/s|ps)\s*$", "", text), f"--{name}"))


def _lines(job: nk.results.PlanResult, rates: nk.results.Rates, kernel: str, dtype: str) -> list[str]:
    who = f"{job.workers} workers" if job.workers else f"{rates.cores} cores"
    lines = [
        f"{job.n:,} points of {job.d} features, kernel {kernel} in {dtype}",
        f"one core: {rates.build:.2g} entries/s to disk, {rates.product:.2g} in a product, "
        f"{rates.flops / 1e9:.0f} Gflop/s; disk {human_bytes(rates.disk)}/s, network {human_bytes(rates.network)}/s",
    ]
    notes = {
        "build": f"{who}, {human_bytes(job.build.disk)}; limit: {job.build.limit}",
        "direct": "this machine",
        "solve": f"this machine, {job.iterations} iterations of {spoken(job.product.seconds)} each (assumed count)",
        "centers": f"this machine, {job.m:,} centers; limit: {job.centers.limit}",
    }
    for name, words in _WAYS.items():
        cost: nk.results.Cost = getattr(job, name)
        time = spoken(cost.seconds) if cost.possible else f"({spoken(cost.seconds)})"
        holds = f"holds {human_bytes(cost.memory)}"
        lines.append(
            f"  {words:20} {time:>12}   {holds:18} {notes[name]}{'' if cost.possible else '; does not fit'}"
        )
    if job.workers:
        lines.append(
            f"each worker holds {human_bytes(job.build.memory)}: the inputs, and a block in the making"
        )
    lines.append(f"choose solver={job.solver!r}: {job.reason}")
    return lines


def spoken(seconds: float) -> str:
    """A time in the unit that fits."""
    for unit, size in (("years", 31557600.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 1e4 * size else f"{seconds / size:.1e} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
