"""In the plane: polygons against sampled gradients, linear programs, Zaslavsky's count and breakpoints on lines."""

from itertools import product

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import nearkernel as nk

G = nk.geometry
BOX = ((-1.5, 2.0), (-1.0, 1.0))


def drawn(net, seed=0):
    rng = np.random.default_rng(seed)
    shapes = zip(net.sizes[:-1], net.sizes[1:], strict=True)
    return [{"weight": rng.normal(size=shape), "bias": rng.normal(size=shape[1])} for shape in shapes]


def plain(*layers):
    """A network of two inputs and its parameters from (weight, bias) pairs."""
    params = [{"weight": np.array(w, float), "bias": np.array(b, float)} for w, b in layers]
    widths = [len(entry["bias"]) for entry in params]
    return nk.MLP(2, widths[:-1], widths[-1], "relu", parametrization="standard"), params


def value_and_gradient(net, params, x):
    """Outputs (n, out) and their derivatives (n, out, d): the definition, in plain NumPy."""
    z, dz = x, np.broadcast_to(np.eye(x.shape[1]), (len(x), x.shape[1], x.shape[1]))
    for layer, entry in enumerate(params):
        if layer:
            factor = np.where(z > 0, net.activation.right, net.activation.left)
            z, dz = factor * z, factor[..., None] * dz
        with jax.enable_x64(True):
            weight_scale, bias_scale = (float(scale) for scale in net.scales(layer))
        weight = weight_scale * entry["weight"]
        z, dz = z @ weight + bias_scale * entry["bias"], np.einsum("nid,io->nod", dz, weight)
    return z, dz


def uniform(box, n, seed=0):
    (x0, x1), (y0, y1) = box
    return np.random.default_rng(seed).uniform((x0, y0), (x1, y1), size=(n, 2))


def mismatches(net, params, found, points):
    """How many points lie in no polygon, or in one with another affine map."""
    cell = found.locate(points)
    z, dz = value_and_gradient(net, params, points)
    wrong_slope = np.abs(dz - found.gradients[cell]).max(axis=(1, 2)) > 1e-10 * np.abs(dz).max()
    affine = np.einsum("noc,nc->no", found.gradients[cell], points) + found.offsets[cell]
    return int(np.sum((cell < 0) | wrong_slope | (np.abs(z - affine).max(axis=1) > 1e-10 * np.abs(z).max())))


@pytest.mark.parametrize(
    "widths, out, activation",
    [((11,), 1, "relu"), ((12, 9), 2, "relu"), ((6, 6, 6, 6), 1, "leaky_relu"), ((8, 5), 1, "abs")],
)
def test_polygons_fill_the_box_and_have_the_gradients_of_the_network(widths, out, activation):
    net = nk.MLP(2, widths, out, activation, 2.0, 0.2)
    params = drawn(net)
    found = G.regions(net, params, BOX)
    assert len(found) > 20 and found.areas.min() > 0
    assert found.areas.sum() == pytest.approx(7.0, rel=1e-12)
    assert mismatches(net, params, found, uniform(BOX, 5000)) == 0
    region = found[3]
    assert found.locate([region.vertices.mean(axis=0)])[0] == 3 and len(region.vertices) >= 3
    assert list(found)[3].area == found.areas[3] == region.area


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(64, 64), (40, 40, 40)])
def test_no_mismatch_in_a_hundred_thousand_points(widths):
    net = nk.MLP(2, widths, 1, "relu", 2.0, 0.1)
    params, box = drawn(net), ((-2, 2), (-2, 2))
    found = G.regions(net, params, box)
    assert len(found) > 3000 and found.areas.sum() == pytest.approx(16.0, rel=1e-12)
    assert mismatches(net, params, found, uniform(box, 100_000)) == 0


def cells_by_programs(layers, box):
    """Sign patterns that are taken on an open set, found by one linear program a pattern."""
    neurons = [len(bias) for _, bias in layers[:-1]]
    count = 0
    for signs in product((-1.0, 1.0), repeat=sum(neurons)):
        rows, limits, at = [], [], 0
        matrix, shift = np.eye(2), np.zeros(2)  # the layer's input as a function of x
        for (weight, bias), n in zip(layers[:-1], neurons, strict=True):
            sign, at = np.array(signs[at : at + n]), at + n
            matrix, shift = matrix @ weight, shift @ weight + bias
            size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
            rows.append(np.column_stack([-(sign * matrix / size).T, np.ones(n)]))
            limits.append(sign * shift / size)
            matrix, shift = matrix * (sign > 0), shift * (sign > 0)
        bounds = [*box, (None, 1.0)]
        margin = linprog([0, 0, -1], np.concatenate(rows), np.concatenate(limits), bounds=bounds)
        count += margin.status == 0 and margin.x[2] > 1e-7
    return count


@pytest.mark.parametrize("widths, seed", [((5,), 0), ((3, 3), 1), ((2, 2, 2), 2)])
def test_there_are_as_many_polygons_as_patterns(widths, seed):
    net = nk.MLP(2, widths, 1, "relu", parametrization="standard")
    params = drawn(net, seed)
    layers = [(entry["weight"], entry["bias"]) for entry in params]
    assert len(G.regions(net, params, BOX)) == cells_by_programs(layers, BOX)


@pytest.mark.parametrize("n", [1, 2, 5, 13, 30])
def test_zaslavsky_is_reached_in_general_position(n):
    net = nk.MLP(2, (n,), 1, "relu", parametrization="standard")
    params = drawn(net, n)
    w, b = params[0]["weight"], params[0]["bias"]
    corners = [
        np.linalg.solve(w[:, [i, j]].T, -b[[i, j]]) for i in range(n) for j in range(i)
    ]  # where two lines meet
    reach = 1.5 * np.abs(corners).max(initial=1.0) + 2 * np.max(np.abs(b) / np.linalg.norm(w, axis=0))
    found = G.regions(net, params, ((-reach, reach), (-reach, reach)))
    assert found.count == len(found) == nk.theory.zaslavsky(n, 2) == nk.theory.region_bounds(net).layers
    no_bias = [{"weight": w, "bias": np.zeros(n)}, params[1]]
    assert G.regions(net, no_bias, BOX).count == nk.theory.zaslavsky(n, 2, central=True) == 2 * n


def test_zaslavsky_in_other_dimensions():
    assert [nk.theory.zaslavsky(n, 1) for n in (0, 1, 6)] == [1, 2, 7]
    assert [nk.theory.zaslavsky(n, 9) for n in (0, 4, 9)] == [1, 16, 512]
    assert nk.theory.zaslavsky(0, 3, central=True) == 1 and nk.theory.zaslavsky(4, 3, central=True) == 14
    rng = np.random.default_rng(0)  # three dimensions, by a linear program a pattern
    w, b = rng.normal(size=(3, 6)), 0.1 * rng.normal(size=6)
    count = 0
    for signs in product((-1.0, 1.0), repeat=6):
        rows = np.column_stack([-(np.array(signs) * w).T, np.ones(6)])
        found = linprog([0, 0, 0, -1], rows, np.array(signs) * b, bounds=[(None, None)] * 3 + [(None, 1.0)])
        count += found.x[3] > 1e-9
    assert count == nk.theory.zaslavsky(6, 3) == 42


def test_polygons_of_one_linear_region_have_one_label():
    line = plain(([[1, -1, 0], [0, 0, 1]], [0, 0, 0]), ([[1], [-1], [1]], [0]))  # x + relu(y)
    found = G.regions(*line, ((-1, 1), (-1, 1)))
    assert (len(found), found.count) == (4, 2)
    dead = plain(
        ([[1, 0], [0, 1]], [0, 0]), ([[-1], [-1]], [0]), ([[1]], [3])
    )  # constant: the second layer is off
    assert G.regions(*dead, ((-1, 1), (-1, 1))).count == 1
    tooth = plain(([[1, 1], [0, 0]], [0, -0.5]), ([[2, 2], [-4, -4]], [0, -0.5]), ([[2], [-4]], [0]))
    found = G.regions(*tooth, ((0, 1), (0, 1)))  # slopes 4, -4, 4, -4: apart, though two are alike
    assert found.count == 4 and len(np.unique(found.gradients[:, 0, 0])) == 2
    for seed in range(6):  # a narrow last layer is often off
        net = nk.MLP(2, (7, 2), 1, "relu", 2.0, 0.5)
        found = G.regions(net, drawn(net, seed), BOX)
        for label in range(found.count):
            assert np.ptp(found.gradients[found.labels == label], axis=0).max() < 1e-12
        assert found.count <= len(found)


@pytest.mark.parametrize("widths", [(9,), (6, 2), (7, 5, 3)])
def test_lines_through_the_polygons_have_their_breakpoints(widths):
    net = nk.MLP(2, widths, 1, "relu", 2.0, 0.3)
    params = drawn(net, 4)
    found, ends = G.regions(net, params, BOX), uniform(BOX, 20, seed=1)
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        knots = np.concatenate([[0.0], nk.theory.breakpoints(net, params, start, end), [1.0]])
        inner = (knots[:-1, None] + np.diff(knots)[:, None] * [0.01, 0.99])[..., None] * (end - start) + start
        labels = found.labels[found.locate(inner.reshape(-1, 2))].reshape(-1, 2)
        assert np.all(labels[:, 0] == labels[:, 1]) and np.all(labels[1:, 0] != labels[:-1, 1])


def test_a_slice_of_a_higher_dimensional_input():
    net = nk.MLP(5, (10, 8), 3, "relu", 2.0, 0.3)
    params, rng = drawn(net), np.random.default_rng(3)
    origin, axes = rng.normal(size=5), rng.normal(size=(2, 5))
    found, points = G.regions(net, params, BOX, plane=(origin, axes)), uniform(BOX, 2000)
    z, dz = value_and_gradient(net, params, origin + points @ axes)
    cell = found.locate(points)
    np.testing.assert_allclose(found.gradients[cell], dz @ axes.T, atol=1e-11)
    affine = np.einsum("noc,nc->no", found.gradients[cell], points) + found.offsets[cell]
    np.testing.assert_allclose(affine, z, atol=1e-11)


def test_where_the_box_is_does_not_matter():
    net = nk.MLP(2, (12, 12), 1, "relu", parametrization="standard")
    params = drawn(net)
    far = [
        {**params[0], "bias": params[0]["bias"] - np.array([1e4, -3e4]) @ params[0]["weight"]},
        *params[1:],
    ]
    near = G.regions(net, params, BOX)
    away = G.regions(net, far, ((1e4 - 1.5, 1e4 + 2.0), (-3e4 - 1.0, -3e4 + 1.0)))
    assert len(near) == len(away) and near.count == away.count
    assert np.all(away.locate([[0.0, 0.0], [1e4, -3e4]]) == [-1, *near.locate([[0.0, 0.0]])])
    linear = nk.MLP(2, (3,), 1, "linear")
    assert len(G.regions(linear, drawn(linear), BOX)) == 1


NET = nk.MLP(2, (4,), 1, "relu")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: G.regions(nk.MLP(2, (4,), 1, "tanh"), drawn(NET), BOX), "must have a piecewise linear"),
        (
            lambda: G.regions(NET, drawn(NET), (-1, 1)),
            r"`box` must be \(\(x_low, x_high\), \(y_low, y_high\)\)",
        ),
        (lambda: G.regions(NET, drawn(NET), ((1, -1), (0, 1))), "with low < high"),
        (lambda: G.regions(NET, drawn(NET), ((0, np.inf), (0, 1))), "`box` holds 1 NaN or infinite"),
        (
            lambda: G.regions(nk.MLP(3, (4,)), drawn(nk.MLP(3, (4,))), BOX),
            r"`net` has 3 inputs: give `plane` = \(origin \(3,\), axes \(2, 3\)\)",
        ),
        (lambda: G.regions(NET, drawn(NET), BOX, plane=np.eye(3)), "`plane` must be"),
        (lambda: G.regions(NET, drawn(NET), BOX, plane=([0, 0], [[1, 2], [2, 4]])), "independent axes"),
        (
            lambda: G.regions(NET, drawn(NET), BOX).locate([[1.0]]),
            "`points` has 1 features per row; 2 expected",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
