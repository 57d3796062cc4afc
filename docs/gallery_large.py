"""Figures of kernel machines beside other libraries, from results of `benchmarks/large.py`; `gallery.py` runs them."""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from drawing import BLUE, GREEN, ORANGE, axes_row, figure

_RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_COLORS = {"nearkernel": BLUE, "scikit-learn, Nystroem + Ridge": ORANGE, "GPyTorch": GREEN}


def _points() -> list[dict]:
    """The points of the whole benchmark, or of its quick run where only that is committed."""
    for name in ("large.json", "large.quick.json"):
        if (_RESULTS / name).exists():
            return json.loads((_RESULTS / name).read_text())["points"]
    sys.exit("error: no points to draw; measure some with `python benchmarks/large.py --write`.")


@figure
def accuracy_for_time() -> plt.Figure:
    """Test error over seconds, for centers (lines) and for all points (stars)."""
    points = [each for each in _points() if "centers" in each["method"]]
    sizes = sorted({each["n"] for each in points})
    drawn, axes = axes_row(len(sizes))
    for panel, n in zip(axes, sizes, strict=True):
        for library, color in _COLORS.items():
            own = [each for each in _points() if each["n"] == n and each["library"] == library]
            few = sorted((p["seconds"], p["error"], p["method"]) for p in own if "centers" in p["method"])
            whole = sorted((p["seconds"], p["error"]) for p in own if "centers" not in p["method"])
            panel.loglog([p[0] for p in few], [p[1] for p in few], "o-", color=color, label=library, ms=4)
            if whole:
                panel.loglog(*zip(*whole, strict=True), "*", color=color, ms=11)
            for seconds, error, method in few if library == "nearkernel" else ():
                panel.annotate(
                    method.split()[0], (seconds, error), (-4, -11), textcoords="offset points", fontsize=8
                )
            best = min((error, seconds) for seconds, error, *_ in (*few, *whole))
            print(f"  n = {n}, {library}: least test error {best[0]:.4f} in {best[1]:.3g} s")
        panel.set(xlabel="seconds", title=f"n = {n:,}")
    axes[0].set(ylabel="test error, root mean square")
    axes[0].legend(fontsize=8)
    return drawn
