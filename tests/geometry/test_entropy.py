"""Entropy numbers and stable widths: certain bounds against coverings that are made, and codes that are decoded."""

import itertools

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.geometry.capacity.metric_entropy import farthest_points
from support.helpers import points

G = nk.geometry
BITS = np.array([0, 1, 2, 3, 5, 8, 13, 30, 80])
FALLING = {
    "polynomial": np.arange(1, 301.0) ** -1.0,
    "slow": np.arange(1, 301.0) ** -0.6,
    "exponential": np.exp(-np.arange(60) / 4),
    "ball": np.ones(6),
}


# Ellipsoids


@pytest.mark.parametrize("name", FALLING)
def test_bounds_are_ordered_fall_and_are_close(name):
    found = nk.theory.ellipsoid_entropy(FALLING[name], BITS)
    assert np.all(found.lower <= found.upper) and np.all(found.upper <= 3 * found.lower)
    assert np.all(np.diff(found.lower) < 0) and np.all(np.diff(found.upper) <= 0)
    assert found.upper[0] == found.lower[0] == FALLING[name].max()
    larger = nk.theory.ellipsoid_entropy(2.0 * FALLING[name], BITS)
    np.testing.assert_allclose(larger.lower, 2 * found.lower)
    np.testing.assert_allclose(larger.upper, 2 * found.upper)


def test_one_axis_is_halved_by_every_bit():
    found = nk.theory.ellipsoid_entropy([3.0], np.arange(12))
    np.testing.assert_allclose(found.lower, 3 * 0.5 ** np.arange(12))
    np.testing.assert_allclose(found.upper, found.lower)


def test_extreme_axes_and_bits_do_not_overflow():
    found = nk.theory.ellipsoid_entropy([1e150, 1.0, 1e-150], [0, 500, 3000])
    assert np.isfinite(found.upper).all() and np.all(found.lower <= found.upper) and found.upper[2] < 1e-150


@pytest.mark.parametrize("axes", [(1.0, 0.5), (1.0, 1.0), (1.0, 0.6, 0.3)])
def test_bounds_hold_for_coverings_that_are_made(axes):
    """Farthest points of a dense sample are within a factor of 2 of the best covering."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(6000, len(axes)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    sample = direction * rng.uniform(size=(6000, 1)) ** (1 / len(axes)) * axes
    bits = np.arange(8)
    made, bounds = nk.theory.set_entropy(sample, bits), nk.theory.ellipsoid_entropy(axes, bits)
    assert np.all(made.lower <= bounds.upper)  # part of the ellipsoid needs no larger balls
    mesh = 0.12  # the sample is that dense
    assert np.all(bounds.lower <= made.upper + mesh)


def test_an_unknown_tail_only_raises_the_upper_bound():
    axes = FALLING["polynomial"]
    # The lower bound is that of fewer axes, the upper one that of more.
    whole, part = (
        nk.theory.ellipsoid_entropy(axes, BITS),
        nk.theory.ellipsoid_entropy(axes[:50], BITS, tail=axes[50]),
    )
    assert np.all(part.lower <= whole.lower + 1e-15) and np.all(
        part.upper >= 0.98 * whole.upper
    )  # radii are tried on a grid
    assert np.all(part.upper[BITS <= 13] < 1.01 * whole.upper[BITS <= 13])


def test_axes_of_a_kernel_are_those_of_its_unit_ball_on_the_points():
    x, kernel = points(30, 2), nk.kernels.RBF(1.0)
    axes = nk.theory.kernel_axes(kernel, x)
    gram = kernel(x)
    rng = np.random.default_rng(1)
    values, vectors = np.linalg.eigh(gram)
    # f = K a has norm a^T K a = 1 in the space of the kernel
    a = rng.normal(size=(200, 30)) @ (vectors / np.sqrt(np.maximum(values, 1e-300))).T
    a /= np.sqrt(np.einsum("ij,jk,ik->i", a, gram, a))[:, None]
    coordinates = a @ gram @ vectors[:, ::-1] / np.sqrt(30)
    coordinates, kept = coordinates[:, : len(axes)], axes > 1e-6
    np.testing.assert_allclose(np.sum((coordinates[:, kept] / axes[kept]) ** 2, axis=1), 1, atol=0.05)
    assert np.all(np.linalg.norm(coordinates, axis=1) <= axes[0] * (1 + 1e-9))


# Finite sets


def smallest_ball(group):
    """Radius of the smallest disc around points of the plane: two or three of them are on its rim."""
    if len(group) < 2:
        return 0.0
    discs = [(a + b) / 2 for a, b in itertools.combinations(group, 2)]
    for a, b, c in itertools.combinations(group, 3):
        edges = 2 * np.array([b - a, c - a])
        if abs(np.linalg.det(edges)) > 1e-9:
            discs.append(np.linalg.solve(edges, [b @ b - a @ a, c @ c - a @ a]))
    return min(np.linalg.norm(group - center, axis=1).max() for center in discs)


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_bounds_of_a_small_set_hold_for_the_best_partition(bits):
    members = points(6, 2, bits)
    best = min(
        max(smallest_ball(members[np.array(labels) == group]) for group in range(2**bits))
        for labels in itertools.product(range(2**bits), repeat=5)
        for labels in [(0, *labels)]
    )
    found = nk.theory.set_entropy(members, bits)
    assert found.lower[0] <= best * (1 + 1e-12) and best <= found.upper[0]


def test_a_set_smaller_than_the_code_is_covered_exactly():
    members = points(5, 3)
    np.testing.assert_array_equal(nk.theory.set_entropy(members, [3, 4]).upper, 0.0)
    chosen, radii = farthest_points(members, 5)
    assert sorted(chosen) == list(range(5)) and radii[-1] == 0 and np.all(np.diff(radii) <= 0)


# Lipschitz functions


def zigzag(slopes, length, constant):
    grid = np.linspace(0, length, len(slopes) + 1)
    values = np.concatenate([[0.0], np.cumsum(slopes)]) * constant * length / len(slopes)
    return lambda x: np.interp(x, grid, values)


@pytest.mark.parametrize("bits", [0, 1, 4, 9])
@pytest.mark.parametrize("length, constant", [(1.0, 1.0), (2.5, 0.7)])
def test_codes_of_lipschitz_functions_reach_the_entropy_number(bits, length, constant):
    rng = np.random.default_rng(bits)
    bound = nk.theory.lipschitz_entropy(bits, length, constant).upper[0]
    ends, x = np.linspace(0, length, bits + 2)[1:], np.linspace(0, length, 1201)
    worst = 0.0
    for pieces in (1, 3, 50, 1200):
        for _ in range(10):
            f = zigzag(rng.choice([-1, 1], pieces) * rng.uniform(0.8, 1, pieces), length, constant)
            code = nk.theory.lipschitz_code(f(ends), length, constant)
            assert code.shape == (bits,)
            worst = max(worst, np.abs(f(x) - nk.theory.lipschitz_decode(code, x, length, constant)).max())
    assert worst <= bound * (1 + 1e-12)
    straight = constant * x  # the hardest function of all
    code = nk.theory.lipschitz_code(constant * ends, length, constant)
    assert np.abs(straight - nk.theory.lipschitz_decode(code, x, length, constant)).max() == pytest.approx(
        bound
    )


def test_more_zigzags_than_codes_are_a_whole_ball_apart():
    """The lower bound: 2^(n+1) functions, any two of them 2 eps_n apart at some point."""
    bits = 3
    slopes = np.array(list(itertools.product([-1, 1], repeat=bits + 1)))
    values = np.cumsum(slopes, axis=1) / (bits + 1)
    distance = np.abs(values[:, None] - values[None]).max(axis=2)[~np.eye(2 ** (bits + 1), dtype=bool)]
    assert distance.min() / 2 == pytest.approx(nk.theory.lipschitz_entropy(bits).lower[0])


# Stable widths


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("kind", ["smooth", "noise", "plane"])
def test_the_pair_is_stable_and_its_error_below_three_entropy_numbers(bits, kind):
    rng = np.random.default_rng(3)
    if kind == "smooth":
        gram = nk.kernels.Laplace(0.5)(np.linspace(0, 1, 200)[:, None])
        functions = rng.normal(size=(100, 200)) @ np.linalg.cholesky(gram).T / np.sqrt(200)
    else:
        functions = rng.normal(size=(100, 300 if kind == "noise" else 2))
    pair = nk.theory.stable_pair(functions, bits, jax.random.key(1))
    assert pair.dims == 32 * bits and pair.stable
    assert pair.encoder_constant <= 1 + 1e-9
    assert pair.decoder_constant <= pair.decoder.constant * (1 + 1e-6)
    bounds = nk.theory.set_entropy(functions, bits)
    assert pair.radius == pytest.approx(bounds.upper[0])
    assert pair.error <= (1 + pair.decoder.constant) * pair.radius
    assert pair.certain and pair.error <= 3 * bounds.lower[0]
    back = pair.decode(pair.encode(functions))
    assert np.linalg.norm(functions - back, axis=1).max() == pytest.approx(pair.error)


def test_functions_that_are_all_alike_need_no_code():
    pair = nk.theory.stable_pair(np.ones((5, 3)), 2, jax.random.key(0))
    assert pair.radius == 0 and pair.error < 1e-12 and pair.stable and pair.certain


def test_the_extension_keeps_values_and_the_constant_everywhere():
    z, f = points(9, 2), points(9, 3, 1)
    stretch = max(
        np.linalg.norm(f[i] - f[j]) / np.linalg.norm(z[i] - z[j])
        for i, j in itertools.combinations(range(9), 2)
    )
    extension = nk.theory.LipschitzExtension(z, f, stretch)
    np.testing.assert_allclose(extension(z), f, atol=1e-5)
    x = 2 * points(120, 2, 5)
    values = extension(x)
    ratio = np.linalg.norm(values[:, None] - values, axis=2) / (
        np.linalg.norm(x[:, None] - x, axis=2) + 1e-300
    )
    assert ratio.max() <= stretch * (1 + 1e-3)
    away = np.linalg.norm(values[:, None] - f, axis=2) - stretch * np.linalg.norm(x[:, None] - z, axis=2)
    assert away.max() < 1e-4


@pytest.mark.parametrize("name", ["polynomial", "slow", "exponential"])
def test_widths_of_ellipsoids_obey_the_same_inequality(name):
    for bits in (1, 2, 5, 9):
        bound = 3 * nk.theory.ellipsoid_entropy(FALLING[name], bits).lower[0]
        assert nk.theory.ellipsoid_width(FALLING[name], 32 * bits) <= bound


@pytest.mark.parametrize("name", ["polynomial", "slow", "exponential"])
def test_a_stable_width_bounds_entropy_with_a_logarithm_more_bits(name):
    """Codes of a packing are a packing in n dimensions: eps_m <= 8 delta_n for m = n log2(6 R / delta_n)."""
    axes = FALLING[name]
    for n in (1, 3, 8, 20):
        width = nk.theory.ellipsoid_width(axes, n)
        bits = int(np.ceil(n * np.log2(6 * axes[0] / width)))
        assert nk.theory.ellipsoid_entropy(axes, bits).upper[0] <= 8 * width


def test_rates_agree_if_they_are_powers_and_not_if_exponential():
    """Carl's comparison: a power of n is the rate of both; an exponential width gives exp(-c sqrt n) only."""
    bits = np.array([64, 128, 256, 512])
    for power in (0.6, 1.0, 2.0):
        axes = np.arange(1, 2001.0) ** -power
        found = nk.theory.ellipsoid_entropy(axes, bits)
        fitted = [-np.polyfit(np.log(bits), np.log(values), 1)[0] for values in (found.lower, found.upper)]
        np.testing.assert_allclose(fitted, power, atol=0.13 * power)
        widths = [nk.theory.ellipsoid_width(axes, n) for n in bits]
        assert np.all(found.upper / widths < 30) and np.all(found.lower / widths > 0.8)
    axes = np.exp(-np.arange(400) / 2)
    found = nk.theory.ellipsoid_entropy(axes, bits)
    slope = np.polyfit(np.log(bits), np.log(-np.log(found.lower)), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.12)
    assert found.lower[0] > 1e9 * nk.theory.ellipsoid_width(axes, 64)


def test_the_width_of_an_ellipsoid_is_reached_by_projection_and_forced_by_antipodes():
    axes = np.array([2.0, 1.0, 0.5])
    x = points(4000, 3)
    x = x / np.linalg.norm(x, axis=1, keepdims=True) * axes
    assert np.abs(x[:, 2]).max() == pytest.approx(nk.theory.ellipsoid_width(axes, 2), rel=1e-3)
    assert nk.theory.ellipsoid_width(axes, 0) == 2 and nk.theory.ellipsoid_width(axes, 3) == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.ellipsoid_entropy([], 1), "`axes` must have at least one value"),
        (
            lambda: nk.theory.ellipsoid_entropy([1.0, -1.0], 1),
            "`axes` must have at least one value, all at least 0",
        ),
        (lambda: nk.theory.ellipsoid_entropy([1.0], -1), "`bits` must be an integer of at least 0"),
        (lambda: nk.theory.ellipsoid_entropy([1.0], 1.5), "`bits` must be an integer"),
        (lambda: nk.theory.ellipsoid_entropy([1.0], 1, tail=-1.0), "`tail` must be at least 0"),
        (lambda: nk.theory.lipschitz_entropy(1, -1.0), "`length` must be greater than 0"),
        (
            lambda: nk.theory.lipschitz_code([2.0, 0.0]),
            "`values` change by more than 0.5 per cell, the limit for `constant` = 1",
        ),
        (lambda: nk.theory.lipschitz_code([]), r"`values` must have shape \(n \+ 1,\)"),
        (lambda: nk.theory.lipschitz_decode([True], [2.0]), "`x` must be between 0 and `length` = 1"),
        (lambda: nk.theory.set_entropy(points(3, 2), "a"), "`bits` must be an integer"),
        (
            lambda: nk.theory.stable_pair(points(3, 2), 0, jax.random.key(0)),
            "`bits` must be at least 1; got 0",
        ),
        (
            lambda: nk.theory.kernel_axes(lambda x, y: -x @ y.T, points(3, 2)),
            "`kernel` is not positive",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
