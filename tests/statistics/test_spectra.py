"""Spectra: the law of Marchenko and Pastur against integrals, drawn matrices, random features and tangent kernels."""

import itertools

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special

import nearkernel as nk
from support.helpers import points

S = nk.statistics
RATIOS = (1e-8, 0.02, 0.5, 1.0, 1.3, 4.0)


def on_circle(law, size=2001):
    """Points x between the edges and weights of an integral dx that knows the roots at both ends."""
    low, high = law.edges
    angle = (np.arange(size) + 0.5) * np.pi / size
    return (low + high) / 2 - (high - low) / 2 * np.cos(angle), np.sin(angle) * (
        high - low
    ) / 2 * np.pi / size


@pytest.mark.parametrize("ratio", RATIOS)
def test_density_mass_moments_and_stieltjes_agree(ratio):
    law = nk.theory.marchenko_pastur(ratio, 1.7, shift=0.4)
    x, dx = on_circle(law)
    mass = law.density(x) * dx
    assert mass.sum() == pytest.approx(min(1, 1 / ratio), rel=1e-6)
    for k in range(1, 6):
        assert mass @ x**k + law.atom * 0.4**k == pytest.approx(law.moment(k), rel=1e-6)
    assert law.moment(1) == pytest.approx(0.4 + 1.7)
    z = np.array([-1.0 + 0.0j, 2.0 + 1.0j, 3.0 - 0.5j, 30.0 + 0.0j])
    expected = mass @ (1 / (x[:, None] - z)) + law.atom / (0.4 - z)
    if ratio > 1e-6:  # the closed form divides by the ratio
        np.testing.assert_allclose(law.stieltjes(z), expected, rtol=1e-5)


@pytest.mark.parametrize("ratio", RATIOS)
def test_distribution_function_is_the_integral_of_the_density(ratio):
    law = nk.theory.marchenko_pastur(ratio, 0.6)
    low, high = law.edges
    grid = low + (high - low) * np.linspace(0, 1, 7)[1:-1]
    inside = lambda a, b: scipy.integrate.quad(law.density, a, b, limit=200, epsabs=1e-12)[0]
    np.testing.assert_allclose(
        np.diff(law.cdf(grid)), [inside(a, b) for a, b in itertools.pairwise(grid)], atol=1e-9
    )
    np.testing.assert_allclose(law.cdf(np.array([-1.0, high + 1])), [0, 1], atol=1e-12)
    assert law.cdf(low - 1e-9 if ratio < 1 else 1e-300) == pytest.approx(law.atom, abs=1e-9)


@pytest.mark.parametrize("rows, columns", [(120, 300), (200, 200), (240, 90)])
def test_drawn_matrices_follow_the_law(rows, columns):
    """Linear statistics of eigenvalues fluctuate by 1/N only, distances of distribution functions by log N / N."""
    law = nk.theory.marchenko_pastur(rows / columns, 1.3)
    rng = np.random.default_rng(rows)
    drawn = [nk.theory.gram_spectrum(np.sqrt(1.3) * rng.normal(size=(rows, columns)), 1.3) for _ in range(12)]
    quick = [law.compare(law.sample(rows, key)) for key in jax.random.split(jax.random.key(1), 12)]
    for found in (drawn, quick):
        assert max(one.distance for one in found) < np.log(min(rows, columns)) / min(rows, columns)
        assert all(one.below == one.above == 0 for one in found)
        moments = np.array([one.moments for one in found])
        # the mean over matrices is off by 1/N at most
        error = 4 * moments.std(0, ddof=1) / np.sqrt(12) + 3 * law.variance / rows * np.array(
            found[0].expected
        )
        assert np.all(np.abs(moments.mean(0) - found[0].expected) < error)
    exact = law.variance**2 * (1 + (rows + 1) / columns)  # of the second moment, at any size
    for found in (drawn, quick):
        second = np.array([one.moments[1] for one in found])
        assert abs(second.mean() - exact) < 4 * second.std(ddof=1) / np.sqrt(12)


def test_the_distance_falls_with_size_and_a_signal_stands_out():
    law = nk.theory.marchenko_pastur(0.5)
    sizes = [
        np.mean([law.compare(law.sample(n, key)).distance for key in jax.random.split(jax.random.key(n), 8)])
        for n in (30, 120, 480)
    ]
    assert sizes[2] < sizes[1] / 3 < sizes[0] / 9
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 200)) + 0.4 * rng.normal(size=(100, 1)) @ rng.normal(size=(1, 200))
    found = nk.theory.gram_spectrum(x)
    assert found.above == 1 and found.below == 0


def test_given_data_are_compared_with_noise_of_their_own_variance():
    from sklearn.datasets import load_digits

    pixels = load_digits().data[:300]
    pixels = (pixels - pixels.mean(0))[:, pixels.std(0) > 1.0]
    pixels /= pixels.std(0)
    found = nk.theory.gram_spectrum(pixels)
    assert found.law.variance == pytest.approx(1) and found.law.ratio == 300 / pixels.shape[1]
    assert found.distance > 0.08 and found.above > 3  # digits are not noise
    shuffled = np.random.default_rng(0).permuted(pixels, axis=0)
    assert nk.theory.gram_spectrum(shuffled).distance < 0.03  # unless each pixel forgets the others


def sphere(n, d, seed=0):
    x = points(n, d, seed)
    return x * np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)


def test_the_bulk_of_tangent_kernels_is_a_shifted_covariance():
    n, d = 200, 300
    kernel = nk.kernels.NTK(nk.MLP(d, (8,), 1, "relu", weight_var=1.8, bias_var=0.1))
    law = nk.theory.kernel_bulk(kernel, n, d)
    values = np.linalg.eigvalsh(kernel(sphere(n, d)))
    found = law.compare(values[:-1])
    assert found.distance < 0.03 and found.above == 0 and found.below == 0
    assert values[-1] > 5 * law.edges[1] and law.shift > 0.1
    linear = nk.theory.kernel_bulk(nk.kernels.Linear(), n, d)  # nothing is left to shift
    assert linear.variance == pytest.approx(d) and linear.shift == pytest.approx(0, abs=1e-8)


def test_random_features_spread_the_spectrum_of_their_kernel():
    n, d, size = 150, 200, 300
    x = sphere(n, d)
    features = nk.kernels.RandomFeatures(d, size, jax.random.key(0), "erf")
    values = np.linalg.eigvalsh(features(x))
    kernel = nk.kernels.NNGP(nk.MLP(d, (1,), 1, "erf", weight_var=1.0))
    law = nk.theory.sampled_spectrum(np.linalg.eigvalsh(kernel(x)), n / size)
    grid = np.linspace(1e-3, 1.2 * values[-1], 400)
    share = scipy.integrate.cumulative_trapezoid(law.density(grid), x=grid, initial=0)
    found = (np.arange(n) + 0.5) / n
    assert np.abs(np.interp(values, grid, share) - found).max() < 0.03
    plain = nk.theory.marchenko_pastur(n / size, values.mean()).compare(values).distance
    assert plain > 0.1  # inputs are correlated: features are not independent entries
    rng = np.random.default_rng(1)
    drawn = [scipy.special.erf(x @ rng.normal(size=(d, size)) / np.sqrt(d)) for _ in range(10)]
    draws = [np.linalg.eigvalsh(f @ f.T / size) for f in drawn]
    for k, expected in enumerate(law.moments, 1):
        means = np.mean(np.array(draws) ** k, axis=1)
        assert abs(means.mean() - expected) < 4 * means.std(ddof=1) / np.sqrt(10) + 2e-2 * expected


def test_features_without_a_linear_part_look_like_noise():
    """An even function of high-dimensional inputs has uncorrelated features: the plain law holds."""
    n, d, size = 120, 600, 300
    w, x = points(d, size, 1), sphere(n, d)
    z = x @ w / np.sqrt(d)
    found = nk.theory.gram_spectrum((z * z - 1) / np.sqrt(2), 1.0)
    assert found.distance < 0.06
    assert nk.theory.gram_spectrum(z, 1.0).distance > 1.2 * found.distance


def test_a_population_of_ones_gives_the_plain_law():
    grid = np.linspace(0.1, 2.8, 40)
    for ratio in (0.3, 0.5, 2.0):
        expected = nk.theory.marchenko_pastur(ratio).density(grid)
        np.testing.assert_allclose(
            nk.theory.sampled_spectrum(np.ones(3), ratio).density(grid, 1e-9), expected, atol=1e-7
        )
    assert nk.theory.sampled_spectrum(np.ones(3), 0.5).moments == (1.0, 1.5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.marchenko_pastur(0.0), "`ratio` must be greater than 0; got 0.0"),
        (lambda: nk.theory.marchenko_pastur(-1), "`ratio` must be greater than 0; got -1"),
        (lambda: nk.theory.marchenko_pastur(np.inf), "`ratio` must be finite"),
        (lambda: nk.theory.marchenko_pastur(np.nan), "`ratio` must be a number; got nan"),
        (lambda: nk.theory.marchenko_pastur(1.0, 0.0), "`variance` must be greater than 0"),
        (lambda: nk.theory.marchenko_pastur(1.0).moment(-1), "`k` must be at least 0"),
        (
            lambda: nk.theory.marchenko_pastur(1.0).compare(np.ones((2, 2))),
            r"`eigenvalues` must have shape \(n,\)",
        ),
        (lambda: nk.theory.gram_spectrum(np.zeros((2, 3))), "`x` is 0 everywhere"),
        (lambda: nk.theory.kernel_bulk(nk.kernels.Polynomial(2, 0.0), 10, 10), "`kernel` has no linear part"),
        (
            lambda: nk.theory.sampled_spectrum([-1.0, 2.0], 1.0),
            "`population` must be a vector of eigenvalues",
        ),
        (lambda: nk.theory.sampled_spectrum([1.0], 1.0).density([0.0]), "`x` must be greater than 0"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
