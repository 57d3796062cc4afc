"""Reports of tables whose names are meant to do harm."""

import csv
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from support.commands import nearkernel, self_contained

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")
COLUMNS = [
    "<script>alert(1)</script>", 'a" onload="x', "</style><img src=x onerror=y>", "it's", "\u202eback", "L" * 400,
    "&lt;b&gt;", "\x1b[31mred", "`x`", "</title><svg onload=1>", "a\tb", "$x_$", "c$^^$d", "\\\\frac{", "%s {0}",
]  # fmt: skip
TARGET, FILE = "<script>$^$</script>\"'", "<img src=x>&$_$.csv"
CLASSES = ("<b>$_$</b>\x1b[2J", '"><script>1</script>')


class Found(HTMLParser):
    """What a page would run or ask for."""

    def __init__(self):
        super().__init__()
        self.harm = []

    def handle_starttag(self, tag, attrs):
        asks = [v for k, v in attrs if k in ("src", "href") and not (v or "#").startswith(("#", "data:"))]
        if tag in ("script", "iframe", "object") or asks or any(k.startswith("on") for k, _ in attrs):
            self.harm.append((tag, attrs))


def write(classes: bool) -> None:
    x = np.random.default_rng(0).normal(size=(40, len(COLUMNS)))
    with open(FILE, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*COLUMNS, TARGET])
        for row in x.round(3):
            rows.writerow([*row, CLASSES[int(row[0] > 0)] if classes else round(row[0] + row[1], 3)])


def harmless(result) -> None:
    assert not set("\x1b\u202e") & set(result.output + result.stderr)
    page = Path("out/report.html").read_text(encoding="utf-8")
    self_contained(page)
    found = Found()
    found.feed(page)
    assert not found.harm and not set("\x1b\u202e") & set(page)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [False, True])
def test_predict(classes):
    write(classes)
    harmless(nearkernel("predict", FILE, "--target", TARGET, "--out", "out"))


@pytest.mark.slow
def test_curve():
    write(False)
    harmless(nearkernel("curve", FILE, "--target", TARGET, "--out", "out"))


@pytest.mark.merge
def test_inspect():
    write(False)
    code = f"import nearkernel as nk\nnet = nk.MLP({len(COLUMNS)}, (8,), 1)\nnetwork = (net, net.init(0))\n"
    Path("<b>n.py").write_text(code)
    few = ("--train", 8, "--new", 4, "--steps", 5)
    harmless(nearkernel("inspect", "<b>n.py:network", FILE, "--target", TARGET, *few, "--out", "out"))
