"""Figures of plans; `gallery.py` runs them."""

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, axes_row, figure

import nearkernel as nk

_TIMES = {"minute": 60, "hour": 3600, "day": 86400, "year": 3.16e7}


@figure
def how_far() -> plt.Figure:
    """Seconds and memory of every way to a kernel machine, up to a hundred million points."""
    drawn, (left, right) = axes_row(2)
    rates = nk.scale.measure_rates(nk.kernels.NTK(nk.MLP(50, (1,) * 3, weight_var=2.0)), 50)
    sizes = np.geomspace(1e3, 1e8, 26).astype(int)
    alone = [nk.scale.plan(int(n), 50, rates, memory="16GiB") for n in sizes]
    shared = [nk.scale.plan(int(n), 50, rates, workers=64, memory="64GiB") for n in sizes]
    ways = {
        "factorization": ([p.direct for p in alone], GRAY),
        "conjugate gradients, 30 iterations": ([p.solve for p in alone], BLUE),
        "matrix on disk": ([p.build for p in alone], ORANGE),
        "matrix on disk, 64 workers": ([p.build for p in shared], PURPLE),
        "2000 centers": ([p.centers for p in alone], GREEN),
    }
    for label, (costs, color) in ways.items():
        fits = np.array([cost.possible for cost in costs])
        for axes, values in ((left, [c.seconds for c in costs]), (right, [c.memory / 2**30 for c in costs])):
            axes.loglog(sizes, values, ":", color=color, lw=1.2)
            axes.loglog(sizes[fits], np.array(values)[fits], color=color, label=label)
        print(f"  {label}: fits up to n = {sizes[fits].max():.1e}")
    for name, seconds in _TIMES.items():
        left.axhline(seconds, color="black", lw=0.5, alpha=0.4)
        left.text(1.2e3, 1.25 * seconds, name, fontsize=8, color="#555555")
    left.set(xlabel="points n", ylabel=f"seconds, {rates.cores} cores a machine", ylim=(1e-2, 1e10))
    right.axhline(16, color="black", lw=0.5, alpha=0.4)
    right.text(1.2e3, 20, "this machine", fontsize=8, color="#555555")
    right.set(xlabel="points n", ylabel="GiB that a process holds", ylim=(1e-2, 1e5))
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.99))
    for n in (10**5, 10**6, 10**7, 10**8):
        here = nk.scale.plan(n, 50, rates, memory="16GiB")
        print(
            f"  n = {n:.0e}: {here.solver}, centers {here.centers.seconds:.0f} s, product {here.product.seconds:.3g} s"
        )
    return drawn
