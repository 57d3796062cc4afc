"""How fast the lab answers, measured in a real browser: from the move of a control to the picture drawn.

    .venv/bin/python benchmarks/lab.py [--write] [--picture]

Every page is opened at its default sizes; then each slider that changes no shape is moved ten times by the keyboard,
and each that changes a size a few times, of which the first does not count: it may compile.
`--picture` also makes docs/figures/lab.png. Needs Chromium (`make browser`).
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common import report, table
from PIL import Image

from nearkernel.lab import NAMES, find

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "lab.png"
ASKED = 300  # ms
MOVES, SIZES = 10, 4
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@contextlib.contextmanager
def browser_page(size: tuple[int, int] = (1440, 900)) -> Iterator[Any]:
    """A page in Chromium, with a lab of its own behind it."""
    from playwright.sync_api import sync_playwright

    command = (sys.executable, "-m", "nearkernel", "lab", "--no-browser")
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
        page.keyboard.press(
            "ArrowLeft" if slider.input_value() == slider.get_attribute("max") else "ArrowRight"
        )
        page.wait_for_function(
            "before => document.getElementById('content').dataset.answered !== before", arg=before
        )
        found.append(spoken(page))
    return found


def measured(page: Any, name: str) -> dict[str, str]:
    page.goto(f"/{name}")
    page.wait_for_selector("#content[data-answered]")
    first = spoken(page)
    page.reload()
    page.wait_for_selector("#content[data-answered]")
    settings = find(name).settings()
    times = {each.name: moved(page, each.name, MOVES) for each in settings if each.kind is float}
    sizes = {each.name: moved(page, each.name, SIZES)[1:] for each in settings if each.kind is int}
    median = lambda found: lambda each: np.median(found[each])
    worst, largest = max(times, key=median(times), default=""), max(sizes, key=median(sizes), default="")
    limit = np.median(times[worst]) if worst else 0.0
    return {
        "page": name,
        "first answer, s": f"{first / 1000:.1f}",
        "slowest slider": worst,
        "median, ms": f"{limit:.0f}",
        "worst of all, ms": f"{max(map(max, times.values()), default=0):.0f}",
        "asked": f"{ASKED}",
        "reached": "yes" if limit <= ASKED else "NO",
        "slowest size": largest,
        "median, ms ": f"{np.median(sizes[largest]):.0f}" if largest else "",
    }


def tables(picture: bool) -> str:
    with browser_page() as page:
        rows = [measured(page, name) for name in NAMES]
    if picture:
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
    picture = {"action": "store_true", "help": "make docs/figures/lab.png too"}
    report(__doc__, "lab", lambda chosen: tables(chosen.picture), picture=picture)
