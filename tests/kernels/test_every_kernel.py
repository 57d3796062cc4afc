"""What every kernel owes: one matrix whichever way it is asked for, symmetric, positive, safe at the edges."""

import numpy as np
import pytest

from support import helpers
from support.cases import few

D = 5
KERNELS = helpers.kernels(D)
TOLERANCE = {"hard tanh ntk": 1e-6}  # kinked and without a closed form


@pytest.fixture(params=KERNELS)
def name(request):
    return request.param


def edge_cases() -> np.ndarray:
    """Ordinary rows, then duplicates, antipodes, multiples, nearly equal ones, small ones and zeros."""
    x = helpers.points(4, D)
    return np.concatenate([x, x[:2], -x[:2], 3 * x[:1], x[1:2] * (1 + 1e-9), 1e-4 * x[2:3], np.zeros((2, D))])


def test_symmetric_call_is_the_rectangular_one_with_itself(name):
    x = edge_cases()
    whole = KERNELS[name](x)
    scale = np.sqrt(np.outer(np.diagonal(whole), np.diagonal(whole))) + 1e-290
    assert (np.abs(whole - KERNELS[name](x, x)) <= TOLERANCE.get(name, 1e-12) * scale).all()


def test_symmetric_call_is_symmetric_to_the_last_bit(name):
    whole = KERNELS[name](edge_cases())
    assert np.array_equal(whole, whole.T)


def test_rectangle_is_a_block_of_the_whole(name):
    x = edge_cases()
    whole = KERNELS[name](x)
    part = KERNELS[name](x[:5], x[3:])
    assert part.shape == (5, len(x) - 3)
    assert helpers.relative_error(part, whole[:5, 3:]) < TOLERANCE.get(name, 1e-12)


def test_exchanging_the_inputs_transposes(name):
    x, y = edge_cases(), helpers.points(3, D, 7)
    assert helpers.relative_error(KERNELS[name](x, y), KERNELS[name](y, x).T) < TOLERANCE.get(name, 1e-12)


def test_diagonal_is_the_diagonal(name):
    x = edge_cases()
    np.testing.assert_allclose(KERNELS[name].diag(x), np.diagonal(KERNELS[name](x)), rtol=1e-12)


def test_no_eigenvalue_is_negative(name):
    whole = KERNELS[name](edge_cases())
    eigenvalues = np.linalg.eigvalsh(whole)
    assert eigenvalues[0] > -TOLERANCE.get(name, 1e-13) * eigenvalues[-1]


def test_equal_rows_have_equal_kernels(name):
    x = edge_cases()
    whole = KERNELS[name](x)
    assert helpers.relative_error(whole[4:6], whole[:2]) < TOLERANCE.get(name, 1e-13)


def test_results_are_writable_float64_numpy_arrays(name):
    x = helpers.points(3, D)
    for found in (KERNELS[name](x), KERNELS[name](x, x[:2]), KERNELS[name].diag(x)):
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
    KERNELS[name](x)[0, 0] = 1.0


def test_one_point_is_enough(name):
    x = helpers.points(1, D)
    assert KERNELS[name](x).shape == (1, 1)
    assert KERNELS[name](x, helpers.points(2, D, 1)).shape == (1, 2)


def test_lists_and_whole_numbers_are_inputs(name):
    rows = [[1, 0, 2, -1, 3], [0, 1, 1, 1, 0]]
    assert np.array_equal(KERNELS[name](rows), KERNELS[name](np.array(rows, dtype=np.float64)))


# A block of few rows costs the quadrature of hard tanh as much as the matrix.
@pytest.mark.parametrize("name", few(KERNELS, set(KERNELS) - {"hard tanh ntk"}))
def test_blocks_concatenate_to_the_matrix(name):
    x, y = helpers.points(23, D), helpers.points(7, D, 1)
    parts = list(KERNELS[name].blocks(x, y, memory=8 * 7 * 10))
    assert len(parts) > 2
    assert [rows.start for rows, _ in parts[1:]] == [rows.stop for rows, _ in parts[:-1]]
    assert all(block.nbytes <= 8 * 7 * 10 for _, block in parts)
    whole = np.concatenate([block for _, block in parts])
    assert helpers.relative_error(whole, KERNELS[name](x, y)) < TOLERANCE.get(name, 1e-12)


@pytest.mark.parametrize("name", ["rbf", "relu ntk", "tanh ntk", "random features", "empirical"])
@pytest.mark.parametrize("n", [256, 401, pytest.param(813, marks=pytest.mark.slow)])
def test_tiles_leave_no_seam(name, n):
    """Sizes around the edge of a tile: rows from far apart agree with a small call of their own."""
    kernel, x = KERNELS[name], helpers.points(n, D, 3)
    chosen = np.array([0, 1, 100, 200, 254, 255, *range(256, n, 64), n - 1])
    whole, alone = kernel(x), kernel(x[chosen])
    assert np.array_equal(whole, whole.T)
    assert helpers.relative_error(whole[np.ix_(chosen, chosen)], alone) < 1e-12
    assert helpers.relative_error(kernel(x, x[:3]), whole[:, :3]) < 1e-12


def test_more_than_this_machine_holds_is_refused(name, monkeypatch):
    monkeypatch.setattr("nearkernel._run.memory.available_bytes", lambda: 1000)
    with pytest.raises(
        MemoryError, match=r"12 x 12 points needs 1\.1 KiB, but 1000 bytes are free: use fewer"
    ):
        KERNELS[name](helpers.points(12, D))
