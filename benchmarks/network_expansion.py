"""Networks predicted order by order against the same networks really trained: accuracy, time and memory.

    .venv/bin/python benchmarks/network_expansion.py [--quick] [--write]

The rival is training itself, by gradient descent in the same precision and the same process.
"""

import resource
import time
import warnings

import jax
import numpy as np
from _common import report, table

import nearkernel as nk
from nearkernel.dynamics.orders.rank_one_sum import rank_needed
from nearkernel.forecasts.theory_ladder import Settings, climb, means, slopes

N, DIM, WIDTHS, NEW = 1000, 64, (512, 512), 500


def ladder(quick: bool) -> str:
    """Slopes over the lazy scale, and errors over the width, of networks trained until the residual is 1e-6."""
    chosen = Settings(
        points=100,
        seeds=1 if quick else 3,
        alphas=(16.0, 32.0, 64.0),
        widths=(64, 256) if quick else (64, 128, 256, 512, 1024),
        tol=1e-4 if quick else 1e-6,
    )
    rungs = []
    for seed in range(chosen.seeds):
        for alpha in chosen.alphas:
            rungs.append(climb(chosen, ("alpha", alpha, chosen.width, seed), _silent))
        for width in chosen.widths:
            rungs.append(climb(chosen, ("width", chosen.alpha, width, seed), _silent))
    lines = []
    for seed in range(chosen.seeds):
        found = slopes([rung for rung in rungs if rung.seed == seed], "alpha")
        assert found is not None
        lines.append(
            {"seed": str(seed)}
            | {f"slope, order {k}": f"{value:.3f} (-{k + 1})" for k, value in enumerate(found)}
        )
    rows = [
        {"width": f"{width:g}"} | {f"order {k}": f"{error:.2e}" for k, error in enumerate(errors)}
        for width, errors in means(rungs, "width")
    ]
    fastest = min(rung.training_seconds / rung.seconds[1] for rung in rungs)
    return (
        "Slopes of the distance from the trained network over alpha = 16, 32, 64 (in brackets: theory); two tanh "
        f"layers of 256, N = 100, d = 10:\n\n{table(lines)}\n\nMean distance over {chosen.seeds} seeds at alpha = 8:"
        f"\n\n{table(rows)}\n\nOrder 1 was at least {fastest:.0f} times faster than training in each of these runs."
    )


def _silent(_: str) -> None:
    pass


def at_scale(quick: bool) -> str:
    """One network of 300,000 parameters on 1,000 points: seconds in units of gradient-descent steps."""
    draw = np.random.default_rng(0).normal
    x, x_new = draw(size=(N, DIM)), draw(size=(NEW, DIM))
    y = np.sin(1.5 * x @ draw(size=DIM) / DIM**0.5)
    net = nk.MLP(DIM, WIDTHS, activation="tanh")
    model = nk.Scaled(net, 8.0)
    params = model.at(net.init(jax.random.key(0)))
    lam = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(model, params)(x))
    algorithm = nk.GradientDescent(1 / lam[-1])
    steps = 20
    train = lambda: nk.simulate(model, params, x, y, algorithm.at(steps), nk.Record(every=steps))
    expanded = nk.expand(model, params, degree=3)
    rows, solution = [], None
    for order, allowed in ((1, 200), (2, 2000)):
        solve = lambda order=order: nk.solve(expanded, x, y, algorithm, order)
        run = lambda solve=solve: solve().predict(x_new)
        repeats = 1 if quick or order == 2 else 3
        both = _in_turn([run, train], repeats)
        solution = solve() if order == 1 else solution
        rows.append(
            {
                "order": str(order),
                "seconds": f"{both[0]:.3g}",
                "GD steps of that time": f"{both[0] / both[1] * steps:.0f}",
                "allowed": str(allowed),
            }
        )
    rate = algorithm.lr * lam
    theory = rank_needed((rate[-1] / (1 - rate[-1] / 2)) / (rate[0] / (1 - rate[0] / 2)))
    passes = ", ".join(f"{name} {count}" for name, count in solution.passes.items())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"Widths {WIDTHS}, d = {DIM}, N = {N}, {NEW} new points, condition {lam[-1] / lam[0]:.0f}; kernel, factor, "
        f"correction and prediction together:\n\n{table(rows)}\n\nDerivative passes of order 1: {passes}; the rank "
        f"of the theory is {theory}. Peak memory of the process {peak:.2f} GiB; the meta-kernel alone would take "
        f"{8e-9 * N**3:.0f} GB, X {8e-12 * N**4:.0f} TB."
    )


def _in_turn(calls, repeats: int) -> list[float]:
    for call in calls:
        call()  # compiles
    best = [np.inf] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def to_the_end(quick: bool) -> str:
    """Training until the residual is 1e-6 where the condition number is 1e4, against predicting that."""
    points, dim, width, alpha = 65, 5, 256, 16.0
    draw = np.random.default_rng(3).normal
    x, x_new = draw(size=(points, dim)), draw(size=(100, dim))
    y = np.sin(1.5 * x @ draw(size=dim) / dim**0.5)
    net = nk.MLP(dim, (width, width), activation="tanh")
    model = nk.Scaled(net, alpha)
    params = model.at(net.init(jax.random.key(3)))
    lam = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(model, params)(x))
    algorithm = nk.GradientDescent(1 / lam[-1])
    expanded = nk.expand(model, params, degree=2)
    predict = lambda: nk.solve(expanded, x, y, algorithm, order=1).predict(x_new)
    predict()
    begin = time.perf_counter()
    predicted = predict().mean
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    # A run also ends when its gradient is small, which for the slowest mode is sqrt(condition) times earlier.
    tol = (1e-3 if quick else 1e-6) / (lam[-1] / lam[0]) ** 0.5
    run = nk.simulate(model, params, x, y, algorithm, tol=tol, max_steps=3_000_000)
    theirs = time.perf_counter() - begin
    trained = np.asarray(model(run.params, x_new))[:, 0]
    apart = np.linalg.norm(predicted - trained) / np.linalg.norm(trained)
    left = np.sqrt(run.history["loss"][-1] / run.history["loss"][0])
    row = {
        "condition": f"{lam[-1] / lam[0]:.1e}",
        "GD steps": str(run.steps),
        "residual": f"{left:.0e}",
        "training, s": f"{theirs:.3g}",
        "order 1, s": f"{ours:.3g}",
        "training / order 1": f"{theirs / ours:.0f}",
        "allowed": ">= 10",
        "distance": f"{apart:.1e}",
    }
    return (
        f"A network trained to its end (two tanh layers of 256, N = {points}, alpha = 16):\n\n{table([row])}"
    )


def measured(chosen) -> str:
    warnings.simplefilter("ignore")
    return "\n\n".join(part(chosen.quick) for part in (at_scale, to_the_end, ladder))


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "one seed, fewer widths, loose training"}
    report(__doc__, "network_expansion", measured, quick=quick)
