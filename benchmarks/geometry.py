"""Measures curvature at scale, and against LAPACK where a network is small enough to form its matrix.

python benchmarks/geometry.py            # prints; about two minutes
python benchmarks/geometry.py --write    # and refreshes README.md
"""

import resource
import time

import jax
import numpy as np
from _common import asked, report, table

import nearkernel as nk

G = nk.geometry


def classifier(n: int, d: int, widths: tuple[int, ...], classes: int):
    """Clusters and a network that has learnt them a little."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % classes
    x = rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[labels]
    net = nk.MLP(d, widths, classes, "relu", weight_var=2.0)
    return net, jax.tree.map(np.asarray, net.init(jax.random.key(0))), x, np.eye(classes)[labels], labels


def seconds(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def large() -> list[dict[str, str]]:
    net, theta, x, y, _ = classifier(1000, 100, (270, 270), 10)
    hessian = G.Hessian(net, theta, x, y, "cross_entropy")
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    before = time.process_time()
    took, _ = seconds(lambda: G.spectral_density(hessian))
    cpu = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    what = f"spectral density, {hessian.size} parameters, 1000 points"
    sharp, _ = seconds(lambda: G.sharpness(net, theta, x, y, "cross_entropy"))
    return [
        asked(f"{what}: seconds, first call", took, 60),
        asked("its CPU seconds, of all threads", cpu, None),
        asked("its memory, MiB, of the whole process", peak, 2048),
        asked("(the process before it, MiB)", loaded, None),
        asked("sharpness of the same: seconds", sharp, None),
    ]


def small() -> list[dict[str, str]]:
    net, theta, x, y, labels = classifier(60, 8, (20, 20), 4)
    lr = 0.5 / G.sharpness(net, theta, x, y, "cross_entropy")
    params = nk.simulate(net, theta, x, y, nk.GradientDescent(lr, 30), loss="cross_entropy").params
    hessian = G.Hessian(net, params, x, y, "cross_entropy")
    exact = np.linalg.eigvalsh(hessian.dense())
    density = G.spectral_density(hessian, outliers=20, probes=32)
    errors = [abs(density.moment(k).mean / np.mean(exact**k) - 1) for k in (1, 2, 3, 4)]
    sharp = abs(G.sharpness(net, params, x, y, "cross_entropy") / exact[-1] - 1)
    parts = [part.dense() for part in nk.theory.gauss_newton_classes(net, params, x, labels)]
    off = np.abs(sum(parts[:4]) - parts[4]).max() / np.abs(parts[4]).max()
    return [
        *(
            asked(f"moment {k} of a density, {hessian.size} parameters: relative error", e, 0.01)
            for k, e in enumerate(errors, 1)
        ),
        asked("sharpness against LAPACK: relative error", sharp, 1e-4),
        asked("class parts against the Gauss-Newton matrix: relative error", off, 1e-10),
    ]


if __name__ == "__main__":
    packages = ("jax", "numpy", "scipy", "matfree")
    report(__doc__, "geometry", lambda chosen: table([*large(), *small()]), packages)
