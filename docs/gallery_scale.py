"""Figures of kernel machines on many points; `gallery.py` runs them."""

import time

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure

import nearkernel as nk
from nearkernel.dynamics import ConjugateGradients, EigenPro, Nystrom, Richardson


def _problem(n: int):
    draw = np.random.default_rng(0).normal
    x = draw(size=(n, 10))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * draw(size=n)


@figure
def solvers() -> plt.Figure:
    """Residuals over products with K, and seconds over the number of points."""
    drawn, (left, right) = axes_row(2)
    kernel, ridge = nk.kernels.RBF(4.0), nk.Ridge(0.1)
    x, y = _problem(3000)
    runs = {
        "conjugate gradients, rank 1": (ConjugateGradients(tol=1e-8, rank=1, iterations=300), SKY),
        "rank 100": (ConjugateGradients(tol=1e-8, rank=100, iterations=300), BLUE),
        "rank 500": (ConjugateGradients(tol=1e-8, rank=500, iterations=300), "black"),
        "EigenPro": (EigenPro(rank=100, sample=1000, batch_size=300, tol=1e-8, epochs=300), ORANGE),
        "gradient descent": (Richardson(iterations=300), GREEN),
    }
    for label, (solver, color) in runs.items():
        found = nk.solve(kernel, x, y, ridge, solver=solver)
        left.semilogy(np.arange(1, found.iterations + 1), found.history, color=color, label=label)
        print(f"  {label}: {found.iterations} products, residual {found.relative_residual:.1e}")
    left.set(xlabel="products with K (n = 3000)", ylabel="relative residual", ylim=(1e-9, 2.0), xlim=(0, 300))
    left.legend(fontsize=8.5)
    sizes = np.array([1000, 2000, 4000, 8000])
    methods = {
        "direct": ("direct", GRAY),
        "conjugate gradients, 1e-9": (ConjugateGradients(), BLUE),
        "500 centers": (Nystrom(centers=500), PURPLE),
    }
    for label, (solver, color) in methods.items():
        seconds = []
        for n in sizes:
            x, y = _problem(n)
            nk.solve(kernel, x[:500], y[:500], ridge, solver=solver)  # compiles
            begin = time.perf_counter()
            nk.solve(kernel, x, y, ridge, solver=solver)
            seconds.append(time.perf_counter() - begin)
        power = np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0]
        right.loglog(sizes, seconds, "o-", color=color, label=f"{label}: $n^{{{power:.1f}}}$")
        print(f"  {label}: {np.round(seconds, 2)} s, n^{power:.2f}")
    right.set(
        xlabel="points n", ylabel="seconds on 2 cores", xticks=sizes, xticklabels=[f"{n}" for n in sizes]
    )
    right.minorticks_off()
    right.legend()
    return drawn
