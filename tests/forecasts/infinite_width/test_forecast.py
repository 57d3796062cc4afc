"""`forecast` and `posterior`: formulas against each other, against ODEs and against scikit-learn."""

import jax
import numpy as np
import pytest
import scipy.integrate

import nearkernel as nk

RNG = np.random.default_rng(21)
X, Y, NEW = RNG.normal(size=(11, 5)), RNG.normal(size=(11, 2)), RNG.normal(size=(6, 5))
NET = nk.MLP(5, (8, 8), 2, "gelu", weight_var=1.7, bias_var=0.3)
NNGP, NTK = nk.kernels.NNGP(NET), nk.kernels.NTK(NET)


def by_formula(response):
    """Mean and covariance from R: K_BB - R K_AB - K_BA R^T + R K_AA R^T."""
    cross = response @ NNGP(X, NEW)
    return response @ Y, NNGP(NEW) - cross - cross.T + response @ NNGP(X) @ response.T


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.GradientFlow(),
        nk.GradientFlow(0.4),
        nk.GradientDescent(0.01, 30),
        nk.Ridge(0.5),
        nk.GradientFlow(1.1, friction=2.0),
    ],
)
def test_forecast_is_the_covariance_formula(algorithm):
    lam, vectors = np.linalg.eigh(NTK(X))
    mean, cov = by_formula(NTK(NEW, X) @ (vectors * algorithm.filter(lam)) @ vectors.T)
    found = nk.forecast(NET, X, Y, algorithm, NEW)
    np.testing.assert_allclose(found.mean, mean, atol=1e-10)
    np.testing.assert_allclose(found.cov, cov, atol=1e-10)
    np.testing.assert_allclose(found.std, np.sqrt(np.diagonal(cov)), atol=1e-9)
    assert found.ok and found.terms[0] is found.mean


def test_the_covariance_solves_the_equation_of_motion():
    """d cov/dt of all outputs under z' = -Theta_{.A} (z_A - y), integrated from the NNGP covariance."""
    both = np.vstack([X, NEW])
    theta, start = NTK(both), NNGP(both)
    pull = np.zeros_like(theta)
    pull[:, : len(X)] = theta[:, : len(X)]

    def field(t, c):
        c = c.reshape(start.shape)
        return (-(pull @ c) - (pull @ c).T).ravel()

    time = 0.3
    found = scipy.integrate.solve_ivp(
        field, (0, time), start.ravel(), rtol=1e-11, atol=1e-13, method="DOP853"
    )
    expected = found.y[:, -1].reshape(start.shape)[len(X) :, len(X) :]
    np.testing.assert_allclose(nk.forecast(NET, X, Y, nk.GradientFlow(time), NEW).cov, expected, atol=1e-9)


def test_one_factor_serves_times_and_inputs():
    first = nk.forecast(NET, X, Y[:, 0], nk.GradientFlow(), NEW)
    for time in (0.0, 0.2, np.inf):
        fresh = nk.forecast(NET, X, Y[:, 0], nk.GradientFlow(time), NEW)
        np.testing.assert_allclose(first.at(time).mean, fresh.mean, atol=1e-9)
        np.testing.assert_allclose(first.at(time).cov, fresh.cov, atol=1e-9)
    other = nk.forecast(NET, X, Y[:, 0], nk.GradientFlow(), X[:3])
    np.testing.assert_allclose(first.predict(X[:3]).mean, other.mean, atol=1e-12)
    np.testing.assert_allclose(first.at(0.0).cov, NNGP(NEW), atol=1e-10)
    np.testing.assert_allclose(other.mean, Y[:3, 0], atol=1e-9)  # the training set itself
    np.testing.assert_allclose(other.std, 0.0, atol=1e-6)


def test_training_the_last_layer_ends_in_the_nngp_posterior():
    last = nk.forecast((NNGP, NNGP), X, Y, nk.GradientFlow(), NEW)
    exact = nk.posterior(NNGP, X, Y, NEW)
    np.testing.assert_allclose(last.mean, exact.mean, atol=1e-9)
    np.testing.assert_allclose(last.cov, exact.cov, atol=1e-9)


def test_repeated_rows_are_forecast_by_the_pseudo_inverse():
    x, y = np.vstack([X, X[:2]]), np.vstack([Y, Y[:2]])
    twice = nk.forecast(NET, x, y, nk.GradientFlow(), NEW)
    assert "rank 11 < 13" in twice.status.message
    once = nk.forecast(NET, X, Y, nk.GradientFlow(), NEW)
    np.testing.assert_allclose(twice.mean, once.mean, atol=1e-7)
    np.testing.assert_allclose(twice.cov, once.cov, atol=1e-7)


def test_a_pair_of_kernels_is_forecast_as_the_network_is():
    for algorithm in (nk.GradientFlow(), nk.GradientFlow(0.3), nk.Ridge(0.2)):
        net, pair = (nk.forecast(p, X, Y, algorithm, NEW) for p in (NET, (NNGP, NTK)))
        np.testing.assert_allclose(pair.mean, net.mean, atol=1e-11)
        np.testing.assert_allclose(pair.cov, net.cov, atol=1e-11)
        np.testing.assert_allclose(nk.forecast((NNGP, NTK), X, Y, algorithm, NEW).std, net.std, atol=1e-8)


def features(x):
    return jax.numpy.concatenate([x, jax.numpy.sin(2 * x[:, :2])], axis=1)


@pytest.mark.parametrize("rows", [5, 11])  # fewer points than features, and more
def test_features_with_gaussian_weights_are_forecast_as_drawn_ones_train(rows):
    model, size, algorithm = (
        nk.FeatureModel(features, 2, 5, weight_var=0.6),
        4000,
        nk.GradientDescent(0.03, 25),
    )
    x, y = X[:rows], Y[:rows]
    found = nk.forecast(model, x, y, algorithm, NEW)
    phi, new = (np.asarray(features(a)) for a in (x, NEW))
    weights = np.stack([np.asarray(model.init(seed)) for seed in range(3)])
    assert weights.shape == (3, 2, 7) and weights.std() > 0.3
    weights = np.sqrt(0.6) * np.random.default_rng(3).normal(size=(size, 2, 7))
    for _ in range(25):
        weights = weights - 0.03 * np.einsum("sof,nf,ng->sog", weights, phi, phi) + 0.03 * (y.T @ phi)
    z = np.einsum("sof,mf->smo", weights, new)
    assert (np.abs(z.mean(axis=0) - found.mean) <= 4 * found.std[:, None] / np.sqrt(size)).all()
    scale = np.sqrt((np.outer(found.variance, found.variance) + found.cov**2) / size)
    for output in range(2):
        assert (np.abs(np.cov(z[:, :, output].T) - found.cov) <= 4.5 * scale).all()
    frozen = nk.forecast(nk.FeatureModel(features, 2, 5), x, y, algorithm, NEW)
    np.testing.assert_allclose(frozen.mean, found.mean, atol=1e-12)
    np.testing.assert_allclose(frozen.cov, 0.0, atol=1e-12)


def test_a_rate_beyond_the_limit_is_a_status():
    lam = np.linalg.eigvalsh(NTK(X))[-1]
    found = nk.forecast(NET, X, Y, nk.GradientDescent(2.5 / lam), NEW)
    assert not found.ok and "2/lambda_max" in found.status.message and not np.isnan(found.mean).any()


def test_posterior_and_evidence_are_scikit_learns():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    rival = GaussianProcessRegressor(RBF(1.7), alpha=0.05, optimizer=None).fit(X, Y[:, 0])
    mean, cov = rival.predict(NEW, return_cov=True)
    found = nk.posterior(nk.kernels.RBF(1.7), X, Y[:, 0], NEW, noise=0.05)
    np.testing.assert_allclose(found.mean, mean, atol=1e-11)
    np.testing.assert_allclose(found.cov, cov, atol=1e-11)
    assert found.log_marginal_likelihood == pytest.approx(rival.log_marginal_likelihood_value_, abs=1e-9)
    two = nk.posterior(nk.kernels.RBF(1.7), X, Y, NEW, noise=0.05)
    alone = nk.posterior(nk.kernels.RBF(1.7), X, Y[:, 1], NEW, noise=0.05)
    assert two.log_marginal_likelihood == pytest.approx(
        found.log_marginal_likelihood + alone.log_marginal_likelihood, abs=1e-9
    )
    np.testing.assert_allclose(two.predict(NEW[:2]).mean, two.mean[:2], atol=1e-12)


def test_samples_have_the_forecast_mean_and_covariance():
    found = nk.forecast(NET, X, Y, nk.GradientFlow(0.2), NEW)
    draws = found.sample(4000, jax.random.key(2))
    assert draws.shape == (4000, 6, 2)
    sem = found.std[:, None] / np.sqrt(4000)
    assert (np.abs(draws.mean(axis=0) - found.mean) <= 4 * sem).all()
    measured = np.cov(draws[:, :, 0].T)
    scale = np.sqrt((np.outer(found.std**2, found.std**2) + found.cov**2) / 4000)
    assert (np.abs(measured - found.cov) <= 4.5 * scale).all()
    np.testing.assert_array_equal(draws, found.sample(4000, jax.random.key(2)))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.forecast(NET, X, Y), "`x_new` is missing: pass the points"),
        (lambda: nk.forecast(NNGP, X, Y, x_new=NEW), "`problem` must be an nk.MLP or nk.Network.* got NNGP"),
        (lambda: nk.forecast(3, X, Y, x_new=NEW), "`problem` must be an nk.MLP or nk.Network.* got 3"),
        (lambda: nk.forecast((NNGP, NET), X, Y, x_new=NEW), r"must be two kernels.*got \(NNGP, MLP\)"),
        (
            lambda: nk.forecast((NNGP, nk.kernels.NTK(nk.MLP(4, (3,)))), X, Y, x_new=NEW),
            "same input size: NNGP takes 5, NTK takes 4",
        ),
        (
            lambda: nk.forecast(NET, X, Y, nk.Adam(0.1, 3), NEW),
            r"`theory=nk\.InfiniteWidth\(\)` needs an `algorithm` that can be solved, .* got Adam\. No theory fits",
        ),
        (lambda: nk.forecast(NET, X, Y, 0.1, NEW), r"`algorithm` must be an algorithm, e\.g\. .*; got 0\.1"),
        (lambda: nk.forecast(NET, X[:, :4], Y, None, NEW), "`x` has 4 features per row; 5 expected"),
        (lambda: nk.forecast(NET, X, Y, nk.Ridge(1.0), NEW).at(2.0), "`time` is not defined for Ridge"),
        (
            lambda: nk.forecast(nk.MLP(5, (4,), parametrization="mean_field"), X, Y, None, NEW),
            "needs finite `time`, since",
        ),
        (
            lambda: nk.posterior(NNGP, np.vstack([X, X]), np.vstack([Y, Y]), NEW),
            "singular .* use `noise` > 0",
        ),
        (lambda: nk.posterior(3, X, Y, NEW), "`problem` must be a kernel.*; got 3"),
        (
            lambda: nk.posterior(NNGP, X, Y, NEW, noise=-1.0),
            "`noise` must be at least 0; got -1.0",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
