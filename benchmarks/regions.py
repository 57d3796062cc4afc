"""Measures linear regions and the kernel toolbox: seconds, mismatches, and kinks over depth and width.

python benchmarks/regions.py            # prints; about two minutes
python benchmarks/regions.py --write    # and refreshes README.md
"""

import time

import jax
import numpy as np
from _common import asked, report, table

import nearkernel as nk

G = nk.geometry


def drawn(net, seed: int = 0):
    """Parameters in the law of `net.init`, from NumPy: no compilation in the seconds."""
    normal = np.random.default_rng(seed).normal
    shapes = zip(net.sizes[:-1], net.sizes[1:], strict=True)
    return [{"weight": normal(size=shape), "bias": normal(size=shape[1])} for shape in shapes]


def seconds(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def on_a_line() -> list[dict[str, str]]:
    net = nk.MLP(100, (100,) * 10, 1, "relu", weight_var=2.0, bias_var=0.1)
    params, (start, end) = drawn(net), 3 * np.random.default_rng(1).normal(size=(2, 100))
    took, found = seconds(lambda: nk.theory.breakpoints(net, params, start, end))
    knots = np.concatenate([[0.0], found, [1.0]])
    slope = jax.jit(jax.vmap(jax.grad(lambda t: net(params, (start + t * (end - start))[None])[0, 0])))
    with jax.enable_x64(True):
        inner = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(0.001, 0.999, 9)
        rates = np.asarray(slope(inner.ravel())).reshape(inner.shape)
    off = np.abs(rates - rates[:, :1]).max(axis=1) > 1e-9 * np.abs(rates).max()
    unseen = np.abs(np.diff(rates[:, 0])) <= 1e-12 * np.abs(rates).max()
    levels, params = nk.theory.sawtooth(16)
    pieces = len(nk.theory.breakpoints(levels, params, 0, 1)) + 1
    return [
        asked("breakpoints, 10 layers of 100: seconds, first call", took, 5),
        asked("how many there are", len(found), None),
        asked("pieces whose gradient is not constant, by differentiation", int(off.sum()), 0),
        asked("breakpoints at which it does not jump", int(unseen.sum()), 0),
        asked("pieces of the sawtooth of 32 neurons, minus 2^16", pieces - 2**16, 0),
    ]


def in_the_plane() -> list[dict[str, str]]:
    rows = []
    for widths, points in (((64, 64), 100_000), ((128, 128), 100_000)):
        net = nk.MLP(2, widths, 1, "relu", weight_var=2.0, bias_var=0.1)
        params = drawn(net)
        took, found = seconds(lambda net=net, params=params: G.regions(net, params, ((-2, 2), (-2, 2))))
        x = np.random.default_rng(2).uniform(-2, 2, size=(points, 2))
        gradient = jax.jit(jax.vmap(jax.grad(lambda v, net=net, params=params: net(params, v[None])[0, 0])))
        with jax.enable_x64(True):
            exact = np.asarray(gradient(x))
        cell = found.locate(x)
        wrong = np.abs(found.gradients[cell, 0] - exact).max(axis=1) > 1e-9 * np.abs(exact).max()
        name = f"(2, {', '.join(map(str, widths))}, 1)"
        rows += [
            asked(f"regions of {name}: seconds", took, 30 if widths == (64, 64) else None),
            asked("how many polygons", len(found), None),
            asked(f"gradient mismatches in {points} points", int(np.sum(wrong | (cell < 0))), 0),
        ]
    return rows


def toolbox() -> list[dict[str, str]]:
    x = np.random.default_rng(0).uniform(size=(2000, 2))
    nk.kernels.RBF(0.1)(x[:300])  # compiled
    took, chosen = seconds(lambda: nk.theory.DPP(nk.kernels.RBF(0.1), x).sample(jax.random.key(0), 100))
    process = nk.theory.DPP(nk.kernels.RBF(0.1), x)
    again, _ = seconds(lambda: process.sample(jax.random.key(1), 100))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    pairs = nk.theory.mercer(nk.kernels.RBF(1.0), nodes[:, None], weights / weights.sum(), rank=10)
    c = np.sqrt(0.0625 + 0.25)  # a = 1/4, b = 1/2: a Gaussian kernel of length 1 on a standard normal measure
    exact = np.sqrt(0.5 / (0.75 + c)) * (0.5 / (0.75 + c)) ** np.arange(10)
    return [
        asked("determinantal sample of 100 of 2000 points: seconds", took, 5),
        asked("its number of points, minus 100", len(set(chosen)) - 100, 0),
        asked("another sample of the same process: seconds", again, None),
        asked(
            "10 Mercer eigenvalues against closed form: relative error",
            np.abs(pairs.values / exact - 1).max(),
            None,
        ),
    ]


def average_case() -> list[dict[str, str]]:
    """Kinks per neuron and unit length on [-1, 1]; on the whole line per neuron."""
    rows = []
    for depth in (1, 2, 4, 8):
        for width, size in ((8, 1600), (32, 400), (128, 100)):
            net = nk.MLP(1, (width,) * depth, 1, "relu", weight_var=2.0, bias_var=1.0)
            near = nk.theory.measure_crossings(net, -1, 1, size, jax.random.key(depth))
            whole = nk.theory.measure_crossings(net, -1e5, 1e5, size, jax.random.key(depth + 50))
            theory = nk.theory.mean_crossings(net, -1, 1).mean() / 2
            rows.append(
                {
                    "layers": str(depth),
                    "width": str(width),
                    "networks": str(size),
                    "per neuron and unit length": _with_error(near, depth, 0.5),
                    "infinite width": f"{theory:.4f}",
                    "per neuron, whole line": _with_error(whole, depth, 1.0),
                }
            )
    return rows


def _with_error(found, depth: int, scale: float) -> str:
    """Mean over layers; layers of one network are taken as fully correlated, so the error is an upper bound."""
    return f"{scale * found.mean.mean():.4f} +- {scale * found.sem.sum() / depth:.4f}"


def measured(chosen) -> str:
    return f"{table([*on_a_line(), *in_the_plane(), *toolbox()])}\n\n{table(average_case())}"


if __name__ == "__main__":
    report(__doc__, "regions", measured)
