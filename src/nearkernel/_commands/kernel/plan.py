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
from .settings import kernel_settings, make_kernel

_WAYS = {
    "build": "matrix on disk",
    "direct": "factorization",
    "solve": "conjugate gradients",
    "centers": "centers, one pass",
}


@dataclasses.dataclass(frozen=True)
class Given:
    """Rates that were typed: entries per second and core, bytes per second; None is measured or assumed."""

    entries: float | None
    disk: str | None
    network: str | None


def plan(
    n: int, d: int, settings: dict[str, Any], given: Given, about: dict[str, Any], as_json: bool
) -> None:
    """`about` are further arguments of `nk.scale.plan`."""
    dtype = "float32" if about.pop("float32") else "float64"
    if about["memory"] is not None:
        about["memory"] = parse_bytes(about["memory"], "--memory")
    disk, network = (_speed(text, name) for text, name in ((given.disk, "disk"), (given.network, "network")))
    if given.entries is not None and not 0 < given.entries < math.inf:
        raise ValueError(
            f"--entries {given.entries:g}: give entries per second and core, a finite number above 0."
        )
    with progress() as shown:
        shown.say("measuring this machine")
        rates = nk.scale.measure_rates(make_kernel(settings, d), d, dtype=dtype)
    changed: dict[str, Any] = {}
    if given.entries is not None:
        changed = dict.fromkeys(("build", "product", "entries"), given.entries)
    changed |= {name: value for name, value in (("disk", disk), ("network", network)) if value is not None}
    rates = dataclasses.replace(rates, **changed)
    found = nk.scale.plan(n, d, rates, dtype_bytes=4 if dtype == "float32" else 8, **about)
    if as_json:
        print_json({**_plain(found), "kernel": settings, "rates": _plain(rates)})
        return
    console().print("\n".join(_lines(found, rates, settings["kernel"], dtype)), markup=False)


def _speed(text: str | None, name: str) -> float | None:
    """Bytes per second of a text such as "1GB/s"."""
    if text is None:
        return None
    return float(parse_bytes(re.sub(r"\s*(/s|ps)\s*$", "", text), f"--{name}"))


def _plain(record: Any) -> dict[str, Any]:
    return dataclasses.asdict(record)


def _lines(found: nk.results.PlanResult, rates: nk.results.Rates, kernel: str, dtype: str) -> list[str]:
    who = f"{found.workers} workers" if found.workers else f"{rates.cores} cores"
    lines = [
        f"{found.n:,} points of {found.d} features, kernel {kernel} in {dtype}",
        f"one core: {rates.build:.2g} entries/s to disk, {rates.product:.2g} in a product, "
        f"{rates.flops / 1e9:.0f} Gflop/s; disk {human_bytes(rates.disk)}/s, network {human_bytes(rates.network)}/s",
    ]
    notes = {
        "build": f"{who}, {human_bytes(found.build.disk)}; limit: {found.build.limit}",
        "direct": "this machine",
        "solve": f"this machine, {found.iterations} iterations of {spoken(found.product.seconds)} each (assumed count)",
        "centers": f"this machine, {found.m:,} centers; limit: {found.centers.limit}",
    }
    for name, words in _WAYS.items():
        cost: nk.results.Cost = getattr(found, name)
        time = spoken(cost.seconds) if cost.possible else f"({spoken(cost.seconds)})"
        holds = f"holds {human_bytes(cost.memory)}"
        lines.append(
            f"  {words:20} {time:>12}   {holds:18} {notes[name]}{'' if cost.possible else '; does not fit'}"
        )
    if found.workers:
        lines.append(
            f"each worker holds {human_bytes(found.build.memory)}: the inputs, and a block in the making"
        )
    lines.append(f"choose solver={found.solver!r}: {found.reason}")
    return lines


def spoken(seconds: float) -> str:
    """A time in the unit that fits."""
    for unit, size in (("years", 31557600.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 1e4 * size else f"{seconds / size:.1e} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


__all__ = ["Given", "kernel_settings", "plan", "spoken"]
