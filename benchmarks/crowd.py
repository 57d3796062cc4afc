"""A crowd in the lab: how long users wait, and what the server's memory does, on this machine alone.

    .venv/bin/python benchmarks/crowd.py [--seconds 60] [--kind moves|mixed|random] [--write]

Each user has a page of its own and asks again a moment after an answer, as somebody does who moves a slider. `moves`:
20 users move sliders that change no shape, after every page was opened; `mixed`: the same with five more users who ask
for any settings, most of which compile, and do not count; `random`: 50 users of that kind. Then all leave at once, and
what the server still computes is measured.
"""

import argparse
import asyncio
import collections
import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import numpy as np
import psutil
from _common import report, table

from nearkernel.lab import NAMES, find

PAUSE = 0.2  # seconds between an answer and the next question, on average
LOOK = 1.0  # seconds between two looks at the memory
AFTER = 10.0  # seconds after which the server should be idle
ASKED = 2.0  # seconds in which 95 % of moves are to be answered
CROWDS = {
    "moves": (20, 0),
    "mixed": (20, 5),
    "random": (0, 50),
}  # users who move sliders, and who ask for anything


@contextlib.contextmanager
def lab() -> Iterator[tuple[str, psutil.Process]]:
    command = (sys.executable, "-m", "nearkernel", "lab", "--no-browser")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield (
            next(word for word in process.stdout.readline().split() if word.startswith("http")),
            psutil.Process(process.pid),
        )
    finally:
        process.terminate()
        process.wait(20)


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def memory(process: psutil.Process) -> float:
    """MiB of the server and its processes."""
    total = 0
    for each in family(process):
        with contextlib.suppress(psutil.Error):
            total += each.memory_info().rss
    return total / 2**20


def computed(process: psutil.Process) -> float:
    total = 0.0
    for each in family(process):
        with contextlib.suppress(psutil.Error):
            total += sum(each.cpu_times()[:2])
    return total


def settings(name: str, kind: str, rng: random.Random) -> dict[str, str]:
    """A move of one slider, or any settings."""
    every = [each for each in find(name).settings() if each.kind in (int, float) or each.choices]
    chosen = [rng.choice([each for each in every if each.kind is float])] if kind == "moves" else every
    typed = {}
    for each in chosen:
        if each.choices:
            typed[each.name] = rng.choice(each.choices)
        elif each.kind is int:
            typed[each.name] = str(rng.randint(int(each.low), int(each.high)))
        else:
            low, high = (each.default * 0.9, each.default * 1.1) if kind == "moves" else (each.low, each.high)
            typed[each.name] = f"{min(each.high, max(each.low, rng.uniform(low, high))):.6g}"
    return typed


async def user(number: int, where: str, kind: str, end: float, waits: list[float], statuses: dict) -> None:
    rng, name = random.Random(number), NAMES[number % len(NAMES)]
    headers = {"X-Lab-Page": f"user-{number}"}
    async with httpx.AsyncClient(base_url=where, timeout=600, headers=headers) as web:
        while time.monotonic() < end:
            begin = time.monotonic()
            answer = await web.get(f"/api/experiments/{name}", params=settings(name, kind, rng))
            statuses[answer.status_code] += 1
            waits.append(time.monotonic() - begin)
            await asyncio.sleep(rng.expovariate(1 / PAUSE))
            if kind == "random":
                name = rng.choice(NAMES)


async def look(process: psutil.Process, found: list[float]) -> None:
    while True:
        found.append(memory(process))
        await asyncio.sleep(LOOK)


async def crowd(kind: str, seconds: float) -> dict[str, str]:
    movers, others = CROWDS[kind]
    with lab() as (where, process):
        async with httpx.AsyncClient(base_url=where, timeout=600) as web:
            for name in NAMES if movers else NAMES[2:3]:
                await asyncio.gather(*(web.get(f"/api/experiments/{name}") for _ in range(2)))
        waits: list[float] = []
        aside: list[float] = []
        held: list[float] = []
        statuses: dict[int, int] = collections.Counter()
        looking = asyncio.create_task(look(process, held))
        start, end = computed(process), time.monotonic() + seconds
        everybody = [
            asyncio.create_task(user(i, where, "moves", end, waits, statuses)) for i in range(movers)
        ] + [
            asyncio.create_task(user(movers + i, where, "random", end, aside if movers else waits, statuses))
            for i in range(others)
        ]
        await asyncio.wait(everybody, timeout=seconds)
        spent = computed(process) - start
        for each in everybody:
            each.cancel()  # they leave, whatever they wait for
        await asyncio.gather(*everybody, return_exceptions=True)
        await asyncio.sleep(AFTER)
        before = computed(process)
        await asyncio.sleep(5)
        looking.cancel()
        middle, last = held[len(held) // 3], held[: int(seconds / LOOK)][-1]
        return {
            "users": f"{movers} moving, {others} compiling",
            "answers": f"{statuses[200]}",
            "other": ", ".join(f"{n} of {code}" for code, n in statuses.items() if code != 200) or "none",
            "processor ms an answer": f"{1000 * spent / max(1, statuses[200]):.0f}",
            "median, s": f"{np.median(waits):.2f}",
            "95 %, s": f"{np.quantile(waits, 0.95):.2f}",
            "asked": f"{ASKED:g}" if movers else "",
            "reached": ("yes" if np.quantile(waits, 0.95) <= ASKED else "NO") if movers else "",
            "MiB at 1/3 and at the end": f"{middle:.0f}, {last:.0f}",
            f"busy {AFTER:.0f} s later": f"{100 * (computed(process) - before) / 5:.0f} %",
        }


def tables(chosen: argparse.Namespace) -> str:
    kinds = [chosen.kind] if chosen.kind else list(CROWDS)
    return table([asyncio.run(crowd(kind, chosen.seconds)) for kind in kinds])


if __name__ == "__main__":
    more = {
        "seconds": {"type": float, "default": 60.0, "help": "for how long"},
        "kind": {"choices": list(CROWDS), "help": "which crowd; all, one after the other, if not given"},
    }
    report(__doc__, "crowd", tables, **more)
