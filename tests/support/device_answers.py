"""Answers that are computed in pieces, and on which devices the compiled functions behind them ran.

As a program, with a file to write to and names: these answers on all devices, and on the first device alone.
"""

import functools
import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

PLACES: dict[str, set[str]] = {}  # of each compiled function, the devices that hold its results


def watched_jit(function=None, *, jit=jax.jit, **options):
    """`jax.jit` that notes where results are."""
    if function is None:
        return functools.partial(watched_jit, **options)
    compiled = jit(function, **options)

    @functools.wraps(function)
    def call(*args, **kwargs):
        found = compiled(*args, **kwargs)
        for leaf in jax.tree.leaves(found):
            if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
                PLACES.setdefault(function.__name__, set()).update(map(str, leaf.devices()))
        return found

    return call


if __name__ == "__main__":  # before anything is compiled
    jax.jit = watched_jit

import nearkernel as nk  # noqa: E402

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(1210, 7)), rng.normal(size=(30, 7))
X[1180] = X[3]  # a pair that needs more digits than a product has
MANY = rng.normal(size=(6100, 12))
FEW, CLASSES = X[:16], np.arange(16) % 2
SMALL = nk.MLP(7, (16,), 1, "tanh", 1.5, 0.1)


def net(name: str) -> nk.MLP:
    return nk.MLP(7, (32, 32), 1, name, 1.5, 0.1)


def both(name: str, *x: np.ndarray) -> np.ndarray:
    return np.concatenate([each.ravel() for each in nk.kernels.nngp_and_ntk(net(name), *x)])


def in_float32() -> np.ndarray:
    with nk.precision("float32"):
        return nk.kernels.NTK(net("relu"))(X)


def products() -> np.ndarray:
    solver = nk.dynamics.Richardson(memory="100MB")  # a third of the matrix
    return nk.solve(
        nk.kernels.RBF(2.0), MANY, MANY[:, 0], nk.GradientDescent(1e-4, 2), solver=solver
    ).coefficients


def stored() -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        store = nk.scale.build(nk.kernels.NTK(net("relu")), X, Path(folder) / "k", block=400)
        return np.concatenate([store.read(i, j).ravel() for i, j in store.blocks()])


def drawn() -> np.ndarray:
    found = nk.measure(lambda p: SMALL(p, jnp.asarray(X[:4]))[:, 0] ** 2, SMALL, 64, jax.random.key(0))
    return np.stack([found.mean, found.sem])


def simulated() -> np.ndarray:
    def trained(params):
        end = nk.simulate(SMALL, params, FEW, CLASSES.astype(float), nk.GradientDescent(0.02, 12))
        return SMALL(end.params, jnp.asarray(NEW))[:, 0]

    found = nk.measure(trained, SMALL, 32, jax.random.key(1))
    return np.stack([found.mean, found.sem])


def samples() -> np.ndarray:
    algorithm = nk.GradientDescent(0.05, 20)
    two = nk.MLP(7, (32,), 2, "erf", 1.5, 0.1)
    return nk.forecast(
        two,
        FEW,
        CLASSES,
        algorithm,
        NEW,
        loss="cross_entropy",
        theory=nk.InfiniteWidth(samples=40),
        key=jax.random.key(2),
    ).samples


def neurons(name: str, order: float) -> np.ndarray:
    theory = (nk.FiniteWidth if order == 1 else nk.Kinks)(tolerance=1.0, most=4096, dtype="float64")
    found = nk.forecast(net(name), FEW, X[:16, 0], nk.GradientFlow(1.0), NEW[:5], theory=theory)
    return np.concatenate([found.mean, found.cov.ravel()])


ANSWERS = {  # how to find each, and the compiled function that does the work of a piece
    "relu": (lambda: both("relu", X), "_placed_pairs"),
    "new": (lambda: both("erf", X, NEW), "_placed_pairs"),
    "float32": (in_float32, "_placed_pairs"),
    "products": (products, "_placed_pairs"),
    "stored": (stored, "_placed_pairs"),
    "drawn": (drawn, "drawn"),
    "simulated": (simulated, "drawn"),
    "samples": (samples, "descend_by"),
    "neurons": (lambda: neurons("tanh", 1), "outcome"),
    "kinks": (lambda: neurons("relu", 0.5), "crossed"),
}


def run(name: str) -> tuple[np.ndarray, list[str]]:
    """An answer, and the devices that have worked on it."""
    PLACES.clear()
    make, worker = ANSWERS[name]
    return np.asarray(make()), sorted(PLACES.get(worker, ()))


if __name__ == "__main__":
    found, places = {}, {}
    for name in sys.argv[2:]:
        found[f"all {name}"], places[f"all {name}"] = run(name)
        with jax.default_device(jax.devices()[0]):
            found[f"one {name}"], places[f"one {name}"] = run(name)
    np.savez(sys.argv[1], **found)
    print(json.dumps(places))
