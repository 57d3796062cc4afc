"""What a kernel makes: eigenpairs, a Hilbert space, Gaussian and determinantal processes; and what positive means."""

from itertools import combinations
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import hermite

import nearkernel as nk
from support import helpers

k = nk.kernels
X = helpers.points(9, 3)
NEW = helpers.points(5, 3, seed=1)
FINITE = {
    "linear": k.Linear(),
    "polynomial": k.Polynomial(3, 0.7),
    "given": k.FeatureKernel(lambda x: jnp.stack([x[:, 0], jnp.sin(x[:, 1]), x[:, 2] ** 2], axis=1)),
    "random": k.RandomFeatures(3, 6, jax.random.key(0), "relu"),
    "sum": k.Linear() + k.Polynomial(2, 0.0),
    "product": k.Linear() * k.Polynomial(2, 1.0),
    "multiple": 0.3 * k.Polynomial(2, 1.0),
    "mercer": nk.theory.mercer(k.RBF(1.5), X),
}


def wiener(x1, x2):
    """The covariance min(s, t) of Brownian motion, as a plain function."""
    return np.minimum(x1, x2.T)


def of_matrix(matrix):
    """A kernel on the points 0, 1, ..., (n, 1)."""
    return lambda x1, x2: matrix[np.ix_(x1[:, 0].astype(int), x2[:, 0].astype(int))]


def numbered(n):
    return np.arange(n)[:, None]


# Mercer


def test_eigenpairs_of_a_gaussian_kernel_on_a_gaussian_measure():
    """lambda_i = sqrt(2a/A) B^i, phi_i ~ exp(-(c - a) x^2) H_i(sqrt(2c) x)."""
    length, sigma = 0.8, 1.3
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    found = nk.theory.mercer(k.RBF(length), sigma * nodes[:, None], weights / weights.sum(), rank=8)
    a, b = 1 / (4 * sigma**2), 1 / (2 * length**2)
    c = np.sqrt(a**2 + 2 * a * b)
    total, i = a + b + c, np.arange(8)
    np.testing.assert_allclose(found.values, np.sqrt(2 * a / total) * (b / total) ** i, rtol=1e-9)
    x = np.linspace(-2.5, 2.5, 7)
    expected = np.exp(-(c - a) * x[:, None] ** 2) * hermite.hermval(np.sqrt(2 * c) * x, np.eye(8)).T
    expected *= (c / a) ** 0.25 / np.sqrt([2.0**j * factorial(j) for j in range(8)])
    functions = found.functions(x[:, None])
    np.testing.assert_allclose(
        functions * np.sign(functions[-1]), expected * np.sign(expected[-1]), atol=1e-7
    )


def test_eigenpairs_of_brownian_motion_by_a_plain_function():
    """lambda = 1/((i - 1/2) pi)^2, phi = sqrt(2) sin((i - 1/2) pi t), to the error of 400 midpoints."""
    t = (np.arange(400) + 0.5) / 400
    found = nk.theory.mercer(wiener, t[:, None], rank=4)
    frequency = (np.arange(4) + 0.5) * np.pi
    np.testing.assert_allclose(found.values, frequency**-2.0, rtol=1e-4)
    new = np.array([[0.1], [0.55], [1.0]])
    functions, expected = found.functions(new), np.sqrt(2) * np.sin(frequency * new)
    np.testing.assert_allclose(functions * np.sign(functions[0] * expected[0]), expected, atol=1e-3)


def test_pairs_solve_the_integral_equation_and_are_orthonormal():
    weights = np.random.default_rng(0).uniform(0.1, 1.0, 9)
    found = nk.theory.mercer(k.Laplace(1.2), X, weights)
    inside = found.functions(X)
    np.testing.assert_allclose(inside.T * weights @ inside, np.eye(9), atol=1e-12)
    integral = k.Laplace(1.2)(NEW, X) * weights @ inside
    np.testing.assert_allclose(integral, found.functions(NEW) * found.values, atol=1e-12)
    assert np.all(np.diff(found.values) <= 0) and found.values.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(found(X), k.Laplace(1.2)(X), atol=1e-12)


def test_a_kernel_of_finite_rank_is_its_mercer_sum_everywhere():
    kernel, x = k.Polynomial(2, 1.0), helpers.points(25, 3)
    found = nk.theory.mercer(kernel, x)
    assert len(found.values) == 10  # monomials of three variables up to degree two
    np.testing.assert_allclose(found(NEW), kernel(NEW), rtol=1e-9)
    np.testing.assert_allclose(found(NEW, x), kernel(NEW, x), atol=1e-9)
    np.testing.assert_allclose(found.diag(NEW), np.diagonal(kernel(NEW)), rtol=1e-9)


def test_truncation_keeps_the_largest_and_the_nystrom_kernel_is_a_kernel():
    whole, few = nk.theory.mercer(k.RBF(2.0), X), nk.theory.mercer(k.RBF(2.0), X, rank=4)
    np.testing.assert_allclose(few.values, whole.values[:4], rtol=1e-10)
    np.testing.assert_allclose(few.features(NEW) @ few.features(X).T, few(NEW, X), atol=1e-12)
    missing = np.linalg.norm(k.RBF(2.0)(X) - few(X), 2)
    assert missing == pytest.approx(9 * whole.values[4], rel=1e-8)
    y = np.sin(X[:, 0])
    found = nk.solve(few + 0.1 * k.Linear(), X, y, nk.Ridge(0.1)).predict(NEW).mean
    matrix = few(X) + 0.1 * X @ X.T + 0.1 * np.eye(9)
    np.testing.assert_allclose(
        found, (few(NEW, X) + 0.1 * NEW @ X.T) @ np.linalg.solve(matrix, y), atol=1e-10
    )
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(lambda x: few(x))(NEW), few(NEW), atol=1e-12)


# The Hilbert space


@pytest.mark.parametrize("kernel", [k.RBF(1.3), FINITE["polynomial"], FINITE["sum"]])
def test_sections_reproduce(kernel):
    rng = np.random.default_rng(0)
    f = nk.theory.RKHSFunction(kernel, X, rng.normal(size=9))
    sections = [nk.theory.RKHSFunction(kernel, NEW[[i]], [1.0]) for i in range(5)]
    np.testing.assert_allclose([f.inner(section) for section in sections], f(NEW), rtol=1e-12)
    assert sections[0].inner(sections[3]) == pytest.approx(kernel(NEW)[0, 3])
    np.testing.assert_allclose([section.norm() ** 2 for section in sections], kernel.diag(NEW), rtol=1e-12)
    assert np.all(np.abs(f(NEW)) <= f.norm() * np.sqrt(kernel.diag(NEW)))


def test_the_space_is_a_vector_space_with_an_inner_product():
    rng = np.random.default_rng(1)
    f, g = (
        nk.theory.RKHSFunction(k.RBF(), X, rng.normal(size=9)),
        nk.theory.RKHSFunction(k.RBF(), NEW, rng.normal(size=5)),
    )
    h = 2.0 * f - g * 0.5
    np.testing.assert_allclose(h(NEW), 2 * f(NEW) - 0.5 * g(NEW), rtol=1e-12)
    assert f.inner(g) == pytest.approx(g.inner(f))
    assert h.norm() ** 2 == pytest.approx(4 * f.norm() ** 2 + 0.25 * g.norm() ** 2 - 2 * f.inner(g))
    assert (f + g).norm() ** 2 + (f - g).norm() ** 2 == pytest.approx(2 * f.norm() ** 2 + 2 * g.norm() ** 2)
    assert (f - f).norm() < 1e-6


def test_the_norm_of_brownian_motion_is_the_energy_of_the_derivative():
    """|f|^2 = int f'(t)^2 dt, here of a polygon through given points."""
    t, y = np.array([0.2, 0.5, 0.6, 0.9]), np.array([1.0, -0.5, 0.3, 0.1])
    energy = np.sum(np.diff(y, prepend=0.0) ** 2 / np.diff(t, prepend=0.0))
    f = nk.theory.representer(wiener, t[:, None], y)
    assert f.norm() ** 2 == pytest.approx(energy)
    np.testing.assert_allclose(f([[0.1], [0.55], [1.0]]), [0.5, -0.1, 0.1], atol=1e-12)


@pytest.mark.parametrize("name", FINITE)
def test_representer_form_is_feature_form(name):
    kernel = FINITE[name]
    phi, phi_new = nk.theory.feature_map(kernel, X), nk.theory.feature_map(kernel, NEW)
    np.testing.assert_allclose(phi @ phi.T, kernel(X), atol=1e-10 * np.abs(kernel(X)).max())
    f = nk.theory.RKHSFunction(kernel, X, np.random.default_rng(2).normal(size=9))
    np.testing.assert_allclose(phi_new @ f.weights(), f(NEW), rtol=1e-8)
    assert np.linalg.norm(f.weights()) == pytest.approx(f.norm(), rel=1e-8)
    y = np.cos(X[:, 0])
    ridge = np.linalg.solve(phi.T @ phi + 0.3 * np.eye(phi.shape[1]), phi.T @ y)
    np.testing.assert_allclose(nk.theory.representer(kernel, X, y, 0.3).weights(), ridge, atol=1e-9)


def test_the_interpolant_has_the_least_norm():
    y = np.sin(2 * X[:, 0])
    f = nk.theory.representer(k.Laplace(2.0), X, y)
    np.testing.assert_allclose(f(X), y, atol=1e-10)
    other = nk.theory.RKHSFunction(k.Laplace(2.0), NEW, np.ones(5))
    vanishing = other - nk.theory.representer(k.Laplace(2.0), X, other(X))  # zero on the data
    assert abs(f.inner(vanishing)) < 1e-9 and (f + vanishing).norm() > f.norm()
    np.testing.assert_allclose(
        nk.solve(k.Laplace(2.0), X, y, nk.Ridge(0)).predict(NEW).mean, f(NEW), atol=1e-9
    )
    few = nk.theory.representer(k.Linear(), X, y)  # no linear function interpolates: least squares
    np.testing.assert_allclose(few.weights(), np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9)


# Processes


def test_gaussian_processes_have_the_covariance():
    size = 4000
    drawn = nk.theory.gp_samples(k.RBF(1.4), X, size, jax.random.key(0))
    products = drawn[:, :, None] * drawn[:, None, :]
    error = products.std(axis=0, ddof=1) / np.sqrt(size)
    assert np.all(np.abs(products.mean(axis=0) - k.RBF(1.4)(X)) < 4 * error)
    assert np.all(np.abs(drawn.mean(axis=0)) < 4 / np.sqrt(size))
    linear = nk.theory.gp_samples(k.Linear(), X, 6, jax.random.key(1))  # of rank three on nine points
    assert np.linalg.matrix_rank(linear, tol=1e-8) == 3
    assert np.linalg.matrix_rank(np.column_stack([X, linear.T]), tol=1e-8) == 3
    np.testing.assert_array_equal(drawn[:2], nk.theory.gp_samples(k.RBF(1.4), X, size, jax.random.key(0))[:2])


def subsets(n):
    return [list(s) for size in range(n + 1) for s in combinations(range(n), size)]


@pytest.mark.parametrize("size", [None, 1, 3])
def test_determinantal_samples_follow_the_determinants(size):
    """All subsets of five points, 1000 samples, 4 standard errors."""
    x, kernel, draws = helpers.points(5, 2, seed=3), 2.0 * k.RBF(1.5), 1000
    process, matrix = nk.theory.DPP(kernel, x), kernel(x)
    sets = [s for s in subsets(5) if size is None or len(s) == size]
    weights = np.array([np.linalg.det(matrix[np.ix_(s, s)]) for s in sets])
    expected = weights / weights.sum()
    if size is None:
        assert weights.sum() == pytest.approx(np.linalg.det(np.eye(5) + matrix))
    np.testing.assert_allclose([np.exp(process.log_probability(s, size)) for s in sets], expected, atol=1e-9)
    found = [tuple(process.sample(jax.random.key(i), size)) for i in range(draws)]
    counts = np.array([found.count(tuple(s)) for s in sets]) / draws
    assert counts.sum() == pytest.approx(1.0)
    assert np.all(np.abs(counts - expected) <= 4 * np.sqrt(expected * (1 - expected) / draws) + 1e-3)
    if size is None:
        inside = [sum(p for s, p in zip(sets, expected, strict=True) if i in s) for i in range(5)]
        np.testing.assert_allclose(process.inclusion(), inside, rtol=1e-9)
        assert process.expected_size() == pytest.approx(np.sum(inside))


@pytest.mark.parametrize("kernel", [k.RBF(0.4), k.Laplace(0.4), k.Linear()])
def test_the_spectrum_is_that_of_the_matrix_however_few_features_there_are(kernel):
    """Forty points: the rank of a smooth kernel is found first, that of a rough one is full."""
    x = np.random.default_rng(5).uniform(size=(40, 2))
    process, matrix = nk.theory.DPP(kernel, x), kernel(x)
    rank = len(process.values)
    assert rank == np.sum(
        np.linalg.eigvalsh(matrix) > 40 * np.finfo(float).eps * np.linalg.eigvalsh(matrix)[-1]
    )
    np.testing.assert_allclose(process.vectors.T @ process.vectors, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose((process.vectors * process.values) @ process.vectors.T, matrix, atol=1e-11)


def test_determinantal_samples_of_many_points_repel():
    x = np.random.default_rng(4).uniform(size=(300, 2))
    process = nk.theory.DPP(k.RBF(0.15), x)
    nearest = []
    for seed in range(20):
        chosen = process.sample(jax.random.key(seed), 30)
        assert len(set(chosen)) == 30 and np.all(np.diff(chosen) > 0)
        by_chance = np.random.default_rng(seed).choice(300, 30, replace=False)
        gaps = [np.linalg.norm(x[s][:, None] - x[s], axis=2) + 9 * np.eye(30) for s in (chosen, by_chance)]
        nearest.append([gap.min(axis=1).mean() for gap in gaps])
    ratio = np.mean(nearest, axis=0)
    assert ratio[0] > 1.2 * ratio[1]
    projection = nk.theory.DPP(1e9 * k.Linear(), X)  # three large eigenvalues: always three points
    assert all(len(projection.sample(jax.random.key(i))) == 3 for i in range(20))
    assert projection.log_probability([0, 1], size=3) == -np.inf


# Positivity


def test_positive_kernels_are_found_positive():
    for kernel in (k.RBF(), k.Linear(), FINITE["polynomial"], wiener_of_norms):
        found = nk.theory.positivity(kernel, X)
        assert found.ok and len(found.points) == 0
        assert found.definite == (found.rank == len(X))
        kind = "definite" if found.definite else f"semidefinite, of rank {found.rank} < {len(X)},"
        assert str(found.status) == f"positive {kind} on these points."
    matrix = k.RBF()(X)
    assert nk.theory.positivity(k.RBF(), X).smallest == pytest.approx(np.linalg.eigvalsh(matrix)[0])


def test_a_singular_gram_matrix_is_not_definite():
    """Four vectors in three dimensions; an exact copy; and one that is neither."""
    for kernel, x, rank in (
        (k.Linear(), np.random.default_rng(0).normal(size=(4, 3)), 3),
        (k.RBF(), np.array([[0.0], [1.0], [1.0]]), 2),
        (k.RBF(), np.array([[0.0], [1.0], [2.0]]), 3),
    ):
        found = nk.theory.positivity(kernel, x)
        assert found.ok and found.rank == rank and found.definite == (rank == len(x))
    bad = nk.theory.positivity(of_matrix(np.diag([1.0, -1.0, 0.0])), numbered(3))
    assert not bad.ok and not bad.definite and bad.rank == 2


def wiener_of_norms(x1, x2):
    return np.minimum(np.linalg.norm(x1, axis=1)[:, None], np.linalg.norm(x2, axis=1))


@pytest.mark.parametrize("bad, entries", [([3, 17], [-1.4]), ([5, 6, 20], [-0.7] * 3), ([11], [])])
def test_the_points_that_break_it_are_named(bad, entries):
    """One number below -1 for a pair; three of -0.7 for a triple, every pair of which is fine; a negative square."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(24, 40))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    matrix = 0.3 * features @ features.T + 0.7 * np.eye(24)
    for (i, j), entry in zip(combinations(bad, 2), entries, strict=True):
        matrix[i, j] = matrix[j, i] = entry
    if len(bad) == 1:
        matrix[11, 11] = -0.1
    found = nk.theory.positivity(of_matrix(matrix), numbered(24))
    assert not found.ok and found.smallest == pytest.approx(np.linalg.eigvalsh(matrix)[0])
    np.testing.assert_array_equal(found.points, bad)
    part = matrix[np.ix_(bad, bad)]
    assert found.weights @ part @ found.weights == pytest.approx(found.value) and found.value < 0
    named = (
        "the point 11 alone has"
        if len(bad) == 1
        else f"the points {', '.join(map(str, bad))} ({len(bad)} in all)"
    )
    assert found.status == nk.StatusKind.not_positive and f"not positive: {named}" in found.status.message


@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_a_witness_can_be_left_out(seed):
    x = helpers.points(30, 2, seed)
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    matrix = np.exp(-(distance**4))  # not positive definite: its Fourier transform changes sign
    found = nk.theory.positivity(of_matrix(matrix), numbered(30))
    assert not found.ok and 3 <= len(found.points) < 30
    for size in range(1, len(found.points)):
        for part in combinations(found.points, size):
            assert np.linalg.eigvalsh(matrix[np.ix_(part, part)])[0] > -1e-9 * 30
        if size > 3:
            break
    for left_out in found.points:
        rest = found.points[found.points != left_out]
        assert np.linalg.eigvalsh(matrix[np.ix_(rest, rest)])[0] >= -1e-10 * np.abs(matrix).sum(axis=1).max()


def test_asymmetry_is_named():
    matrix = np.eye(6)
    matrix[1, 4] = 0.3
    found = nk.theory.positivity(of_matrix(matrix), numbered(6))
    assert not found.ok and list(found.points) == [1, 4]
    assert found.status == nk.StatusKind.not_symmetric
    assert str(found.status) == "not symmetric: k(x_1, x_4) and k(x_4, x_1) differ by 0.3."


def indefinite(x1, x2):
    return -k.RBF()(x1, x2)


F = nk.theory.RKHSFunction(k.RBF(), X, np.ones(9))
KEY = jax.random.key(0)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.mercer(indefinite, X),
            r"`kernel` is not positive: the point \d alone has the eigenvalue -1; see",
        ),
        (lambda: nk.theory.DPP(indefinite, X), "not positive: the point"),
        (lambda: nk.theory.gp_samples(indefinite, X, 3, KEY), "not positive: the point"),
        (lambda: nk.theory.representer(indefinite, X, X[:, 0]), "see nk.theory.positivity"),
        (lambda: nk.theory.RKHSFunction(indefinite, X, np.ones(9)).norm(), "not positive: the point"),
        (
            lambda: nk.theory.gp_samples(of_matrix(np.triu(np.ones((3, 3)))), numbered(3), 3, KEY),
            "not symmetric",
        ),
        (lambda: nk.theory.positivity("rbf", X), "`kernel` must be a kernel or a function k"),
        (
            lambda: nk.theory.positivity(lambda a, b: a, X),
            r"must return \(n1, n2\); for 9 and 9 points it returns \(9, 3\)",
        ),
        (lambda: nk.theory.positivity(k.RBF(), X, tolerance=-1.0), "`tolerance` must be at least 0"),
        (
            lambda: nk.theory.mercer(k.RBF(), X, weights=np.zeros(9)),
            r"`weights` must be \(9,\) positive numbers",
        ),
        (
            lambda: nk.theory.mercer(k.RBF(), X, rank=10),
            "`rank` must be at most the number of points, 9; got 10",
        ),
        (lambda: nk.theory.mercer(0.0 * k.RBF(), X), "`kernel` is zero on `x`"),
        (lambda: nk.theory.mercer(k.RBF(), X).functions(X[:, :2]), "`x` has 2 features per row; 3 expected"),
        (lambda: nk.theory.RKHSFunction(k.RBF(), X, np.ones(4)), r"`coefficients` must have shape \(9,\)"),
        (lambda: F.inner(nk.theory.RKHSFunction(k.RBF(2.0), X, np.ones(9))), "different kernels"),
        (lambda: F + nk.theory.RKHSFunction(k.RBF(), X[:, :2], np.ones(9)), "inputs of 3 and 2 features"),
        (lambda: F.inner(3.0), "`other` must be an RKHSFunction; got float"),
        (lambda: F.weights(), "`kernel` RBF has no finite feature map: nk.theory.mercer"),
        (lambda: nk.theory.representer(k.RBF(), X, np.ones((9, 2))), r"`y` must have shape \(9,\)"),
        (lambda: nk.theory.representer(k.RBF(), X, np.ones(9), -1.0), "`ridge` must be at least 0"),
        (lambda: nk.theory.gp_samples(k.RBF(), X, 0, KEY), "`size` must be at least 1"),
        (
            lambda: nk.theory.DPP(k.Linear(), X).sample(KEY, 4),
            "`size` must be at most 3, the rank of the kernel",
        ),
        (
            lambda: nk.theory.DPP(k.RBF(), X).log_probability([0, 0]),
            "`points` must be different indices from 0 to 8",
        ),
        (lambda: nk.theory.DPP(k.RBF(), X).log_probability([9]), "`points` must be different indices"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
