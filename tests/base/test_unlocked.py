"""BLAS without Python's lock: the same numbers as SciPy, while other threads go on."""

import itertools
import threading

import numpy as np
import pytest
import scipy.linalg

from nearkernel._run.unlocked import gram, multiplied, solved

rng = np.random.default_rng(5)
SHAPES = ((1, 1), (7, 3), (40, 1), (33, 50), (5, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_triangles_solve_and_multiply_as_scipy_does(dtype, orders):
    close = {"float32": 1e-4, "float64": 1e-12}[dtype]
    for n, m in SHAPES:
        full = (rng.normal(size=(n, n)) + 4 * n * np.eye(n)).astype(dtype, order=orders[0])
        right = rng.normal(size=(n, m)).astype(dtype, order=orders[1])
        kept, lower = right.copy(), np.tril(full)
        for transposed in (False, True):
            expected = scipy.linalg.solve(lower.T if transposed else lower, right) if m else right
            found = solved(full, right, transposed=transposed)  # above the diagonal nothing is read
            assert found.dtype == dtype and found == pytest.approx(expected, rel=close, abs=close)
            expected = (lower.T if transposed else lower) @ right
            assert multiplied(full, right, transposed=transposed) == pytest.approx(
                expected, rel=close, abs=close
            )
        assert np.array_equal(right, kept)


def test_vectors_and_views():
    full, right = rng.normal(size=(30, 30)) + 60 * np.eye(30), rng.normal(size=30)
    assert solved(full, right) == pytest.approx(np.linalg.solve(np.tril(full), right))
    part = full[::2, ::2]
    assert multiplied(part, right[::2]) == pytest.approx(np.tril(part) @ right[::2])
    assert solved(full, right.astype("float32")).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_upper_half_of_a_gram_matrix(dtype):
    rows = rng.normal(size=(60, 20)).astype(dtype)
    for each in (rows, np.asfortranarray(rows), rows[::2, ::3], rows[:0]):
        expected = np.triu(each.T.astype(float) @ each)
        assert gram(each).dtype == dtype and gram(each) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_other_threads_go_on_meanwhile():
    full, right = np.eye(1500) + 0.01 * np.tri(1500), rng.normal(size=(1500, 1500))
    count, stop = itertools.count(), threading.Event()
    seen = [0]

    def run():
        while not stop.is_set():
            seen[0] = next(count)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for work in (lambda: solved(full, right), lambda: multiplied(full, right), lambda: gram(right)):
            before = seen[0]
            work()
            assert seen[0] > before + 100  # milliseconds of work, a microsecond each
    finally:
        stop.set()
        thread.join()
