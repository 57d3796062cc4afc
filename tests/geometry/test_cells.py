"""Cells of a network in any dimension, and how much boundary there is."""

import jax
import numpy as np
import pytest

import nearkernel as nk

G = nk.geometry
KEY = jax.random.key(0)


def deep(in_dim, widths, bias_var=0.3):
    net = nk.MLP(in_dim, widths, 2, "relu", weight_var=2.0, bias_var=bias_var)
    return net, net.init(KEY)


def test_a_cell_of_the_plane_is_the_polygon_of_regions():
    net, params = deep(2, (8, 6))
    cut = G.regions(net, params, ((-40, 40), (-40, 40)))
    compared = 0
    for at in np.random.default_rng(0).normal(size=(6, 2)):
        polygon = cut[int(cut.locate(at[None])[0])]
        found = nk.theory.cell(net, params, at)
        np.testing.assert_allclose(found.gradient, polygon.gradient, atol=1e-10)
        np.testing.assert_allclose(found.offset, polygon.offset, atol=1e-10)
        inside = np.abs(polygon.vertices).max() < 39.9
        assert found.bounded or not inside
        if inside:
            compared += 1
            assert len(found.facets) == len(polygon.vertices)
    assert compared >= 2


def test_the_network_is_affine_in_a_cell_of_five_dimensions():
    net, params = deep(5, (12, 10))
    rng = np.random.default_rng(1)
    at = rng.normal(size=5)
    found = nk.theory.cell(net, params, at)
    near = at + 0.3 * rng.normal(size=(4000, 5))
    inside = found.contains(near)
    assert 5 < inside.sum() < 4000
    np.testing.assert_allclose(
        np.asarray(net(params, near[inside])), near[inside] @ found.gradient.T + found.offset, atol=1e-4
    )
    walls, limits = found.normals[found.facets], found.offsets[found.facets]
    assert np.array_equal(np.all(near @ walls.T <= limits, axis=1), inside)  # its sides alone say the same
    assert set(found.layer[found.facets]) <= {1, 2} and len(found.facets) < len(found.normals)


def test_a_box_has_two_sides_a_dimension_and_is_bounded():
    net = nk.MLP(3, (6,), 1, "relu", bias_var=1.0, parametrization="standard")
    weight = np.concatenate([np.eye(3), -np.eye(3)], axis=1)
    params = [{"weight": weight, "bias": np.ones(6)}, {"weight": np.ones((6, 1)), "bias": np.zeros(1)}]
    found = nk.theory.cell(net, params, np.zeros(3))
    assert len(found.facets) == 6 and found.bounded
    opened = [{"weight": weight[:, :5], "bias": np.ones(5)}, {"weight": np.ones((5, 1)), "bias": np.zeros(1)}]
    found = nk.theory.cell(
        nk.MLP(3, (5,), 1, "relu", bias_var=1.0, parametrization="standard"), opened, np.zeros(3)
    )
    assert len(found.facets) == 5 and not found.bounded


def test_in_one_dimension_boundaries_are_the_kinks_of_a_line():
    net = nk.MLP(1, (5, 5), bias_var=0.4)
    np.testing.assert_allclose(
        nk.theory.mean_boundary(net, 2.0), nk.theory.mean_crossings(net, -2.0, 2.0), rtol=1e-10
    )


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_boundaries_have_the_volume_of_the_theory(dim):
    net = nk.MLP(dim, (40, 40), bias_var=0.5)
    theory, found = nk.theory.mean_boundary(net, 1.5), nk.theory.measure_boundary(net, 1.5, 200, KEY)
    assert found.agrees(theory)
    assert np.all(found.sem < 0.1 * theory)


def test_errors_name_the_argument():
    net, params = deep(2, (3,), bias_var=0.0)
    with pytest.raises(ValueError, match=r"`point` must have shape \(2,\); got \(3,\)"):
        nk.theory.cell(net, params, np.ones(3))
    with pytest.raises(ValueError, match=r"`point` lies on the border of a cell, where a neuron is 0"):
        nk.theory.cell(net, params, np.zeros(2))
