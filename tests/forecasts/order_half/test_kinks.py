"""Kinks: averages with delta functions against narrow windows, trained relu networks against the law of the flux."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel import Kinks
from nearkernel.forecasts.order_half import neuron_drift as _drift
from nearkernel.forecasts.order_half.kink_crossings import Crossings, _cumulants
from nearkernel.forecasts.order_half.neuron_drift import drift_roots
from nearkernel.results import PiecewiseLinear
from nearkernel.statistics.averages.relu_deltas import with_deltas
from nearkernel.statistics.width.fluctuations import FIELDS
from support import helpers
from support.cases import few

X, NEW = helpers.points(3, 3, 31), helpers.points(2, 3, 32)
Y = np.array([0.9, -0.6, 0.4])


def test_averages_with_deltas_are_limits_of_narrow_windows():
    """A million draws; a kink that is rounded over a window, 4 standard errors and the bias of its width."""
    rng, width, size = np.random.default_rng(0), 0.05, 1_000_000
    root = rng.normal(size=(3, 4))
    kernel = root @ root.T / 4 + 0.3 * np.eye(3)
    leaky = PiecewiseLinear(1.3, -0.4)
    jump = leaky.right - leaky.left
    found = with_deltas(leaky, kernel)
    z = rng.normal(size=(size, 3)) @ np.linalg.cholesky(kernel).T
    slope = np.clip((z + width) / (2 * width), 0, 1) * jump + leaky.left
    value = np.where(z > 0, leaky.right, leaky.left) * z
    delta = jump * (np.abs(z) < width) / (2 * width)
    bent = -jump * np.sign(z) * (np.abs(z) < 2 * width) / (4 * width**2)  # of a triangle
    cases = [((0, 1, 1, 2), p) for p in ((1, 2, 0, 0), (1, 0, 0, 0), (1, 1, 2, 0), (2, 0, 1, 1))]
    cases += [((1, 1, 2, 2), p) for p in ((0, 1, 2, 1), (0, 1, 0, 1), (2, 1, 0, 1))]
    cases += [((1, 1, 1, 3), p) for p in ((1, 2, 1, 0), (1, 1, 1, 0), (0, 0, 1, 2))]
    for orders, place in cases:
        drawn = np.prod(
            [(value, slope, delta, bent)[o][:, a] for o, a in zip(orders, place, strict=True)], axis=0
        )
        theory = found[orders][place]
        assert abs(drawn.mean() - theory) < 4 * drawn.std() / np.sqrt(size) + 0.02 * abs(theory) + 1e-3, (
            orders,
            place,
        )


@pytest.mark.parametrize("activation", ["relu", "abs", "leaky_relu(0.2)"])
def test_nothing_is_missing_for_the_relu_family(activation):
    net = nk.MLP(3, (7, 5), 1, activation, 1.7, 0.2)
    layer = nk.propagate(net, X[:2], order=1)[3]
    finite = {
        "R": 1 / 8,
        "S": 1 / 2,
        "T": 1 / 2,
        "U": 1 / 2,
    }  # two derivatives meet at one input in the others
    for letter, name in FIELDS.items():
        assert np.isfinite(getattr(layer, name)).mean() == finite.get(letter, 1.0), name
    alone = nk.propagate(net, X[:1], order=1)[3]
    assert np.isinf(alone.ddntk_r).all() and alone.dntk_p[0, 0, 0, 0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("right, left", [(1.0, 0.0), (1.0, -1.0), (1.1, 0.3)])
def test_kinks_are_limits_of_rounded_kinks(right, left):
    """Two hidden layers; the limit is that of the polynomial through six widths of the kink."""
    sigmas, found = np.array([0.3, 0.2, 0.14, 0.1, 0.07, 0.05]), []
    weights = np.linalg.inv(np.vander(sigmas, increasing=True))[0]
    relu = lambda z, s: z * jax.scipy.special.ndtr(z / s) + s * jax.scipy.stats.norm.pdf(z / s)
    for sigma in sigmas:
        rounded = lambda z, s=float(sigma): left * z + (right - left) * relu(z, s)
        found.append(nk.propagate(nk.MLP(3, (7, 5), 1, rounded, 1.7, 0.2), X[:2], order=1)[3])
    exact = nk.propagate(nk.MLP(3, (7, 5), 1, PiecewiseLinear(right, left), 1.7, 0.2), X[:2], order=1)[3]
    for letter in "DFABPQRSTU":
        limit = getattr(exact, FIELDS[letter])
        near = np.isfinite(limit)
        reached = sum(w * getattr(layer, FIELDS[letter]) for w, layer in zip(weights, found, strict=True))
        assert np.abs(reached - limit)[near].max() < 0.002 * np.abs(limit[near]).max(), letter


def closed_form(net, x, y, new, lr):
    """One training point, one hidden layer of relu: width^(1/2) times four cumulants beyond infinite width.

    S is a function of z_a alone, and g = z_b - ratio z_a is tied to it by its covariance: averages of S with Hermite
    polynomials of g are those with Hermite polynomials of z_a.
    """
    (kernel, theta, _), (k_out, t_out, _) = nk.kernels.layer_kernels(net, np.vstack([x, new]))
    t, c, std = t_out[0, 0], float(net.weight_var), np.sqrt(k_out[0, 0])
    ratio, r = t_out[1:, 0] / t, lr * t
    w, v = ((1 - r) / (2 - r), 1.0) if r <= 1 else (r * (1 - r), r * (2 - r))
    z = np.linspace(-9, 9, 200001)
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    alpha = (std * z - y) / t
    size = c**1.5 * theta[0, 0] / np.sqrt(2 * np.pi * kernel[0, 0]) * np.sqrt(2 / np.pi)
    source = size * alpha * np.abs(alpha) * density
    tied = (k_out[0, 1:] - ratio * k_out[0, 0]) / std
    moved = (w * theta[0, 1:] - v * ratio * theta[0, 0]) / 2
    polynomials = (np.ones_like(z), z, z**2 - 1, z**3 - 3 * z)
    return [(k + 1) * tied**k * moved * (source @ p) for k, p in enumerate(polynomials)]


def test_cumulants_of_a_sum_to_first_order():
    """Of g + small S, g Gaussian and S a polynomial of it, against differences of the cumulants themselves."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    z = np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
    weights = np.outer(weights, weights).ravel() / (2 * np.pi)
    root = np.array([[1.1, 0.0], [0.4, 0.7]])
    g = root @ z
    s = np.stack([0.3 + g[0] * g[1] - g[1] ** 3, g[0] ** 2 - 0.5 * g[0] + g[0] ** 2 * g[1]])

    def cumulants(f):
        d = f - (f * weights).sum(axis=1, keepdims=True)
        cov = (d * weights) @ d.T
        own = np.diagonal(cov)
        third = (d * weights) @ (d**2).T
        return (
            (f * weights).sum(axis=1),
            cov,
            third,
            (d**2 * weights) @ (d**2).T - np.outer(own, own) - 2 * cov**2,
        )

    own = s * g
    fourth = 2 * (own * weights) @ (g**2).T
    parts = (
        (s * weights).sum(axis=1),
        (s * weights) @ g.T,
        (s * weights) @ (g**2).T + 2 * (g * weights) @ own.T,
    )
    found = _cumulants(np.concatenate([p.ravel() for p in (*parts, fourth + fourth.T)]), root @ root.T)
    step = 1e-4
    for value, up, down in zip(found, cumulants(g + step * s), cumulants(g - step * s), strict=True):
        np.testing.assert_allclose(value, (up - down) / (2 * step), atol=1e-5)


@pytest.mark.parametrize("rate", few([0.4, 0.9, 1.5], 1))
def test_one_training_point_has_a_closed_form(rate):
    """In the limit: at a width where no neuron near one kink is near the other."""
    width, x, y = 10**8, X[:1], np.array([[0.9]])
    net = nk.MLP(3, (width,), 1, "relu", weight_var=1.7, bias_var=0.2)
    descent = nk.GradientDescent(rate / float(nk.kernels.NTK(net)(x)[0, 0]))
    some = Kinks(tolerance=1e-9, most=2**16)
    law = nk.forecast(net, x, y[:, 0], descent, NEW, theory=some)
    sampled = Crossings(net, x, y, True, NEW, some).sampled(descent)
    diagonals = lambda part: [part.mean, *(np.diagonal(each) for each in part[1:])]
    exact = closed_form(net, x, 0.9, NEW, descent.lr)
    root = math.sqrt(width)
    for value, error, theory in zip(diagonals(sampled.value), diagonals(sampled.error), exact, strict=True):
        assert np.abs((root * value - theory) / (root * error)).max() < 4
    for error, theory, share in zip(diagonals(sampled.error), exact, (0.01, 0.03, 0.3), strict=False):
        assert (root * error < share * np.abs(theory).max()).all()
    assert law.width == width and law.ok and law.neurons == 2**16
    np.testing.assert_array_equal(law.terms[1], sampled.value.mean)
    np.testing.assert_array_equal(law.cumulants(3, diagonal=True), np.diagonal(sampled.value.third))
    np.testing.assert_allclose(law.mean, law.terms[0] + law.terms[1])
    plain = nk.forecast(net, x, y[:, 0], descent, NEW)
    np.testing.assert_allclose(law.terms[0], plain.mean, atol=1e-9)
    np.testing.assert_allclose(law.cov_terms[0], plain.cov, atol=1e-9)
    np.testing.assert_array_equal(law.at(0).terms[1], 0.0)


SOME = Kinks(tolerance=1e-9, most=2**11, scrambles=8)


@pytest.mark.filterwarnings("ignore:training moves")
@pytest.mark.parametrize(
    "net, algorithm",
    few(
        [
            (nk.MLP(3, (64,), 1, "relu"), nk.GradientFlow()),
            (nk.MLP(3, (50, 80, 60), 1, "leaky_relu(0.2)", 1.6, 0.1), nk.GradientDescent(0.2)),
            (nk.MLP(3, (40,), 2, "relu", 1.8, 0.2), nk.GradientFlow(1.5)),
        ],
        1,
    ),
)
def test_trained_networks_pass_through_their_training_points(net, algorithm):
    """At infinite time nothing is left there, in any cumulant; at every time the law is continuous."""
    y = np.stack([Y, 1 - Y], axis=1)[:, : net.out_dim]
    beside = [X + size * helpers.points(3, 3, 7) for size in (0.0, 1e-6, 1e-4)]
    law = nk.forecast(net, X, y, algorithm, np.concatenate(beside), theory=SOME)
    shift = law.terms[1].reshape(3, -1)
    far = nk.forecast(net, X, y, algorithm, NEW, theory=SOME)
    size = np.abs(far.terms[1]).max()
    assert size > 1e-3
    if algorithm.end() == math.inf:
        assert np.abs(shift[0]).max() < 1e-5 * size
        assert np.abs(law.cov_terms[1].reshape(3 * y.size, -1)[: y.size]).max() < 1e-5 * size
        assert np.abs(law.cumulants(3, diagonal=True).reshape(3, -1)[0]).max() < 1e-5 * size
    assert np.abs(shift[1] - shift[0]).max() < 1e-3 * size
    assert np.abs(shift[2] - shift[0]).max() < 0.03 * size


def test_without_biases_the_law_is_homogeneous():
    """So are relu networks without biases: inputs of one direction have one kink."""
    net, factor = nk.MLP(3, (40, 90), 1, "relu", weight_var=1.8), 0.3
    new = np.concatenate([NEW, X[:1], X[1:2] + 0.05])
    both = np.concatenate([new, factor * new])
    law = nk.forecast(net, X, Y, nk.GradientFlow(0.8), both, theory=SOME)
    one, other = law.terms[1].reshape(2, -1)
    np.testing.assert_allclose(other, factor * one, atol=1e-5 * np.abs(one).max())
    cov = law.cov_terms[1]
    np.testing.assert_allclose(cov[4:, 4:], factor**2 * cov[:4, :4], atol=1e-5 * np.abs(cov).max())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:training moves")  # beside training points the deviations are small, too
def test_beside_training_points_against_trained_networks():
    """sqrt(width) times the shift at 0.1 and 0.001 from the training points, where the limit of fixed points is 0.229
    and 0.243: 4 standard errors, and 1/width beyond."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 3)), np.array([1.0, -0.7])
    rng.normal(size=(2, 3))
    new = np.concatenate([x + 0.1 * rng.normal(size=(2, 3)), x + 1e-3 * rng.normal(size=(2, 3))])
    lam = np.linalg.eigvalsh(nk.kernels.NTK(nk.MLP(3, (4,), 1, "relu"))(x))
    descent = nk.GradientDescent(float(0.3 / lam[-1]), math.ceil(14 * lam[-1] / (0.3 * lam[0])))
    roots, off = (16, 32), []
    for root in roots:
        net = nk.MLP(3, (root * root,), 1, "relu")
        found = nk.measure(shift(net, x, y, descent, new), net, 8000, jax.random.key(root))
        law = nk.forecast(net, x, y, nk.GradientDescent(descent.lr), new, theory=SOME)
        spread = np.hypot(found.sem, root * law.error.mean)
        difference = found.mean - root * law.terms[1]
        assert (np.abs(difference[2:]) < 4 * spread[2:] + 0.05 * np.abs(found.mean[2:])).all()
        off.append((difference[:2], spread[:2]))
    (one, first), (other, second) = off
    limit, error = 2 * other - one, np.hypot(2 * second, first)  # what falls as 1/root is gone
    assert (np.abs(limit) < 4 * error).all() and (error < 0.1 * 0.2).all()


def test_skewness_vanishes_without_targets_and_outputs_keep_their_order():
    """At y = 0 a network is as likely as its mirror image; another order of outputs only changes their order."""
    net, some = nk.MLP(3, (100,), 2, "relu", 1.7, 0.2), Kinks(tolerance=1e-9, most=2**12)
    flow = nk.GradientFlow(0.4)
    none = nk.forecast(net, X, np.zeros((3, 2)), flow, NEW, theory=some)
    for value, error in (
        (none.terms[1], none.error.mean),
        (none.cumulants(3, diagonal=True), none.error.third),
    ):
        assert (np.abs(value) < 4 * error).all()
    y = np.stack([Y, 0.5 - Y], axis=1)
    one, other = (nk.forecast(net, X, each, flow, NEW, theory=some) for each in (y, y[:, ::-1]))
    spread = np.hypot(one.error.mean, other.error.mean[:, ::-1])
    assert (np.abs(one.terms[1] - other.terms[1][:, ::-1]) < 4 * spread).all()
    turned = other.cov_terms[1][:, ::-1, :, ::-1]
    spread = np.hypot(one.error.cov, other.error.cov[:, ::-1, :, ::-1])
    assert (np.abs(one.cov_terms[1] - turned) < 4 * spread).all()


def test_law_of_three_cumulants():
    """Densities, quantiles, draws and the expected loss have the cumulants of the record."""
    net = nk.MLP(3, (100,), 1, "relu", weight_var=1.7, bias_var=0.2)
    law = nk.forecast(net, X, Y, nk.GradientFlow(0.4), NEW, theory=nk.Kinks(most=2**12))
    f = law.mean + law.std * np.linspace(-9, 9, 4001)[:, None]
    weights = law.density(f) * (f[1] - f[0])
    away = f - law.mean
    for power, moment in ((0, 1.0), (1, 0.0), (2, law.std**2), (3, law.cumulants(3, diagonal=True))):
        np.testing.assert_allclose((weights * away**power).sum(axis=0), moment, atol=1e-9)
    np.testing.assert_allclose(law.cdf(law.quantile([0.05])), 0.05, atol=1e-4)
    draws = law.sample(200_000, 1)
    np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=4 * law.std.max() / 200_000**0.5)
    loss = law.expected_loss([0.5, -0.2])
    np.testing.assert_allclose(loss.mean, loss.bias.sum() + loss.variance.sum())
    assert law.width_within(law.distance) == 100 and law.width_within(0.5 * law.distance) == 400
    with pytest.raises(ValueError, match=r"joint cumulants are not computed at `theory=nk\.Kinks\(\)`"):
        law.cumulants(3)
    for refused in (lambda: law.cumulants(4, diagonal=True), lambda: law.kurtosis):
        with pytest.raises(
            ValueError, match=r"the fourth cumulant .* is not known: its part of order 1/width"
        ):
            refused()


def test_many_training_points_draw_their_drift(monkeypatch):
    """Beyond 32 training points normals of Gamma are draws of it: the same covariance, here over 60 seeds."""
    net = nk.MLP(3, (50, 70, 60), 1, "relu", weight_var=1.7, bias_var=0.2)
    on = Crossings(net, X, Y[:, None], True, NEW, Kinks())
    monkeypatch.setattr(_drift, "_MOST", 0)
    of = lambda seed: drift_roots(net, on.kernels, on.slopes, on.fields, 3, seed)
    drawn = [[root.T @ root for root in of(seed)[1:]] for seed in range(60)]
    for layer, exact in enumerate(on.drifts[1:]):
        found = np.array([each[layer] for each in drawn])
        spread, exact = found.std(axis=0, ddof=1) / 60**0.5, exact.T @ exact
        assert np.abs(found.mean(axis=0) - exact).max() < 4 * spread.max() + 0.02 * exact.max()
        assert spread.max() < 0.05 * exact.max()


@pytest.mark.merge
@pytest.mark.parametrize("widths", [(400, 600), pytest.param((500, 300, 400), marks=pytest.mark.slow)])
def test_movement_is_that_of_trained_networks(widths):
    """rms over neurons and networks of how far preactivations at the worst training point are moved."""
    net, steps = nk.MLP(3, widths, 1, "relu", weight_var=1.7, bias_var=0.2), nk.GradientDescent(0.1, 20)
    law = nk.forecast(net, X, Y, steps, NEW, theory=nk.Kinks(most=64, scrambles=2))
    spreads = [np.sqrt(np.diagonal(kernel)) for kernel, *_ in nk.kernels.layer_kernels(net, X)[:-1]]

    def observe(params):
        rows = jnp.asarray(X)
        end = nk.simulate(net, params, rows, jnp.asarray(Y), steps, nk.Record(every=20))
        before, after = net.layer_outputs(params, rows), net.layer_outputs(end.params, rows)
        return jnp.stack(
            [jnp.mean((after[k] - before[k]) ** 2, axis=1) / spreads[k] ** 2 for k in range(len(widths))]
        )

    found = nk.measure(observe, net, 300, jax.random.key(0))
    worst = np.unravel_index(np.argmax(found.mean), found.mean.shape)
    assert abs(found.mean[worst] - law.movement**2) < 4 * found.sem[worst] + 0.05 * law.movement**2
    assert found.sem[worst] < 0.1 * law.movement**2


def test_neurons_that_move_far_are_announced():
    net, few = nk.MLP(3, (16,), 1, "relu", weight_var=1.7, bias_var=0.2), Kinks(most=64, scrambles=2)
    law = nk.forecast(net, X, 0.01 * Y, nk.GradientFlow(0.01), NEW, theory=few)
    assert law.movement < 0.1
    with pytest.warns(
        UserWarning, match=r"training moves preactivations by .* of their spread, .* at width 16 the next"
    ):
        nk.forecast(net, X, 20 * Y, nk.GradientFlow(), NEW, theory=few)


def shift(net, x, y, descent, new):
    """width^(1/2) times the shift of the mean, of a network and of that with its last layer's sign changed."""
    middle = nk.forecast(net, x, y, descent, new).mean
    rows, targets, record = jnp.asarray(x), jnp.asarray(y), nk.Record(every=descent.steps)

    def trained(params):
        end = nk.simulate(net, params, rows, targets, descent, record)
        return net(end.params, jnp.asarray(new)).reshape(middle.shape) - middle

    def observe(params):
        other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
        one, two = trained(params), trained(other)
        return np.sqrt(net.widths[-1]) * (one + two) / 2

    return observe


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, shape", [("relu", (1,)), ("relu", (2, 1)), (PiecewiseLinear(1.2, -0.3), (1,))]
)
def test_several_training_points_against_trained_networks(activation, shape):
    """Widths 64 and 256; the next order, 1/width, is extrapolated away."""
    x, y = np.array([[1.2, 0.5, 0.2], [0.5, 1.1, -0.3], [-0.6, 0.3, 1.1]]), np.array([1.2, -0.5, 0.6])
    new, descent = np.array([[1.1, -0.4, 0.8], [0.9, 1.0, 0.6]]), nk.GradientDescent(0.15, 30)
    roots, found, draws = (8, 16), [], 6000 if len(shape) == 1 else 2000
    for root in roots:
        net = nk.MLP(3, tuple(k * root * root for k in shape), 1, activation, weight_var=1.6, bias_var=0.1)
        found.append(nk.measure(shift(net, x, y, descent, new), net, draws, jax.random.key(root)))
    limit = nk.theory.extrapolated(found, roots)
    wide = nk.MLP(3, tuple(k * 10**8 for k in shape), 1, activation, weight_var=1.6, bias_var=0.1)
    law = nk.forecast(wide, x, y, descent, new, theory=nk.Kinks(tolerance=1e-9, most=2**13))
    theory, error = 1e4 * law.terms[1], 1e4 * law.error.mean
    z = (limit.mean - theory) / np.hypot(limit.sem, error)
    assert np.abs(z).max() < 4


def forecast(net, x, y, algorithm=None, theory=nk.Kinks()):
    return nk.forecast(net, x, y, algorithm, NEW, theory=theory)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: forecast(nk.MLP(3, (8,), 1, "tanh"), X, Y), "an activation with a kink"),
        (lambda: forecast(nk.MLP(3, (8,)), X, Y, nk.Ridge(0.1)), "without inertia; got Ridge"),
        (lambda: forecast(nk.MLP(3, (8,)), X[[0, 1, 1]] * np.c_[[1, 1, -2]], Y), "rows 1 and"),
        (lambda: forecast(nk.MLP(3, (8,)), X, Y, theory=nk.FiniteWidth()), r"moves as width\^\(-1/2\), not as 1/width"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
