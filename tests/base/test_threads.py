"""Many callers at once get what one caller gets, to the last bit, and leave no setting behind."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

X, Y, NEW = helpers.points(20, 3), np.sin(np.arange(20.0)), helpers.points(4, 3)
NET = nk.MLP(3, (32,), 1, "relu", 2.0, 0.1)


def work(i: int) -> np.ndarray:
    kernel = nk.kernels.NTK(NET)(X + 0.1 * i)
    solved = nk.solve(nk.kernels.RBF(1.0 + i), X, Y, nk.Ridge(0.1)).predict(NEW).mean
    law = nk.forecast(NET, X, Y, nk.GradientFlow(1.0 + i), NEW)
    with nk.precision("float32" if i % 2 else "float64"):
        rough = nk.kernels.NTK(NET)(X + i)
    return np.concatenate([kernel.ravel(), solved, law.mean, law.std, np.ravel(rough)])


def test_threads():
    before = jax.config.jax_enable_x64
    alone = [work(i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, list(range(4)) * 2))
    for i, found in enumerate(together):
        np.testing.assert_array_equal(found, alone[i % 4])
    assert jax.config.jax_enable_x64 == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spawn", "forkserver"])
def test_processes(kind):
    with multiprocessing.get_context(kind).Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(work, (3,)), work(3))
