"""Densities, quantiles, draws and losses of outputs with four cumulants, against integrals and against networks."""

import itertools
import warnings

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

import nearkernel as nk
from nearkernel.forecasts.outputs.edgeworth import Edgeworth
from nearkernel.forecasts.outputs.expected_loss import expected_loss
from nearkernel.forecasts.outputs.joint_edgeworth import JointLaw
from support.references.joint_moments import moments

X, NEW = np.array([[0.9, -0.4], [-0.3, 1.1]]), np.array([[-0.8, -0.5], [1.0, 0.6]])
Y = np.array([0.8, -0.5])


def network(width, out=1):
    return nk.MLP(2, (width,), out, "gelu", weight_var=2.0, bias_var=0.2)


def law(width=200, new=NEW, y=Y, algorithm=None):
    out = np.ndim(y) - 1 and np.shape(y)[1]
    return nk.forecast(
        network(width, out or 1),
        X,
        y,
        algorithm or nk.GradientDescent(0.25, 12),
        new,
        theory=nk.FiniteWidth(),
    )


def quietly(function, *arguments):
    """Whether it warns has a test of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments)


def edgeworth(mean, std, skewness, kurtosis):
    return Edgeworth(*(np.array([value], dtype=float) for value in (mean, std, skewness, kurtosis)))


@pytest.mark.parametrize("skewness, kurtosis", [(0.0, 0.0), (0.3, 0.2), (-0.2, 0.6), (0.1, -0.3)])
def test_the_density_has_the_four_cumulants(skewness, kurtosis):
    found = edgeworth(0.7, 1.3, skewness, kurtosis)
    f, step = np.linspace(-15, 15, 6001, retstep=True)
    p = quietly(found.density, f) * step
    m = [np.sum(p * (f - 0.7) ** k) for k in range(5)]
    np.testing.assert_allclose(
        [m[0], m[1], m[2], m[3], m[4] - 3 * m[2] ** 2],
        [1, 0, 1.3**2, skewness * 1.3**3, kurtosis * 1.3**4],
        atol=1e-10,
    )
    middle = (f[1:] + f[:-1]) / 2
    np.testing.assert_allclose(np.diff(found.cdf(f)) / step, quietly(found.density, middle), atol=1e-5)
    assert found.cdf(np.array([-np.inf, np.inf])).tolist() == [0.0, 1.0]


def test_quantiles_undo_the_distribution_to_first_order():
    q = np.array([0.005, 0.05, 0.3, 0.5, 0.9, 0.995])
    gaps = []
    for size in (1.0, 0.5):
        found = edgeworth(-0.4, 0.8, 0.2 * size, 0.2 * size)
        gaps.append(np.abs(found.cdf(found.quantile(q)[:, 0]) - q).max())
    assert gaps[0] < 2e-3 and gaps[1] < 0.3 * gaps[0]  # second order in the cumulants
    gauss = edgeworth(-0.4, 0.8, 0.0, 0.0)
    np.testing.assert_allclose(gauss.quantile(q)[:, 0], scipy.stats.norm.ppf(q, -0.4, 0.8))


@pytest.mark.parametrize(
    "skewness, kurtosis", [(0.0, 0.5), (0.4, 0.1), (-0.4, 0.1), (0.2, -0.3), (0.0, -0.1), (0.0, 0.0)]
)
def test_ranges_end_where_density_and_slope_change_sign(skewness, kurtosis):
    found = edgeworth(0.0, 2.0, skewness, kurtosis)
    f = np.linspace(-30, 30, 60_001)
    x = f / 2
    bracket = 1 + skewness / 6 * (x**3 - 3 * x) + kurtosis / 24 * (x**4 - 6 * x**2 + 3)
    slope = 1 + skewness / 3 * x + kurtosis / 8 * (x**2 - 1)
    for sign, (low, high), there in (
        (bracket, found.positive, lambda f: f),
        (slope, found.increasing, lambda f: scipy.special.ndtr(f / 2)),
    ):
        bad = f[sign <= 0]
        for end, side in (
            (low[0], bad[bad < 0].max(initial=-np.inf)),
            (high[0], bad[bad > 0].min(initial=np.inf)),
        ):
            assert end == there(side) or abs(end - there(side)) < 2e-3


def test_where_the_series_fails_a_warning_says_so():
    found = edgeworth(0.0, 1.0, 0.5, 0.0)
    with pytest.warns(UserWarning, match=r"`density` is negative at 1 of 2 values: .* see `positive`"):
        found.density(np.array([-4.0, 4.0]))
    with pytest.warns(UserWarning, match=r"`q`: 1 of 2 quantiles .* not monotonic; .* see `increasing`"):
        found.quantile(np.array([1e-12, 0.5]))
    none = edgeworth(0.0, np.nan, 0.0, 0.0)  # a variance below 0: no law
    assert np.isnan(none.cdf(np.zeros(1))).all() and np.isnan(none.quantile(np.array([0.3]))).all()


def random_law(size, m=2, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(m, m))
    third, fourth = (size * rng.normal(size=(m,) * order) for order in (3, 4))
    third, fourth = (sum(map(k.transpose, itertools.permutations(range(k.ndim)))) for k in (third, fourth))
    return JointLaw(rng.normal(size=m), root @ root.T + np.eye(m), third, fourth)


def test_the_joint_density_has_the_four_cumulants():
    found = random_law(0.01)
    axis, step = np.linspace(-16, 16, 401, retstep=True)
    f = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    p = found.density(f) * step**2
    cov = found.root @ found.root.T
    for value, expected in zip(moments(f, p), (found.mean, cov, found.third, found.fourth), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-9)
    single = Edgeworth(
        found.mean, np.sqrt(np.diagonal(cov)), np.einsum("bbb->b", found.third) / np.diagonal(cov) ** 1.5,
        np.einsum("bbbb->b", found.fourth) / np.diagonal(cov) ** 2,
    )  # fmt: skip
    marginal = p.reshape(401, 401).sum(axis=0) / step  # over the second output
    np.testing.assert_allclose(marginal, quietly(single.density, axis[:, None])[:, 0], atol=1e-9)


def test_draws_have_the_four_cumulants_to_first_order():
    """The noise of a draw is a rule for Gaussian integrals here: no chance is left."""
    node, weight = np.polynomial.hermite_e.hermegauss(12)
    noise = np.array(list(itertools.product(node, node)))
    chance = np.array([a * b for a, b in itertools.product(weight, weight)]) / (2 * np.pi)
    gaps = []
    for size in (1e-3, 5e-4):
        found = random_law(size)
        expected = (found.mean, found.root @ found.root.T, found.third, found.fourth)
        values = moments(found.draws(noise), chance)
        gaps.append([np.abs(a - b).max() for a, b in zip(values, expected, strict=True)])
        assert gaps[-1][0] < 1e-13 and np.abs(values[3] - expected[3]).max() < 0.2 * np.abs(expected[3]).max()
    assert (np.array(gaps[1])[1:] < 0.27 * np.array(gaps[0])[1:]).all()  # squares of the cumulants are left


def test_the_covariance_of_losses_is_exact_for_any_law():
    rng = np.random.default_rng(4)
    values, chances = rng.normal(size=(30, 3)) ** 3 + rng.normal(size=3), rng.dirichlet(np.ones(30))
    y = rng.normal(size=3)
    mean, cov, third, fourth = moments(values, chances)
    zero = 0 * mean, 0 * cov
    found = expected_loss(
        (mean, zero[0]), (cov, zero[1]), np.einsum("bbc->bc", third), np.einsum("bbcc->bc", fourth), y
    )
    loss = (values - y) ** 2 / 2
    average = chances @ loss
    np.testing.assert_allclose(found.bias + found.variance, average)
    assert found.mean == pytest.approx(average.sum())
    np.testing.assert_allclose(found.cov, np.einsum("s,sb,sc->bc", chances, loss - average, loss - average))
    assert found.std == pytest.approx(np.sqrt(chances @ (loss - average).sum(axis=1) ** 2))


def test_methods_of_the_forecast():
    found = law()
    assert found.skewness.shape == (2,) and (found.kurtosis > 0.03).all()
    np.testing.assert_allclose(found.skewness, found.cumulants(3, diagonal=True) / found.std**3)
    q = np.array([[0.005, 0.5], [0.9, 0.995]])
    f = found.quantile(q)
    assert f.shape == (2, 2, 2) and found.quantile(0.5).shape == (2,)
    np.testing.assert_allclose(found.cdf(f), np.stack([q, q], axis=-1), atol=1e-4)
    assert found.density(f).shape == (2, 2, 2) and found.density(f, joint=True).shape == (2, 2)
    assert np.isneginf(found.positive[0]).all() and found.increasing[1].tolist() == [1.0, 1.0]
    draws = found.sample(20_000, jax.random.key(0))
    spread = np.cov(draws.T)
    np.testing.assert_allclose(spread, found.cov, atol=4 * found.cov.max() * np.sqrt(3 / 20_000))
    np.testing.assert_allclose(
        (draws < found.quantile(0.1)).mean(axis=0), 0.1, atol=4 * np.sqrt(0.09 / 20_000)
    )
    loss = found.expected_loss([0.3, -0.1])
    each = (found.terms[0] - [0.3, -0.1]) ** 2 / 2 + np.diagonal(found.cov_terms[0]) / 2
    assert loss.terms[0] == pytest.approx(each.sum()) and loss.mean == pytest.approx(
        (loss.bias + loss.variance).sum()
    )
    drawn = ((draws - [0.3, -0.1]) ** 2 / 2).sum(axis=1)
    assert abs(drawn.mean() - loss.mean) < 4 * loss.std / np.sqrt(20_000) + 2e-3 * loss.mean
    assert drawn.std() == pytest.approx(loss.std, rel=0.06)


def test_two_outputs():
    found = law(new=NEW[:1], y=np.stack([Y, Y[::-1]], axis=1))
    assert found.mean.shape == (1, 2) and found.quantile([0.1, 0.2]).shape == (2, 1, 2)
    assert found.sample(3, 0).shape == (3, 1, 2) and found.density(found.mean[None], joint=True).shape == (1,)
    loss = found.expected_loss(found.mean)
    assert loss.cov.shape == (1, 2, 1, 2) and loss.bias.shape == (1, 2)
    np.testing.assert_allclose(loss.variance * 2, np.einsum("bibi->bi", found.cov))


def test_outputs_that_training_fixes():
    found = law(new=np.vstack([NEW[:1], X[:1]]), algorithm=nk.GradientDescent(0.25))
    np.testing.assert_allclose(found.quantile(0.01)[1], Y[0], atol=1e-10)
    assert found.skewness[1] == found.kurtosis[1] == 0.0
    assert found.cdf(found.mean).tolist()[1] == 1.0 and found.cdf(found.mean - 0.1).tolist()[1] == 0.0
    assert found.density(found.mean + 0.1)[1] == 0.0 and np.isinf(found.density(found.mean)[1])
    np.testing.assert_allclose(found.sample(5, 0)[:, 1], Y[0], atol=1e-6)
    with pytest.raises(ValueError, match="`joint=True` needs outputs that vary"):
        found.density(found.mean, joint=True)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda p: p.density(np.zeros(3)),
            r"`f` must have shape \(\.\.\., 2\), or one that broadcasts to it; got \(3,\)",
        ),
        (lambda p: p.quantile([0.5, 1.0]), "`q` must be between 0 and 1; got values from 0.5 to 1"),
        (lambda p: p.expected_loss([1.0]), r"`y_new` must have the shape of `mean`, \(2,\); got \(1,\)"),
        (lambda p: p.cumulants(3, diagonal="yes"), "`diagonal` must be True or False"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(law())


def test_networks_that_diverge_have_no_law():
    found = law(algorithm=nk.GradientDescent(9.0))
    for call in (lambda: found.quantile(0.5), lambda: found.sample(2, 0), lambda: found.skewness):
        with pytest.raises(ValueError, match=r"training diverges, so .* see `status`"):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("width", [24, 48])
def test_outer_quantiles_of_trained_networks(width):
    """Closer than those of a Gaussian with the mean and variance of order 1/width."""
    net, descent, size = network(width), nk.GradientDescent(0.25, 40), 60_000
    found = quietly(law, width, NEW, Y, descent)
    q = np.array([0.005, 0.995])
    gauss = found.mean + found.std * scipy.special.ndtri(q)[:, None]
    limits = np.stack([found.quantile(q), gauss])

    def below(params):
        end = nk.simulate(net, params, X, Y, descent, nk.Record(every=40))
        return (net(end.params, NEW)[:, 0] < limits).astype(float)

    share = nk.measure(below, net, size, jax.random.key(width))
    away = np.abs(share.mean - q[:, None])
    assert (away[0] < away[1]).all(), (share.mean, share.sem)
    assert (away[1] > 3 * share.sem[1]).all()
    assert (away[0] < 4 * share.sem[0] + 0.3 * np.minimum(q, 1 - q)[:, None]).all()
