"""Order 1 against order 0 of one quadratic model: what learning features costs beyond the kernel.

    .venv/bin/python benchmarks/nearly_kernel.py [--quick] [--write]

Both build the kernel of N points, factor it and predict, in turn, in one process; the best of several runs counts. The
rival of order 1 is order 0 itself, and the tensors of the textbook formula, whose memory is printed beside.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from _common import report, table

import nearkernel as nk
from nearkernel.dynamics.orders.rank_one_sum import accumulated_pairs, rank_needed

DIM, TERMS, NEW, REPEATS = 6, 20, 500, 7
LARGEST = 3.0  # order 1 may cost so many times order 0 at N = 1000, f = 1500


def problem(n: int) -> tuple[nk.QuadraticModel, np.ndarray, np.ndarray, np.ndarray]:
    """f = 1.5 N random features; meta-features a sum of 20 rank-one terms, given as a product."""
    draw, f = np.random.default_rng(n).normal, 3 * n // 2
    first, shift, second, vectors = (
        draw(size=(DIM, f)),
        draw(size=f),
        draw(size=(DIM, TERMS)),
        draw(size=(TERMS, f)),
    )
    vectors /= f**0.5

    def phi(x):
        return jnp.cos(x @ first + shift) * (2 / f) ** 0.5

    def psi(x, u):
        return (jnp.sin(x @ second) * (vectors @ u)) @ vectors

    x = draw(size=(n, DIM))
    return nk.QuadraticModel(phi, psi, eps=0.01), x, np.sin(x[:, 0]), draw(size=(NEW, DIM))


def seconds(*calls) -> list[float]:
    """The best time of each, run in turn, after one call that compiles."""
    best = [np.inf] * len(calls)
    for _ in range(REPEATS + 1):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def measure(n: int) -> dict[str, float]:
    model, x, y, x_new = problem(n)
    lam = np.linalg.eigvalsh(nk.kernels.FeatureKernel(model.phi)(x))
    algorithm = nk.GradientDescent(lr=1 / lam[-1])
    order0, order1 = seconds(
        *(lambda order=order: nk.solve(model, x, y, algorithm, order).predict(x_new) for order in (0, 1))
    )
    solution = nk.solve(model, x, y, algorithm, order=1)
    least, most = (each / (1 - algorithm.lr * each / 2) for each in (lam[0], lam[-1]))
    with jax.enable_x64(True):
        (sums,) = seconds(lambda: _sum(solution, algorithm.lr))
    return {
        "n": n,
        "kappa": lam[-1] / lam[0],
        "rank": solution.sum_rank,
        "rank of theory": rank_needed(most / least),
        "order0": order0,
        "order1": order1,
        "sums": sums,
    }


def _sum(solution, lr: float) -> None:
    """The part whose cost depends on the rank r: r vectors, r directions, one pass of psi."""
    derivatives = solution._derivatives
    left, right = accumulated_pairs(solution._factor, solution._residual[0], lr)
    derivatives.bend_pull_sum(left, derivatives.pull(right))


def exponent(sizes, values) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measured(chosen) -> str:
    sizes = [250, 500, 1000] if chosen.quick else [500, 1000, 2000, 3000]
    found = [measure(n) for n in sizes]
    rows = [
        {
            "N": f"{row['n']}",
            "f": f"{3 * row['n'] // 2}",
            "condition": f"{row['kappa']:.0e}",
            "r (theory)": f"{row['rank']} ({row['rank of theory']})",
            "order 0, s": f"{row['order0']:.3g}",
            "order 1, s": f"{row['order1']:.3g}",
            "order 1 / order 0": f"{row['order1'] / row['order0']:.2f}",
            "target": f"{LARGEST:.0f}" if row["n"] == 1000 else "",
            "r-dependent part, s": f"{row['sums']:.3g}",
            "mu + X would take, GB": f"{8e-9 * (row['n'] ** 3 + float(row['n']) ** 4):.2g}",
        }
        for row in found
    ]
    whole = exponent(sizes, [row["order1"] for row in found])
    part = exponent([row["n"] ** 2 * row["rank"] for row in found], [row["sums"] for row in found])
    return (
        f"{table(rows)}\n\nFitted: order 1 grows as N^{whole:.2f} (limit 3); its r-dependent part as "
        f"(N^2 r)^{part:.2f} (limit 1)."
    )


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "up to 1,000 points instead of 3,000"}
    report(__doc__, "nearly_kernel", measured, quick=quick)
