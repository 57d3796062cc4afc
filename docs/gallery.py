"""Draws every figure of the documentation from the library itself.

    python docs/gallery.py              # all of them
    python docs/gallery.py band width   # only these

Each figure is a function of a file beside this one: it computes, draws, and prints what `gallery.md` quotes.
"""

import importlib
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))  # so that this file can also be loaded from elsewhere
from drawing import FIGURES, STYLE

FOLDER = Path(__file__).parent / "figures"
for _file in sorted(FOLDER.parent.glob("gallery_*.py")):
    importlib.import_module(_file.stem)


def _save(drawn: plt.Figure, path: Path) -> None:
    """As a PNG of 128 colors: a third of the size, and no eye sees it."""
    drawn.canvas.draw()
    pixels = Image.fromarray(np.asarray(drawn.canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(drawn)


def main(names: list[str]) -> None:
    unknown = set(names) - set(FIGURES)
    if unknown:
        sys.exit(f"unknown figure {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        start = time.perf_counter()
        print(name)
        with plt.rc_context(STYLE):
            drawn = FIGURES[name]()
            _save(drawn, FOLDER / f"{name}.png")
        size = (FOLDER / f"{name}.png").stat().st_size
        print(f"  {name}.png: {size / 1000:.0f} kB, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
