"""Bayesian networks of finite width against exact laws and Hamiltonian Monte Carlo."""

import warnings

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.theory import deep_linear_posterior, measure_posterior, width_evidence
from support.cases import few

RNG = np.random.default_rng(4)
X, NEW = RNG.normal(size=(10, 16)), RNG.normal(size=(5, 16))
Y = np.tanh(X[:, 0]) + 0.5 * X[:, 1]


def posterior(net, x, y, x_new, noise, widths=None):
    """Of a network of other `widths`, or at infinite width."""
    if widths is None:
        return nk.posterior(net, x, y, x_new, noise)
    settings = (net.out_dim, net.activation, net.weight_var, net.bias_var, net.parametrization)
    return nk.posterior(nk.MLP(net.in_dim, widths, *settings), x, y, x_new, noise, theory=nk.FiniteWidth())


def test_widths_as_an_argument_are_the_old_way():
    net = nk.MLP(16, (1,), activation="erf")
    for call in (nk.posterior, nk.statistics.posterior):
        with pytest.warns(
            DeprecationWarning, match=r"`widths=\(9,\)` of nk\.posterior is now `theory=nk\.FiniteW"
        ):
            old = call(net, X, Y, NEW, 0.1, widths=(9,))
        np.testing.assert_array_equal(old.std, posterior(net, X, Y, NEW, 0.1, widths=(9,)).std)
    with pytest.raises(ValueError, match="`widths` has no effect with `theory`"):
        nk.posterior(net, X, Y, NEW, 0.1, widths=(9,), theory=nk.FiniteWidth())


def test_a_network_at_infinite_width_is_its_nngp_kernel():
    net = nk.MLP(16, (3,), activation="erf", bias_var=0.1)
    one, other = nk.posterior(net, X, Y, NEW, 0.1), nk.posterior(nk.kernels.NNGP(net), X, Y, NEW, 0.1)
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.cov, other.cov)


@pytest.mark.parametrize(
    "problem, theory, message",
    [
        (3, None, "`problem` must be a kernel, .* or a network; got 3"),
        (
            nk.kernels.RBF(1.0),
            nk.FiniteWidth(),
            r"`problem` must be an nk\.MLP or nk\.Network; got RBF",
        ),
        (
            nk.MLP(16, (9,)),
            nk.FiniteWidth(exact=3),
            r"`theory=nk\.FiniteWidth\(exact=3\)` has settings without effect",
        ),
        (nk.MLP(16, (9,)), nk.InfiniteWidth(samples=3), "`samples` has no effect on a posterior"),
        (
            nk.MLP(16, (9,)),
            nk.Kinks(),
            "`theory` must be an object of the class AbstractBayesianTheory; got nk",
        ),
    ],
)
def test_a_theory_without_a_posterior_costs_one_line(problem, theory, message):
    with pytest.raises((TypeError, ValueError), match=message):
        nk.posterior(problem, X, Y, NEW, 0.1, theory=theory)


@pytest.mark.parametrize("widths", [(20,), (12, 30), (8, 15, 30)])
def test_linear_networks_without_noise_have_their_exact_posterior(widths):
    net = nk.MLP(16, (1,) * len(widths), activation="linear")
    found, exact = posterior(net, X, Y, NEW, 0.0, widths=widths), deep_linear_posterior(X, Y, widths)
    np.testing.assert_allclose(found.mean, exact.mean(NEW), atol=1e-12)
    np.testing.assert_allclose(found.std, exact.std(NEW), rtol=1e-11)
    np.testing.assert_allclose(found.quantile(0.9), exact.quantile(NEW, 0.9), rtol=1e-8)
    assert found.log_evidence == pytest.approx(exact.log_evidence, rel=1e-11)
    assert found.scale[0] == pytest.approx(16 * exact.scale, rel=1e-11) and found.warning == ""


def test_a_linear_network_with_noise_against_draws_of_its_scale():
    """Importance sampling: given the readout, the function is a Gaussian process."""
    net, noise, width = nk.MLP(16, (1,), activation="linear", weight_var=1.3), 0.3, 9
    found = posterior(net, X, Y, NEW, noise, widths=(width,))
    kernel = nk.kernels.NNGP(net)
    scales = RNG.chisquare(width, size=4000) / width
    matrix, cross = kernel(X), kernel(NEW, X)
    logs, means = [], []
    for s in scales:
        k = s * matrix + noise * np.eye(10)
        solved = np.linalg.solve(k, Y)
        logs.append(-0.5 * (Y @ solved + np.linalg.slogdet(k)[1] + 10 * np.log(2 * np.pi)))
        means.append(s * cross @ solved)
    weights = np.exp(logs - np.max(logs))
    evidence = np.log(weights.mean()) + np.max(logs)
    sem = weights.std() / weights.mean() / 4000**0.5
    assert abs(found.log_evidence - evidence) < 4 * sem
    mean = weights @ np.array(means) / weights.sum()
    np.testing.assert_allclose(found.mean, mean, atol=4 * sem * np.abs(mean).max())


@pytest.mark.parametrize(
    ("activation", "depth", "bias_var"),
    [("relu", 1, 0.0), ("relu", 2, 0.0), ("erf", 1, 0.2), ("erf", 2, 0.2)],
)
def test_wide_networks_are_gaussian_processes(activation, depth, bias_var):
    net = nk.MLP(16, (1,) * depth, activation=activation, weight_var=1.4, bias_var=bias_var)
    found = posterior(net, X, Y, NEW, 0.1, widths=(10**7,) * depth)
    process = posterior(nk.kernels.NNGP(net), X, Y, NEW, 0.1)
    np.testing.assert_allclose(found.mean, process.mean, atol=1e-6)
    np.testing.assert_allclose(found.std, process.std, atol=1e-6)
    assert found.log_evidence == pytest.approx(process.log_marginal_likelihood, abs=1e-5)
    np.testing.assert_allclose(found.quantile(0.5), found.mean, atol=1e-6)


def test_two_layers_of_a_homogeneous_activation_by_both_ways(monkeypatch):
    net = nk.MLP(16, (1, 1), activation="relu", weight_var=2.0)
    product = posterior(net, X, 2 * Y, NEW, 0.1, widths=(15, 20))
    monkeypatch.setattr("nearkernel.forecasts.posteriors.scale_mixture.is_homogeneous", lambda net: False)
    each = posterior(net, X, 2 * Y, NEW, 0.1, widths=(15, 20))
    np.testing.assert_allclose(each.mean, product.mean, rtol=1e-5)
    np.testing.assert_allclose(each.std, product.std, rtol=1e-5)
    assert each.log_evidence == pytest.approx(product.log_evidence, abs=1e-5)
    assert each.scale.shape == (2,) and product.scale.shape == (1,)


def test_evidence_prefers_the_width_whose_scale_the_targets_have():
    net = nk.MLP(16, (1,), activation="linear")
    fair = width_evidence(net, X, 6 * Y, 0.1, (2, 5, 20, 200), depths=(1, 2))
    assert (
        fair.log_evidence.shape == (2, 4) and fair.best[1] is not None
    )  # large targets need a scale that can be large
    small = width_evidence(net, X, Y / 2, 0.1, (2, 5, 20, 200))
    assert small.log_evidence[0, -1] == pytest.approx(small.infinite[0], abs=0.1)
    wide = width_evidence(net, X, 6 * Y, 0.1, (10**7,))
    assert wide.log_evidence[0, 0] == pytest.approx(wide.infinite[0], abs=1e-3)


def test_large_targets_warn_of_features():
    net = nk.MLP(16, (1,), activation="relu", weight_var=2.0)
    found = posterior(net, X, 20 * Y, NEW, 0.1, widths=(30,))
    assert (
        found.misfit > 3
        and "the network learns features" in found.warning
        and found.load == pytest.approx(1 / 3)
    )
    assert found.scale[0] > 1.5
    crowded = posterior(net, X, 20 * Y, NEW, 0.1, widths=(5,))
    assert "2 times as many points as neurons" in crowded.warning
    fair = posterior(net, X, Y, NEW, 0.3, widths=(30,))
    assert 0.15 < fair.misfit < 3 and fair.warning == ""


def test_sampling_agrees_with_the_exact_law_of_a_linear_network():
    net = nk.MLP(6, (8,), activation="linear")
    x, new = X[:8, :6], NEW[:, :6]
    y = x[:, 0] * 2
    drawn = measure_posterior(net, x, y, new, 0.1, 0, chains=8, samples=120, burn=120)
    law = posterior(net, x, y, new, 0.1, widths=(8,))
    assert 0.6 < drawn.acceptance < 0.95 and drawn.r_hat.max() < 1.1 and drawn.size == 960
    assert np.all(np.abs(drawn.mean - law.mean) < 4.5 * drawn.mean_sem + 1e-3)
    assert np.all(np.abs(drawn.std - law.std) < 4.5 * drawn.std_sem + 1e-3)


TWO = np.stack([Y, 2 * np.sin(X[:, 2])], axis=1)


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("widths", few([(7,), pytest.param((6, 9))], 1))
def test_several_outputs_of_a_linear_network_against_draws_of_its_readout(widths, noise):
    """Importance sampling from the prior: given all layers but the first, outputs are a Gaussian process."""
    net, draws = nk.MLP(16, (1,) * len(widths), 2, "linear", weight_var=1.2), 60_000
    found = posterior(net, X, TWO, NEW, noise, widths=widths)
    rng, kernel = np.random.default_rng(0), nk.kernels.NNGP(net)
    readout = rng.normal(size=(draws, widths[-1], 2)) / widths[-1] ** 0.5
    if len(widths) == 2:
        readout = rng.normal(size=(draws, widths[0], widths[1])) / widths[0] ** 0.5 @ readout
    scales = readout.transpose(0, 2, 1) @ readout
    lam, basis = np.linalg.eigh(kernel(X))
    each = lam[:, None, None] * scales[:, None] + noise * np.eye(2)  # (draws, modes, 2, 2)
    y = np.broadcast_to(basis.T @ TWO, (draws, 10, 2))[..., None]
    pulled = np.linalg.solve(each, y)[..., 0]
    logs = -0.5 * (
        (y[..., 0] * pulled).sum((1, 2)) + np.linalg.slogdet(each)[1].sum(1) + 20 * np.log(2 * np.pi)
    )
    weights = np.exp(logs - logs.max())
    sem = weights.std() / weights.mean() / draws**0.5
    assert abs(found.log_evidence - np.log(weights.mean()) - logs.max()) < 4 * sem + 1e-3
    weights /= weights.sum()
    error = np.sqrt((weights**2).sum())
    expected = np.tensordot(weights, scales, 1)
    np.testing.assert_allclose(found.scale, expected, atol=4 * error * found.scale_std.max() + 2e-3)
    means = np.einsum("mp,pq,kqc,kcd->kmd", kernel(NEW, X), basis, pulled, scales)
    mean = np.tensordot(weights, means, 1)
    spread = np.sqrt(np.tensordot(weights, (means - mean) ** 2, 1)).max()
    np.testing.assert_allclose(found.mean, mean, atol=4 * error * spread + 2e-3)
    assert found.std.shape == found.quantile(0.9).shape == (5, 2) and np.all(found.quantile(0.9) > found.mean)


def test_outputs_may_be_turned():
    net, angle = nk.MLP(16, (1,), 2, "erf", bias_var=0.1), 0.7
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    found, turned = (posterior(net, X, y, NEW, 0.1, widths=(12,)) for y in (TWO, TWO @ turn))
    np.testing.assert_allclose(turned.mean, found.mean @ turn, atol=1e-3)
    np.testing.assert_allclose(turned.scale, turn.T @ found.scale @ turn, atol=2e-3)
    assert turned.log_evidence == pytest.approx(found.log_evidence, abs=1e-3)


def test_a_column_of_targets_is_one_output():
    net = nk.MLP(16, (1,), activation="erf")
    found, column = (posterior(net, X, y, NEW, 0.1, widths=(12,)) for y in (Y, Y[:, None]))
    assert column.mean.shape == column.std.shape == (5, 1)
    np.testing.assert_array_equal(column.mean[:, 0], found.mean)
    np.testing.assert_array_equal(column.quantile(0.2)[:, 0], found.quantile(0.2))


def test_sampling_several_outputs_agrees_with_their_law():
    net = nk.MLP(6, (8,), 2, "linear")
    x, new = X[:8, :6], NEW[:, :6]
    y = np.stack([x[:, 0] * 2, x[:, 1] - x[:, 0]], axis=1)
    drawn = measure_posterior(net, x, y, new, 0.1, 0, chains=8, samples=120, burn=120)
    law = posterior(net, x, y, new, 0.1, widths=(8,))
    assert drawn.mean.shape == (5, 2) and drawn.r_hat.max() < 1.1
    assert np.all(np.abs(drawn.mean - law.mean) < 4.5 * drawn.mean_sem + 1e-3)
    assert np.all(np.abs(drawn.std - law.std) < 4.5 * drawn.std_sem + 1e-3)


@pytest.mark.parametrize(
    "widths, activation, noise, message",
    [
        (
            (8, 8),
            "erf",
            0.1,
            "one hidden layer and for linear networks without biases, not for 2 hidden layers",
        ),
        ((1,), "linear", 0.0, "1 neurons cannot have 2 independent outputs"),
    ],
)
def test_several_outputs_whose_law_is_unknown(widths, activation, noise, message):
    with pytest.raises(ValueError, match=message):
        posterior(nk.MLP(16, (1,) * len(widths), 2, activation), X, TWO, NEW, noise, widths=widths)


def test_a_matrix_that_cannot_be_sampled_is_refused():
    net, y = nk.MLP(16, (1,), 14, "linear"), 5 * np.random.default_rng(0).normal(size=(10, 14))
    with pytest.raises(ValueError, match=r"14 outputs is a matrix, too far from Gaussian.*\(14,\)"):
        posterior(net, X, y, NEW, 0.1, widths=(14,))


def test_a_wide_network_does_not_adapt():
    net = nk.MLP(16, (10**6,), activation="erf", bias_var=0.1)
    found = nk.theory.adapted_mean(net, X, Y, NEW, 0.3, 0, neurons=1500, sweeps=100)
    process = posterior(nk.kernels.NNGP(net), X, Y, NEW, 0.3)
    assert np.linalg.norm(found.mean - process.mean) < 0.08 * np.linalg.norm(process.mean)
    assert 0.6 < found.acceptance < 0.99
    np.testing.assert_allclose(found.kernel, nk.kernels.NNGP(net)(X), atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_the_adapted_kernel_gives_the_mean_where_features_are_learned(activation):
    rng = np.random.default_rng(23)
    x = rng.normal(size=(24 + 30, 12))
    y = 3 * np.tanh(2 * x[:24] @ rng.normal(size=12) / 12**0.5)
    net = nk.MLP(12, (36,), activation=activation)
    drawn = measure_posterior(net, x[:24], y, x[24:], 0.03, 1, chains=8, samples=300, burn=300)
    adapted = nk.theory.adapted_mean(net, x[:24], y, x[24:], 0.03, 0)
    mixed = posterior(net, x[:24], y, x[24:], 0.03, widths=(36,))
    off = [np.linalg.norm(each.mean - drawn.mean) / np.linalg.norm(drawn.mean) for each in (adapted, mixed)]
    assert off[0] < 0.07 < off[1] and mixed.misfit > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "depth", "scale", "mean_off"),
    [
        ("erf", 1, 0.3, 0.03),
        ("relu", 1, 0.5, 0.05),
        ("relu", 1, 3.0, None),
        ("erf", 1, 3.0, None),
        ("erf", 2, 0.3, 0.15),
    ],
)
def test_the_scale_law_gives_the_variance_of_real_networks(activation, depth, scale, mean_off):
    rng = np.random.default_rng(17)
    d, points = 12, 24
    x = rng.normal(size=(points + 30, d))
    y = scale * np.tanh(2 * x[:points] @ rng.normal(size=d) / d**0.5)
    net = nk.MLP(d, (36,) * depth, activation=activation)
    drawn = measure_posterior(net, x[:points], y, x[points:], 0.03, 1, chains=8, samples=300, burn=300)
    law = posterior(net, x[:points], y, x[points:], 0.03, widths=(36,) * depth)
    process = posterior(nk.kernels.NNGP(net), x[:points], y, x[points:], 0.03)
    truth = (drawn.std**2).mean()
    assert drawn.r_hat.max() < 1.1
    assert abs((law.std**2).mean() / truth - 1) < 0.2 < abs((process.std**2).mean() / truth - 1)
    if mean_off is not None:
        assert np.linalg.norm(law.mean - drawn.mean) < mean_off * np.linalg.norm(drawn.mean)


def test_bad_arguments_cost_one_line():
    net = nk.MLP(16, (1,), activation="erf", bias_var=0.1)
    for arguments, kind, text in [
        (dict(problem=nk.kernels.RBF(1.0)), TypeError, "`problem` must be an nk.MLP if `widths` are given"),
        (
            dict(widths=(3, 4)),
            ValueError,
            "`widths` must have one width per hidden layer of the network, 1; got 2",
        ),
        (
            dict(noise=0.0),
            ValueError,
            "`noise` must be greater than 0 for a finite-width network with biases",
        ),
        (
            dict(problem=nk.MLP(16, (1,)), noise=0.0),
            ValueError,
            "5 neurons cannot fit 10 points exactly",
        ),
        (
            dict(problem=nk.MLP(16, (1,) * 3, activation="erf"), widths=(5,) * 3),
            ValueError,
            "needs a homogeneous activation",
        ),
        (
            dict(problem=nk.MLP(16, (1,), parametrization="mean_field")),
            ValueError,
            "not in mean-field scaling",
        ),
    ]:
        with pytest.raises(kind, match=text), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            nk.posterior(
                **{"problem": net, "x": X, "y": Y, "x_new": NEW, "noise": 0.1, "widths": (5,), **arguments}
            )
    with pytest.raises(ValueError, match="`q` must be between 0 and 1; got 2"):
        posterior(net, X, Y, NEW, 0.1, widths=(5,)).quantile(2)
    with pytest.raises(ValueError, match="`net` must have the same activation and variances in all layers"):
        width_evidence(nk.MLP(16, (1, 1), weight_var=(1, 2, 3)), X, Y, 0.1, (5,))
    with pytest.raises(ValueError, match="`widths` and `depths` must each contain at least one number"):
        width_evidence(net, X, Y, 0.1, ())
    with pytest.raises(ValueError, match="`net` must have one hidden layer; got 2"):
        nk.theory.adapted_mean(nk.MLP(16, (3, 3)), X, Y, NEW, 0.1, 0)
    with pytest.raises(ValueError, match="`net` must have a hidden layer"):
        measure_posterior(nk.MLP(16, ()), X, Y, NEW, 0.1, 0)
