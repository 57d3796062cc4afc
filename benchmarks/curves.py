"""Learning curves: `nk.learning_curve` against scikit-learn's `learning_curve` with real fits of the same kernel ridge.

    .venv/bin/python benchmarks/curves.py [--quick] [--write]

Both answer: what is the mean squared error at six sizes, and how sure is that? scikit-learn fits kernel ridge
regression with the precomputed matrix on growing training sets of 5 and of 20 shuffled splits; ours builds the matrix
and takes it once. Then leave-one-out of gradient flow, against training again without each point.
"""

import time
import warnings

import numpy as np
from _common import report, table
from _record import keep
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import learning_curve as real_fits
from threadpoolctl import threadpool_limits

import nearkernel as nk


def data(rows: int):
    x, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:rows]
    return ((x - x.mean(axis=0)) / x.std())[order], np.eye(10)[labels[order]] - 0.1


def best_of(turns: int, function):
    """The fewest seconds and CPU seconds, and what came out."""
    seconds, cpu, found = [], [], None
    for _ in range(turns):
        start, worked = time.perf_counter(), time.process_time()
        found = function()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - worked)
    return min(seconds), min(cpu), found


def curves(rows: int, turns: int) -> list[dict[str, str]]:
    x, y = data(rows)
    kernel = nk.kernels.NTK(nk.MLP(64, (256, 256), weight_var=2.0, bias_var=0.1))
    matrix = kernel(x)
    ridge = 0.1 * float(matrix.diagonal().mean())
    sizes = np.rint(rows * np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.8])).astype(int)
    ours, our_cpu, curve = best_of(
        turns, lambda: nk.learning_curve(kernel, x, y, nk.Ridge(ridge), sizes=sizes)
    )
    building, *_ = best_of(turns, lambda: kernel(x))
    lines = []
    for splits in (5, 20):
        split = ShuffleSplit(splits, test_size=0.2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, cpu, found = best_of(
                1,
                lambda split=split: real_fits(
                    KernelRidge(alpha=ridge, kernel="precomputed"),
                    matrix,
                    y,
                    train_sizes=sizes,
                    cv=split,
                    scoring="neg_mean_squared_error",
                ),
            )
        keep(f"learning curve, {rows} rows, {splits} splits", "scikit-learn", cpu, our_cpu)
        error = -10 * found[2].mean(axis=1)  # scikit-learn's is the mean over outputs
        lines.append(
            {
                "rows": str(rows),
                "real fits": str(6 * splits),
                "scikit-learn, s": f"{seconds:.2f}",
                "ours, s": f"{ours:.2f}",
                "of which the matrix, s": f"{building:.2f}",
                "largest difference": f"{100 * np.abs(curve.error / error - 1).max():.1f} %",
                "our standard error": f"{100 * (curve.sem / curve.error).mean():.1f} %",
            }
        )
    return lines


def left_out(rows: int) -> list[dict[str, str]]:
    x, y = data(rows)
    kernel = nk.kernels.NTK(nk.MLP(64, (256, 256), weight_var=2.0, bias_var=0.1))
    flow = nk.GradientFlow(5 / float(kernel.diag(x).mean()))
    solving, _, solution = best_of(1, lambda: nk.solve(kernel, x, y, flow))
    ours, _, left = best_of(1, solution.leave_one_out)
    again, worst = 0.0, 0.0
    for i in range(5):
        rest = np.delete(np.arange(rows), i)
        start = time.perf_counter()
        found = nk.solve(kernel, x[rest], y[rest], flow).predict(x[i : i + 1]).mean[0] - y[i]
        again += (time.perf_counter() - start) / 5
        worst = max(worst, float(np.abs(found - left.residuals[i]).max()))
    return [
        {
            "rows": str(rows),
            "one training, s": f"{solving:.2f}",
            "then leave-one-out, s": f"{ours:.3f}",
            "by training again, s": f"{rows * again:.0f} (from 5)",
            "largest difference": f"{worst:.1e}",
        }
    ]


def measured(chosen) -> str:
    sizes, turns = ((300,), 1) if chosen.quick else ((400, 1500), 2)
    with threadpool_limits(1):  # on a busy machine threads of BLAS wait for each other longer than they work
        parts = [
            table([line for rows in sizes for line in make(rows)])
            for make in (lambda n: curves(n, turns), left_out)
        ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "fewer rows"}
    report(__doc__, "curves", measured, ("jax", "numpy", "scipy", "scikit-learn"), quick=quick)
