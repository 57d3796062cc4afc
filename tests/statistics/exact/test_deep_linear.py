"""Bayesian deep linear networks: the exact evidence and posterior against integrals, drawn networks and limits."""

import itertools

import jax
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import nearkernel as nk
from nearkernel.statistics.exact import deep_linear, deep_linear_posterior
from nearkernel.statistics.special.gamma_product import log_gamma_product
from support.helpers import points

S = nk.statistics
X, Y = points(2, 3), np.array([0.7, -0.4])


# The logarithm of Meijer's function


def meijer(log_z, shapes):
    """The same density by mpmath, in 30 digits."""
    with mpmath.workdps(30):
        value = mpmath.meijerg([[], []], [list(map(mpmath.mpf, shapes)), []], mpmath.exp(log_z))
        return float(mpmath.log(value) - mpmath.fsum(mpmath.loggamma(a) for a in shapes))


@pytest.mark.parametrize(
    "shapes, logs",
    [
        ([0.5], [-20, 0, 3]),
        ([1.0, 1.5], [-30, 0.5, 5]),
        ([0.5, 0.5, 0.5], [-40, 4]),
        ([1, 2.5, 1, 4.5, 30], [-5, 6]),
    ],
)
def test_meijer_equals_mpmath(shapes, logs):
    found = log_gamma_product(np.array(logs, dtype=float), shapes)
    expected = [meijer(log_z, shapes) for log_z in logs]
    np.testing.assert_array_less(np.abs(found.value - expected), found.error + 1e-14)
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "shapes, log_z", [([250.0] + [500.0] * 100, 620.0), ([1.0, 5e6], 16.0), ([50.0, 5e9], 26.0)]
)
def test_meijer_of_large_parameters_equals_a_line_integral_in_30_digits(shapes, log_z):
    found = log_gamma_product(np.array(log_z), shapes)
    distinct = [(mpmath.mpf(a), shapes.count(a)) for a in set(shapes)]
    with mpmath.workdps(30):

        def cumulant(s, order=None):
            part = (
                (lambda a: mpmath.loggamma(a + s)) if order is None else (lambda a: mpmath.psi(order, a + s))
            )
            return mpmath.fsum(n * part(a) for a, n in distinct)

        c = mpmath.findroot(lambda s: cumulant(s, 0) - log_z, -float(found.slope))
        unit = 1 / mpmath.sqrt(cumulant(c, 1))
        height = cumulant(c) - c * log_z
        line = lambda t: mpmath.re(mpmath.exp(cumulant(c + 1j * t) - (c + 1j * t) * log_z - height))
        # The lightest parameter has a tail like 1/t before it falls exponentially.
        integral = mpmath.quad(line, [0, unit, 2 * unit, 4 * unit, 8 * unit, 16 * unit, 40 * unit])
        expected = float(height + mpmath.log(integral / mpmath.pi) - cumulant(0))
    assert abs(found.value - expected) < 1e-10 and found.error < 1e-10


def test_meijer_never_overflows_and_knows_its_slope():
    log_z = np.array([-1e6, -1e3, -3.0, 0.0, 5.0, 40.0, 300.0, 1e3, 1e6])
    for shapes in ([1.5], [0.5, 0.5, 7.0], [250.0] * 60):
        found = log_gamma_product(log_z, shapes)
        assert not np.isnan(found.value).any() and np.all(found.value < 2)
        assert np.all(np.diff(found.slope[np.isfinite(found.slope)]) <= 0)  # log-concave
        step = 1e-4
        sides = log_gamma_product(np.array([1.0 - step, 1.0 + step]), shapes)
        slope = log_gamma_product(np.array(1.0), shapes).slope
        assert np.diff(sides.value)[0] / (2 * step) == pytest.approx(float(slope), rel=1e-6)
    assert log_gamma_product(np.array(1e4), [1.5]).value == -np.inf


def test_one_gamma_and_a_bessel_function():
    z = np.array([1e-4, 0.3, 2.0, 50.0])
    single = log_gamma_product(np.log(z), [2.5]).value
    np.testing.assert_allclose(single, scipy.stats.gamma.logpdf(z, 2.5) + np.log(z), rtol=1e-12)
    double = np.exp(log_gamma_product(np.log(z), [1.0, 2.5]).value)
    bessel = 2 * z**1.75 * scipy.special.kv(-1.5, 2 * np.sqrt(z)) / scipy.special.gamma(2.5)
    np.testing.assert_allclose(double, bessel, rtol=1e-12)


# The evidence


def integrated(x, y, later, variance):
    """The density of the outputs, integrated over every weight beyond the first layer, one by one.

    `later` holds the shapes of those layers. With w = exp(u - exp(-u)) the integrand falls off doubly exponentially.
    """
    sizes = [rows * columns for rows, columns in later]
    u = np.arange(-3.8, 2.4, 0.08)
    w = np.exp(u - np.exp(-u))
    weight = 0.08 * 2 * w * (1 + np.exp(-u)) * np.exp(-w * w / 2) / np.sqrt(2 * np.pi)  # both signs
    grids = np.meshgrid(*[w] * sum(sizes), indexing="ij", sparse=True)
    weights = np.ones(())
    for part in np.meshgrid(*[weight] * sum(sizes), indexing="ij", sparse=True):
        weights = weights * part
    scale, at = 1.0, 0
    for (rows, columns), size in zip(later, sizes, strict=True):
        assert rows == 1  # a row vector: signs do not matter for its length
        scale = scale * sum(w**2 for w in grids[at : at + size]) * variance / columns
        at += size
    scale = scale * variance / x.shape[1]
    t = y @ np.linalg.solve(x @ x.T, y)
    normal = np.exp(-t / (2 * scale)) / np.sqrt((2 * np.pi * scale) ** len(y) * np.linalg.det(x @ x.T))
    return np.sum(weights * normal)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("later", [[(1, 1)], [(1, 2)], [(1, 3)], [(1, 1), (1, 1)], [(1, 2), (1, 1)]])
def test_evidence_equals_numerical_integration(n, later):
    widths = [columns for _, columns in later]
    found = nk.theory.deep_linear_log_evidence(X[:n], Y[:n], widths, 1.3)
    assert np.exp(found) == pytest.approx(integrated(X[:n], Y[:n], later, 1.3), rel=1e-8)


def test_evidence_without_hidden_layers_is_gaussian():
    expected = scipy.stats.multivariate_normal(cov=1.7 / 3 * X @ X.T).logpdf(Y)
    assert nk.theory.deep_linear_log_evidence(X, Y, (), 1.7) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("widths", [(2,), (3, 2), (4, 2, 5)])
def test_evidence_equals_the_mean_density_over_drawn_networks(widths, draws=200_000):
    rng = np.random.default_rng(1)
    product = np.ones((draws, 1, 1))
    for n_out, n_in in itertools.pairwise((1, *reversed(widths))):
        product = product @ (rng.normal(size=(draws, n_out, n_in)) * np.sqrt(1.2 / n_in))
    scale = 1.2 / 4 * np.sum(product**2, axis=(1, 2))
    x, y = points(2, 4), np.array([0.5, -0.6])
    t = y @ np.linalg.solve(x @ x.T, y)
    density = np.exp(-t / (2 * scale)) / (2 * np.pi * scale * np.sqrt(np.linalg.det(x @ x.T)))
    found = np.exp(nk.theory.deep_linear_log_evidence(x, y, widths, 1.2))
    assert abs(density.mean() - found) < 4 * density.std() / np.sqrt(draws)


def test_evidence_is_a_density():
    x = points(1, 3)
    log_y = np.arange(-30, 6, 0.25)
    values = [nk.theory.deep_linear_log_evidence(x, [np.exp(u)], (5, 6), 1.1) for u in log_y]
    assert 2 * 0.25 * np.sum(np.exp(values + log_y)) == pytest.approx(1, abs=1e-10)


def test_rotations_leave_the_evidence_and_scales_move_it_as_a_density():
    x, y, turn = points(3, 5), points(3, 1, 2)[:, 0], np.linalg.qr(points(5, 5, 3))[0]
    first = nk.theory.deep_linear_log_evidence(x, y, (4, 9))
    assert nk.theory.deep_linear_log_evidence(x @ turn, y, (4, 9)) == pytest.approx(first, abs=1e-12)
    assert nk.theory.deep_linear_log_evidence(x, 3 * y, (4, 9), 9 ** (1 / 3)) == pytest.approx(
        first - 3 * np.log(3)
    )
    assert nk.theory.deep_linear_log_evidence(x, y, (9, 4)) == pytest.approx(
        first, abs=1e-12
    )  # order does not matter
    wide = nk.theory.deep_linear_log_evidence(x, y, (10**9,) * 3)
    assert wide == pytest.approx(nk.theory.deep_linear_log_evidence(x, y, ()), abs=1e-6)


def test_large_networks_are_finite_and_monotone():
    """Width takes away the effect of depth; a scale of the data far from the prior's makes them less probable."""
    x, y = points(500, 1000), points(500, 1, 1)[:, 0]
    data = deep_linear.interpolation(x, y)
    unit = deep_linear.Interpolant(
        data.theta / np.linalg.norm(data.theta) * 0.5**0.5, data.basis, data.log_det
    )
    evidence = deep_linear.log_evidence
    depths = [evidence(unit, (1000,) * n, 1.0) for n in (0, 1, 10, 50, 100)]
    assert np.isfinite(depths).all() and np.all(np.diff(depths) < 0)  # nu0 = 1: no need of depth
    widths = [evidence(unit, (n,) * 100, 1.0) for n in (50, 100, 300, 1000, 10_000)]
    assert np.isfinite(widths).all() and np.all(np.diff(widths) > 0)
    best = deep_linear.most_probable_var(data, (1000,) * 100)
    for side in (np.geomspace(best, 1e6, 8), np.geomspace(best, 1e-6, 8)):
        values = [evidence(data, (1000,) * 100, var) for var in side]
        assert np.isfinite(values).all() and np.all(np.diff(values) < 0)


def test_evidence_at_zero_is_infinite_unless_layers_are_wider_than_the_data():
    assert nk.theory.deep_linear_log_evidence(X, [0, 0], (2,)) == np.inf
    at_zero = nk.theory.deep_linear_log_evidence(X, [0, 0], (5, 6))
    assert at_zero == pytest.approx(nk.theory.deep_linear_log_evidence(X, 1e-9 * Y, (5, 6)), abs=1e-6)


# The posterior


@pytest.fixture(scope="module")
def law():
    return nk.theory.deep_linear_posterior(points(3, 6), points(3, 1, 4)[:, 0], (4, 2, 5), 1.3)


@pytest.mark.parametrize(
    "p, widths, nu0, var",
    [
        (1, (83,) * 113, 0.734, 1.057),  # one light parameter beside many heavy ones
        (1, (1,) * 20, 3.0, 1.0),
        (300, (7, 2000), 0.01, 0.3),
        (40, (10**6,) * 3, 1e6, 1.0),
        (20, (300,) * 500, 1e-9, 1.01),
    ],
)
def test_the_scale_has_the_mass_of_the_evidence(p, widths, nu0, var):
    """int p(S) (2 pi S)^(-P/2) exp(-t / 2S) dS by quadrature over ln S, without the function of P."""
    found = deep_linear_posterior.posterior_of(of_length(nu0, p), widths, var)
    mass = found.log_scale.log_mass - p / 2 * np.log(2 * np.pi)
    assert found.log_evidence == pytest.approx(mass, abs=1e-9, rel=1e-11)


def test_the_density_of_a_prediction_is_the_evidence_of_one_more_point(law):
    x, y, new, values = points(3, 6), points(3, 1, 4)[:, 0], points(2, 6, 7), np.array([0.3, -1.2])
    for i in range(2):
        longer = nk.theory.deep_linear_log_evidence(np.vstack([x, new[i]]), [*y, values[i]], (4, 2, 5), 1.3)
        assert law.log_density(new, values)[i] == pytest.approx(longer - law.log_evidence, abs=1e-11)


def test_quantiles_and_moments_agree_with_posterior_draws(law, size=100_000):
    new = points(2, 6, 7)
    theta = law.sample(size, jax.random.key(3))
    z, q = theta @ new.T, np.array([0.02, 0.3, 0.5, 0.9])
    below = np.mean(z[:, :, None] <= law.quantile(new, q), axis=0)
    assert np.all(np.abs(below - q) < 4 * np.sqrt(q * (1 - q) / size))
    for found, draws in ((law.mean(new), z), (law.std(new) ** 2, (z - law.mean(new)) ** 2)):
        assert np.all(np.abs(draws.mean(0) - found) < 4 * draws.std(0) / np.sqrt(size))
    perp = np.sum((theta - law.theta) ** 2, axis=1)
    assert abs(perp.mean() - law.perp_square) < 4 * perp.std() / np.sqrt(size)
    below = np.mean(np.sqrt(perp)[:, None] <= law.perp_length(q), axis=0)
    assert np.all(np.abs(below - q) < 4 * np.sqrt(q * (1 - q) / size))
    np.testing.assert_allclose(theta @ points(3, 6).T, np.tile(points(3, 1, 4)[:, 0], (size, 1)), atol=1e-9)


def test_quantiles_agree_with_weighted_networks(draws=400_000):
    """Prior networks, all later matrices drawn, weighted by how well they fit: the first layer is Gaussian."""
    x, y, new, widths = points(2, 4), np.array([0.5, -0.6]), points(1, 4, 5), (3, 2)
    rng = np.random.default_rng(2)
    product = np.ones((draws, 1, 1))
    for n_out, n_in in itertools.pairwise((1, *reversed(widths))):
        product = product @ (rng.normal(size=(draws, n_out, n_in)) / np.sqrt(n_in))
    scale = np.sum(product**2, axis=(1, 2)) / 4
    weight = np.exp(-y @ np.linalg.solve(x @ x.T, y) / (2 * scale)) / scale
    law = nk.theory.deep_linear_posterior(x, y, widths)
    theta = law.theta + np.sqrt(scale)[:, None] * (lambda xi: xi - xi @ law.basis @ law.basis.T)(
        rng.normal(size=(draws, 4))
    )
    for q in (0.1, 0.6, 0.95):
        below = (theta @ new[0] <= law.quantile(new, q)[0]) - q
        mean, error = np.mean(weight * below), np.std(weight * below) / np.sqrt(draws)
        assert abs(mean) < 4 * error


def test_moments_of_the_scale_are_ratios_of_meijer_functions(law):
    shapes = np.array([4, 2, 5]) / 2
    t, gain = law.theta @ law.theta, deep_linear.log_gain(6, (4, 2, 5), 1.3)

    def log_g(a):
        everything = np.array([a, *shapes])
        return log_gamma_product(np.log(t) - gain, everything).value + scipy.special.gammaln(everything).sum()

    for k in (-1.0, 0.5, 1.0):
        expected = k * np.log(t / 2) + log_g(1.5 - k) - log_g(1.5)
        assert np.log(law.log_scale.mean(lambda u, k=k: np.exp(k * u))) == pytest.approx(expected, abs=1e-11)


def test_points_that_span_everything_leave_nothing_open():
    law = nk.theory.deep_linear_posterior(points(3, 3), points(3, 1)[:, 0], (4,))
    new = points(2, 3, 5)
    np.testing.assert_array_equal(law.std(new), 0.0)
    np.testing.assert_array_equal(law.quantile(new, 0.99), law.mean(new))
    assert law.perp_square == law.perp_length(0.9) == 0


def test_nearly_dependent_points_are_told_from_dependent_ones():
    x = points(3, 5)
    x[2] = x[1] + 1e-11 * x[2]
    y = x @ np.arange(5.0)
    found = nk.theory.deep_linear_posterior(x, y, (4,))
    np.testing.assert_allclose(found.mean(x), y)
    expected = np.log(np.linalg.svd(x, compute_uv=False)).sum()
    assert deep_linear.interpolation(x, y).log_det == pytest.approx(2 * expected, rel=1e-6)
    x[2] = x[1]
    with pytest.raises(ValueError, match="rank 2, less than its 3 points"):
        nk.theory.deep_linear_posterior(x, y, (4,))


# Depth, prior variance, limits


def test_the_best_prior_variance_balances_data_and_scale():
    x, y, widths = points(4, 7), points(4, 1, 1)[:, 0], (3, 8)
    best = nk.theory.best_prior_var(x, y, widths)
    law = nk.theory.deep_linear_posterior(x, y, widths, best)
    assert law.log_scale.mean(lambda u: law.theta @ law.theta * np.exp(-u)) == pytest.approx(4, rel=1e-9)
    scanned = [
        nk.theory.deep_linear_log_evidence(x, y, widths, best * f) for f in (0.8, 0.99, 1.0, 1.01, 1.25)
    ]
    assert np.argmax(scanned) == 2


def of_length(nu0, p, n0=2):
    """An interpolant of p points in n0 * p dimensions with n_0 t / P = nu0."""
    theta = np.zeros(n0 * p)
    theta[0] = np.sqrt(nu0 / n0)
    return deep_linear.Interpolant(theta, np.eye(n0 * p)[:, :p], 0.0)


@pytest.mark.parametrize("nu0", [0.4, 2.5])
def test_the_posterior_tends_to_its_limit(nu0):
    """n_0 E[S] approaches the solution of the equation for many points like 1/P."""
    errors = []
    for p in (100, 400, 1600):
        law = deep_linear_posterior.posterior_of(of_length(nu0, p), (2 * p,) * 4, 1.0)
        errors.append(abs(2 * p * law.scale / nk.theory.limiting_scale(nu0, p, (2 * p,) * 4) - 1))
    assert errors[2] < errors[1] / 3 < errors[0] / 9 and errors[2] < 2e-3


def test_infinite_effective_depth_with_the_plain_prior_is_the_best_prior():
    nu0, p = 0.4, 200
    best = [
        2 * p * deep_linear_posterior.posterior_of(of_length(nu0, p), widths, var).scale
        for widths in ((), (1000,), (1000,) * 20)
        for var in [deep_linear.most_probable_var(of_length(nu0, p), widths)]
    ]
    np.testing.assert_allclose(best, nu0, rtol=0.02)  # of order 1/P
    plain = [
        2 * p * deep_linear_posterior.posterior_of(of_length(nu0, p), (2000,) * depth, 1.0).scale
        for depth in (0, 5, 20, 100, 1000)  # effective depth 0, 0.5, 2, 10, 100
    ]
    distance = np.abs(np.array(plain) - nu0)
    assert np.all(np.diff(distance) < 0) and distance[0] == pytest.approx(0.6) and distance[-1] < 0.02
    limit = nk.theory.limiting_scale(nu0, p, (10**6,) * 50_000)  # lambda = 10
    assert limit == pytest.approx(np.exp(10 * (nu0 / limit - 1)), rel=1e-3)


def test_the_table_names_the_most_probable_model():
    x, y = points(10, 20), 2.0 * points(10, 1, 1)[:, 0]
    table = nk.theory.deep_linear_table(x, y, depths=(0, 1, 4), widths=(10, 100), prior_vars=(1.0, None))
    assert len(table.rows) == 10 and table.probabilities.sum() == pytest.approx(1)
    first = table.rows[0]
    assert first.log_evidence == max(row.log_evidence for row in table.rows) and first.best
    for row in table.rows:
        expected = nk.theory.deep_linear_log_evidence(x, y, (row.width,) * row.depth, row.prior_var)
        assert row.log_evidence == pytest.approx(expected)
        assert row.effective_depth == nk.theory.effective_depth(10, (row.width,) * row.depth)
    text = str(table).splitlines()
    assert len(text) == 12 and text[0].split()[0] == "depth" and text[1].split()[-1] != "0.0000"


# Products of Gaussian matrices


@pytest.mark.parametrize("sizes", [(3, 4, 2), (10, 20, 15, 12)])
def test_lengths_of_drawn_products_follow_the_law(sizes, draws=20_000):
    rng = np.random.default_rng(0)
    product = np.ones((draws, 1, 1))
    for n_out, n_in in itertools.pairwise((1, *reversed(sizes))):
        product = product @ (rng.normal(size=(draws, n_out, n_in)) * np.sqrt(1.2 / n_in))
    log = np.log(np.sum(product**2, axis=(1, 2)))
    law = nk.theory.gaussian_product(sizes, 1.2)
    assert abs(log.mean() - law.log_mean) < 4 * log.std() / np.sqrt(draws)
    squares = (log - law.log_mean) ** 2
    assert abs(squares.mean() - law.log_var) < 4 * squares.std() / np.sqrt(draws)
    assert scipy.stats.kstest(log, law.cdf).pvalue > 1e-4
    assert scipy.stats.kstest(np.log(law.sample(draws, jax.random.key(0))), law.cdf).pvalue > 1e-4
    first, norm = product[:, 0, 0], np.exp(log / 2)  # the first coordinate of a uniform direction
    assert (
        scipy.stats.kstest((first / norm) ** 2, scipy.stats.beta(0.5, (sizes[0] - 1) / 2).cdf).pvalue > 1e-4
    )


def test_the_law_of_a_product_is_consistent():
    law = nk.theory.gaussian_product((5, 7, 3), 1.1)
    grid = np.linspace(-30, 8, 1501)
    density, step = law.pdf(grid), grid[1] - grid[0]
    for k in (-1.0, 0.0, 1.0, 2.0):
        assert law.moment(k) == pytest.approx(step * np.sum(density * np.exp(k * grid)), rel=1e-6)
    assert law.moment(1) == pytest.approx(1.1**3)
    cumulated = scipy.integrate.cumulative_simpson(density, x=grid, initial=0)
    np.testing.assert_allclose(law.cdf(grid), cumulated, atol=1e-7)


def test_limits_of_depth_and_width_do_not_commute():
    def median_below(depth, width, level):
        return float(nk.theory.gaussian_product((width,) * (depth + 1)).cdf(level))

    assert median_below(10, 10**7, np.log(0.99)) < 1e-6 and median_below(10, 10**7, np.log(1.01)) > 1 - 1e-6
    assert median_below(10_000, 10, np.log(1e-6)) > 1 - 1e-6
    for n in (50, 500):  # at fixed depth / width a log-normal law, to order 1/n
        law = nk.theory.gaussian_product((n,) * n)
        mean, variance = law.normal
        assert (mean, variance) == pytest.approx((-1.0, 2.0))
        levels = np.linspace(-5, 3, 17)
        normal = scipy.stats.norm(mean, np.sqrt(variance)).cdf(levels)
        assert np.abs(law.cdf(levels) - normal).max() < 1 / n


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: nk.theory.deep_linear_log_evidence(points(4, 3), np.ones(4), ()),
            ValueError,
            "must not have more points than features, .*got \\(4, 3\\)",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(np.ones((2, 3)), [1.0, 2.0], (4,)),
            ValueError,
            "`x` has rank 1, less than its 2 points",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, Y, (4, 0)),
            ValueError,
            "`widths` must be at least 1; got 0",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, Y, (4.5,)),
            TypeError,
            "`widths` must be an integer; got 4.5",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, Y, None),
            TypeError,
            "`widths` must be a tuple.* got None",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, Y, 4),
            TypeError,
            r"`widths` must be a tuple.* write \(4,\)",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, Y, (4,), -1.0),
            ValueError,
            "`prior_var` must be greater than 0",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, [1.0], (4,)),
            ValueError,
            "`x` and `y` must have the same number of rows; got 2",
        ),
        (
            lambda: nk.theory.deep_linear_log_evidence(X, np.ones((2, 2)), ()),
            ValueError,
            "`y` has 2 outputs per row",
        ),
        (
            lambda: nk.theory.best_prior_var(X, [0, 0], (4,)),
            ValueError,
            "`y` must not be 0: the evidence grows",
        ),
        (lambda: nk.theory.deep_linear_table(X, [0, 0], (1,), (4,)), ValueError, "`y` must not be 0"),
        (
            lambda: nk.theory.deep_linear_table(X, Y, (), (4,)),
            ValueError,
            "must each hold at least one value",
        ),
        (
            lambda: nk.theory.deep_linear_posterior(X, Y, (4,)).quantile(X, 1.0),
            ValueError,
            "`q` must be a number or a vector",
        ),
        (
            lambda: nk.theory.deep_linear_posterior(X, Y, (4,)).log_density(X, Y),
            ValueError,
            "rows in the span of the data",
        ),
        (lambda: nk.theory.gaussian_product(()), ValueError, "`sizes` must not be empty"),
        (
            lambda: nk.theory.gaussian_product((4, 3)).moment(1e3),
            ValueError,
            "`k` is too large: the result overflows",
        ),
        (lambda: nk.theory.gaussian_product((4, 3)).moment(-2), ValueError, "`k` must be greater than -1.5"),
    ],
)
def test_bad_input_gets_one_clear_line(call, error, message):
    with pytest.raises(error, match=message):
        call()
