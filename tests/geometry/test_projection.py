"""Random projections and Sobolev balls."""

import numpy as np
import pytest

import nearkernel as nk

G = nk.geometry


def test_projections_keep_distances():
    x = np.random.default_rng(0).normal(size=(30, 900))
    matrix = nk.theory.random_projection(x, 0.4, 1)
    assert matrix.shape == (900, nk.theory.projection_dims(30, 0.4)) and matrix.shape[1] == 171
    pairs = np.triu_indices(30, 1)
    ratio = np.linalg.norm((x @ matrix)[pairs[0]] - (x @ matrix)[pairs[1]], axis=1)
    ratio /= np.linalg.norm(x[pairs[0]] - x[pairs[1]], axis=1)
    assert ratio.max() == pytest.approx(1.0) and ratio.min() >= 0.6


def test_few_dimensions_are_kept_as_they_are():
    assert np.array_equal(nk.theory.random_projection(np.ones((4, 3)), 0.5, 0), np.eye(3))


def test_axes_of_smooth_functions_are_those_of_a_grid():
    n = 400  # cells of width 1/n; f^2 + f'^2 as a matrix, with free ends
    second = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    second[0, 0] = second[-1, -1] = 1.0
    values = np.linalg.eigvalsh(np.eye(n) + n**2 * second)
    assert nk.theory.sobolev_axes(6) == pytest.approx(1 / np.sqrt(values[:6]), rel=1e-3)


def test_axes_of_a_cube_are_all_products():
    squares = sorted(a**2 + b**2 for a in range(30) for b in range(30))[:50]
    assert nk.theory.sobolev_axes(50, 2) == pytest.approx(1 / np.sqrt(1 + np.pi**2 * np.array(squares)))


def test_bad_input_gets_one_clear_line(monkeypatch):
    with pytest.raises(ValueError, match="`eps` must be at least 1e-6 and less than 1; got 1"):
        nk.theory.projection_dims(5, 1.0)
    monkeypatch.setattr("nearkernel.geometry.curvature.projection.projection_dims", lambda points, eps: 2)
    with pytest.raises(ValueError, match="none of `tries` = 3 projections preserved distances"):
        nk.theory.random_projection(np.random.default_rng(0).normal(size=(60, 300)), 0.1, 0, tries=3)
