"""How fast the lab answers, measured in a real browser: from the move of a control to the picture drawn.

    .venv/bin/python benchmarks/lab.py [--quick] [--only PAGE] [--write] [--picture]

Every page is opened at its default sizes in a lab of its own, first with an empty folder of compiled programs, then in
another process with the folder that the first one left. There each slider that changes no shape is moved ten times by
the keyboard, and each that changes a size a few times, of which the first does not count: it may compile.
`--picture` also makes docs/figures/lab.png. Needs Chromium (`make browser`).
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common import report, table
from PIL import Image

from nearkernel.lab import NAMES, find

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "lab.png"
COLD, WARM, SIZE, MEDIAN = 8000, 2000, 1000, 300  # ms that are asked for
MOVES, SIZES = 10, 4
ANSWERED = """([before, error]) => document.getElementById('content').dataset.answered !== before
    || Boolean(document.getElementById(error)?.textContent)"""
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@contextlib.contextmanager
def browser_page(size: tuple[int, int] = (1440, 900), programs: str = "1") -> Iterator[Any]:
    """A page in Chromium, with a lab of its own behind it that keeps compiled `programs` in a folder."""
    from playwright.sync_api import sync_playwright

    command = (sys.executable, "-m", "nearkernel", "lab", "--no-browser")
    environment = dict(os.environ, NEARKERNEL_CACHE=programs)
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert lab.stdout is not None
        where = next(word for word in lab.stdout.readline().split() if word.startswith("http"))
        with sync_playwright() as tools:
            browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
            viewport = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport, base_url=where, color_scheme="light")
            page.set_default_timeout(300_000)
            yield page
    finally:
        lab.terminate()
        lab.wait()


def spoken(page: Any) -> float:
    """Milliseconds of the page's last answer."""
    return float(page.locator("#speed").get_attribute("data-ms"))


def moved(page: Any, name: str, moves: int) -> list[float]:
    """Milliseconds of the answers to each move of a slider, always to a value that was not asked for before."""
    found = []
    page.focus(f"#slider-{name}")
    for _ in range(moves):
        before = page.locator("#content").get_attribute("data-answered")
        slider = page.locator(f"#slider-{name}")
        last = slider.input_value() == slider.get_attribute("max")
        page.keyboard.press("ArrowLeft" if last else "ArrowRight")
        page.wait_for_function(ANSWERED, arg=[before, f"error-{name}"])
        if page.locator("#content").get_attribute("data-answered") == before:  # not for these data
            page.keyboard.press("ArrowLeft")
            break
        found.append(spoken(page))
    return found


def opened(page: Any, name: str) -> float:
    """Milliseconds of the first answer of a page, or of the first move of a slider if one takes longer."""
    page.goto(f"/{name}")
    page.wait_for_selector("#content[data-answered]")
    first = [spoken(page)]
    for each in find(name).settings():
        if each.kind is float:
            first += moved(page, each.name, 1)
    return max(first)


def measured(name: str, quick: bool) -> dict[str, str]:
    settings, moves = find(name).settings(), 3 if quick else MOVES
    with tempfile.TemporaryDirectory() as programs:
        with browser_page(programs=programs) as page:
            cold = opened(page, name)
        with browser_page(programs=programs) as page:
            warm = opened(page, name)
            times = {each.name: moved(page, each.name, moves) for each in settings if each.kind is float}
            sizes = {each.name: moved(page, each.name, SIZES)[1:] for each in settings if each.kind is int}
            times, sizes = ({name: each for name, each in some.items() if each} for some in (times, sizes))
    median = lambda each: np.median(times[each])
    slow, large = (
        max(times, key=median, default=""),
        max(sizes, key=lambda each: max(sizes[each]), default=""),
    )
    middle, resized = median(slow) if slow else 0.0, max(sizes[large]) if large else 0.0
    missed = {"cold": cold > COLD, "warm": warm > WARM, "slider": middle > MEDIAN, "size": resized > SIZE}
    print(f"{name}: cold {cold:.0f} ms, warm {warm:.0f} ms", file=sys.stderr, flush=True)
    return {
        "page": name,
        f"first moves, cold, s ({COLD / 1000:g})": f"{cold / 1000:.1f}",
        f"warm, s ({WARM / 1000:g})": f"{warm / 1000:.1f}",
        "slowest slider": slow,
        f"median, ms ({MEDIAN})": f"{middle:.0f}",
        "worst of all, ms": f"{max(map(max, times.values()), default=0):.0f}",
        "slowest size": large,
        f"worst after its first use, ms ({SIZE})": f"{resized:.0f}" if large else "",
        "missed": ", ".join(each for each, is_missed in missed.items() if is_missed) or "none",
    }


def tables(chosen: argparse.Namespace) -> str:
    names = [name for name in NAMES if chosen.only in name][: 2 if chosen.quick else None]
    rows = [measured(name, chosen.quick) for name in names]
    if chosen.picture:
        photograph()
    return table(rows)


def photograph() -> None:
    with browser_page((1440, 1190)) as page:
        page.goto("/quadratic")
        page.wait_for_selector("#content[data-answered]")
        page.click("#check")
        page.wait_for_function("() => document.getElementById('progress').textContent === 'done'")
        page.screenshot(path=PICTURE)
    with Image.open(PICTURE) as found:
        few = found.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(PICTURE, optimize=True)  # few bytes, and every color of a curve
    print(f"Wrote {PICTURE}.", file=sys.stderr)


if __name__ == "__main__":
    report(
        __doc__,
        "lab",
        tables,
        quick={"action": "store_true", "help": "two pages, three moves of each slider"},
        only={"default": "", "help": "pages whose name holds this text"},
        picture={"action": "store_true", "help": "make docs/figures/lab.png too"},
    )
