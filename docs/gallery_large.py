"""Figures of kernel machines beside other libraries, from results of `benchmarks/large.py`; `gallery.py` runs them."""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from drawing import BLUE, GREEN, ORANGE, axes_row, figure
from matplotlib.lines import Line2D

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
    points = _points()
    sizes = sorted({each["n"] for each in points if "centers" in each["method"]})
    drawn, axes = axes_row(len(sizes))
    for panel, n in zip(axes, sizes, strict=True):
        for library, color in _COLORS.items():
            own = [each for each in points if each["n"] == n and each["library"] == library]
            few = {int(p["method"].split()[0]): p for p in own if "centers" in p["method"]}
            whole = [p for p in own if "centers" not in p["method"]]
            for chosen, style in (([few[m] for m in sorted(few)], "o-"), (whole, "*")):
                pairs = [p["seconds"] for p in chosen], [p["error"] for p in chosen]
                panel.semilogx(*pairs, style, color=color, ms=4 if style == "o-" else 11)
            for m, p in few.items() if library == "nearkernel" else ():
                panel.annotate(
                    f"{m}", (p["seconds"], p["error"]), (-4, -11), textcoords="offset points", fontsize=8
                )
            best = min(own, key=lambda p: p["error"])
            print(f"  n = {n}, {library}: least test error {best['error']:.4f} in {best['seconds']:.3g} s")
        low, high = panel.get_xlim()
        ticks = [t for t in (0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300) if low < t < high]
        panel.set_xticks(ticks, [f"{t:g}" for t in ticks])
        panel.minorticks_off()
        panel.set(xlabel="seconds", title=f"n = {n:,}")
    axes[0].set(ylabel="test error, root mean square")
    axes[-1].legend(
        [Line2D([], [], color=color, marker="o", ms=4) for color in _COLORS.values()], _COLORS, fontsize=8
    )
    return drawn
