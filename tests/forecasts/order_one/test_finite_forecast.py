"""`forecast(order=1)`: its parts against recursions and exact laws, the whole against networks that were trained."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts.order_one.time_responses import responses, responses_at_end
from nearkernel.forecasts.order_one.trained_moments import Start, trained_law
from support.references.trained_recursion import descended

L = nk.layers
X = np.array([[1.3, 0.8, -0.3], [0.4, 1.2, 0.5]])
NEW = np.array([[1.0, -0.5, 0.9]])
Y = np.array([1.2, 0.3])


def network(activation="tanh", widths=(64,), out=1):
    return nk.MLP(3, widths, out, activation, weight_var=1.5, bias_var=0.15)


def by_loop(lam, lr, steps):
    """The sums in the docstring of `_responses.py`, one step after the other: (n, n, n) over modes x, y, z."""
    x, y, z = np.ix_(lam, lam, lam)
    e = [np.ones_like(v) for v in (x, y, z)]
    a = [0.0 * v for v in (x, y, z)]
    w_xz = w_yz = bend = turn = np.zeros((len(lam),) * 3)
    for _ in range(steps):
        bend, turn = bend + lr * e[0] * a[1] * a[2], turn + lr * e[0] * w_yz
        w_xz, w_yz = w_xz + lr * e[0] * a[2], w_yz + lr * e[1] * a[2]
        a = [sum_ + lr * now for sum_, now in zip(a, e, strict=True)]
        e = [(1 - lr * v) * now for v, now in zip((x, y, z), e, strict=True)]
    return a[0] * a[1] * a[2], bend, a[1] * w_xz, turn


def test_sums_over_time_are_those_of_the_steps():
    lam, lr = np.array([0.3, 0.8, 1.9]), 0.6
    for steps in (0, 1, 7, 400):
        found = responses(lam, lr, steps)
        for mine, theirs in zip(found[4:], by_loop(lam, lr, steps), strict=True):
            np.testing.assert_allclose(mine.new, theirs, atol=1e-13 * (1 + np.abs(theirs).max()))
    for rate in (lr, 0.0):
        late, end = responses(lam, rate, 400), responses_at_end(lam, rate)
        for mine, theirs in zip(late, end, strict=True):
            np.testing.assert_allclose(mine.new, theirs.new, rtol=1e-10)
            np.testing.assert_allclose(mine.old, theirs.old, rtol=1e-10)


def test_small_steps_are_the_flow_and_an_eigenvalue_may_be_zero():
    lam = np.array([0.0, 0.7])
    flow, coarse, fine = (responses(lam, lr, time) for lr, time in ((0.0, 2.0), (0.002, 1000), (0.001, 2000)))
    for exact, one, two in zip(flow, coarse, fine, strict=True):
        np.testing.assert_allclose(2 * two.new - one.new, exact.new, atol=1e-5)
        np.testing.assert_allclose(2 * two.old - one.old, exact.old, atol=1e-5)


@pytest.mark.parametrize("steps", [5, 40])
def test_averages_are_those_of_the_recursion(steps):
    """Moments of random tensors, by Gauss-Hermite nodes: f of the recursion averaged, against the formulas."""
    rng = np.random.default_rng(3)
    n, m, lr = 2, 1, 0.5
    total = n + m
    root = rng.normal(size=(total, total))
    theta = root @ root.T / 3 + 0.5 * np.eye(total)
    theta[:n, :n] = np.diag([0.5, 1.4])
    y = np.array([0.7, -0.4])
    size = 1e-3  # sqrt(1/n)
    h1, g = rng.normal(size=(total, total)), rng.normal(size=(3, total, total))
    h1, g = h1 + h1.T, g + g.swapaxes(1, 2)
    z_by, mu_by = rng.normal(size=(3, total)), rng.normal(size=(3, total, total, total))
    mu_by = mu_by + mu_by.transpose(0, 1, 3, 2)
    nu, kap = rng.normal(size=(2, *(total,) * 4))
    nu = sum(nu.transpose(0, *order) for order in itertools.permutations((1, 2, 3)))
    kap = kap + kap.transpose(1, 0, 3, 2)
    # z = z_by.u, h = size g.v + size^2 h1, mu = size^2 mu_by.u; u, v standard normal and independent
    start = Start(
        z_by.T @ z_by, theta, np.zeros_like(theta), h1, np.einsum("kab,kcd->abcd", g, g),
        np.zeros((total,) * 4), np.einsum("kabc,kd->abcd", mu_by, z_by), nu, kap,
        np.zeros((total,) * 4),
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    outputs, chances = [], []
    for at in itertools.product(range(4), repeat=3):
        u, chance = nodes[list(at)], np.prod(weights[list(at)]) / (2 * np.pi) ** 1.5
        for axis, sign in itertools.product(range(3), (-1.0, 1.0)):  # exact to the second power of v
            v = sign * np.sqrt(3.0) * np.eye(3)[axis]
            tensors = (np.tensordot(v, g, 1) * size + h1 * size**2, np.tensordot(u, mu_by, 1) * size**2)
            f = descended(theta, *tensors, nu * size**2, kap * size**2, u @ z_by, y, lr, steps)
            outputs.append(f[0])
            chances.append(chance / 6)
    mean = np.dot(chances, outputs)
    var = np.dot(chances, np.square(outputs)) - mean**2
    law = trained_law(start, responses(np.diagonal(theta)[:n], lr, steps), y)
    parts = law.corrections.values()
    assert (mean - law.mean[0]) / size**2 == pytest.approx(sum(p[0] for p in parts)[0], rel=2e-3)
    assert (var - law.cov[0, 0]) / size**2 == pytest.approx(sum(p[1] for p in parts)[0, 0], rel=2e-3)


# n (E f - f_inf) and n (Var f - Var_inf) with errors, from two million networks that other code trained: the constant
# of a fit quadratic in 1/n, without the smallest width.
MEASURED = {
    ("tanh", 1, 0.23, 6): ((0.0601, 0.0006), (-0.2318, 0.0018)),
    ("tanh", 1, 0.23, np.inf): ((0.3305, 0.0040), (-0.0706, 0.0098)),
    ("tanh", 2, 0.19, 6): ((0.1650, 0.0033), (-0.2545, 0.0089)),
    ("tanh", 2, 0.19, np.inf): ((0.709, 0.027), (-0.002, 0.059)),
    ("sin", 1, 0.20, 6): ((0.0484, 0.0014), (-0.2263, 0.0052)),
    ("sin", 1, 0.20, np.inf): ((0.2086, 0.0043), (-0.1167, 0.0132)),
}


@pytest.mark.parametrize("activation, depth", [("tanh", 1), ("tanh", 2), ("sin", 1)])
def test_corrections_are_those_of_large_ensembles(activation, depth):
    (rate,) = {lr for name, layers, lr, _ in MEASURED if (name, layers) == (activation, depth)}
    end = nk.forecast(
        network(activation, (64,) * depth), X, Y, nk.GradientDescent(rate), NEW, theory=nk.FiniteWidth()
    )
    for steps in (6, np.inf):
        found = end.at(steps)
        (mean, mean_error), (var, var_error) = MEASURED[activation, depth, rate, steps]
        assert abs(64 * found.terms[1][0] - mean) < 4 * mean_error
        assert abs(64 * found.cov_terms[1][0, 0] - var) < 4 * var_error


def correction(found):
    return {"mean": found.width * found.terms[1].ravel(), "cov": found.width * matrix(found.cov_terms[1])}


def matrix(cov):
    size = int(np.sqrt(cov.size))
    return cov.reshape(size, size)


def test_corrections_are_those_of_networks_that_were_trained():
    """One width, where the next order is within the error."""
    net, descent = network(widths=(128,)), nk.GradientDescent(0.23, 6)
    observable = nk.theory.trained_observables(net, X, Y, descent, NEW)
    found = nk.measure(observable, net, 1500, jax.random.key(0))
    assert (
        found.sem["mean"][0] < 0.01 and found.sem["cov"][0, 0] < 0.02
    )  # far below -0.23 and the spread, 0.62 * 128
    assert found.agrees(correction(nk.forecast(net, X, Y, descent, NEW, theory=nk.FiniteWidth())))


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, depth, descent, widths",
    [
        ("tanh", 1, nk.GradientDescent(0.23), (48, 144)),
        ("sin", 1, nk.GradientDescent(0.2), (48, 144)),
        ("tanh", 2, nk.GradientDescent(0.19, 8), (32, 96)),
        ("sin", 2, nk.GradientDescent(0.2, 8), (32, 96)),
    ],
)
def test_extrapolated_corrections_agree(activation, depth, descent, widths):
    """Two test points, so that a covariance is among the numbers."""
    new, estimates = np.vstack([NEW, [[0.2, 0.1, -1.0]]]), []
    for width in widths:
        net = network(activation, (width,) * depth)
        observable = nk.theory.trained_observables(net, X, Y, descent, new)
        estimates.append(nk.measure(observable, net, 3000, jax.random.key(width)))
    found = nk.theory.extrapolated(estimates, widths)
    theory = correction(nk.forecast(net, X, Y, descent, new, theory=nk.FiniteWidth()))
    assert found.agrees(theory), (found.mean, found.sem, theory, found.deviation(theory))


@pytest.mark.slow
def test_two_outputs_and_unequal_widths_agree():
    y, widths = np.stack([Y, [-0.5, 0.9]], axis=1), (32, 64)
    estimates, descent = [], nk.GradientDescent(0.19, 8)
    for width in widths:
        net = network("tanh", (2 * width, width), out=2)
        observable = nk.theory.trained_observables(net, X, y, descent, NEW)
        estimates.append(nk.measure(observable, net, 3000, jax.random.key(width)))
    found = nk.theory.extrapolated(estimates, widths)
    theory = correction(nk.forecast(net, X, y, descent, NEW, theory=nk.FiniteWidth()))
    assert found.agrees(theory), (found.mean, found.sem, theory, found.deviation(theory))


@pytest.mark.slow
def test_layers_of_their_own_agree():
    """Variances and activations that differ from layer to layer."""
    estimates, descent, widths = [], nk.GradientDescent(0.19, 8), (32, 96)
    for width in widths:
        net = nk.MLP(3, (width, 2 * width), 1, ("gelu", "tanh"), (1.2, 1.6, 1.0), (0.1, 0.0, 0.2))
        observable = nk.theory.trained_observables(net, X, Y, descent, NEW)
        estimates.append(nk.measure(observable, net, 3000, jax.random.key(width)))
    found = nk.theory.extrapolated(estimates, [2 * width for width in widths])
    theory = correction(nk.forecast(net, X, Y, descent, NEW, theory=nk.FiniteWidth()))
    assert found.agrees(theory), (found.mean, found.sem, theory, found.deviation(theory))


def test_networks_of_layers_are_forecast_as_mlps():
    layers = [
        L.Dense(40, 1.2, 0.1),
        L.Activation("tanh"),
        L.Dense(30, 1.6),
        L.Activation("gelu"),
        L.Dense(1, 1.0, 0.2),
    ]
    mlp = nk.MLP(3, (40, 30), 1, ("tanh", "gelu"), (1.2, 1.6, 1.0), (0.1, 0.0, 0.2))
    one, other = (
        nk.forecast(net, X, Y, None, NEW, theory=nk.FiniteWidth()) for net in (nk.Network(3, layers), mlp)
    )
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-9)
    with pytest.raises(
        TypeError,
        match=r"does not support `layers\[1\].branch\[0\]`, LayerNorm.*: it supports alternating Dense and",
    ):
        block = L.Residual([L.LayerNorm(), L.Activation("tanh"), L.Dense(8)])
        nk.forecast(nk.Network(3, [L.Dense(8), block, L.Dense(1)]), X, Y, None, NEW, theory=nk.FiniteWidth())


def test_terms_times_and_contributions():
    new = np.vstack([NEW, X[:1]])  # a training point among the new ones
    net = network("tanh", (40, 80))
    found = nk.forecast(net, X, Y, nk.GradientFlow(), new, theory=nk.FiniteWidth())
    plain = nk.forecast(net, X, Y, nk.GradientFlow(), new)
    assert found.width == 80 and found.ok and found.status == nk.StatusKind.converged
    for time in (0.0, 0.7, np.inf):
        one, zero = found.at(time), plain.at(time)
        np.testing.assert_allclose(one.terms[0], zero.mean, atol=1e-12)
        np.testing.assert_allclose(one.cov_terms[0], zero.cov, atol=1e-12)
        for which, terms in (("mean", one.terms), ("cov", one.cov_terms)):
            parts = sum(getattr(part, which) for part in one.contributions.values())
            np.testing.assert_allclose(parts, terms[1], atol=1e-14)
            np.testing.assert_allclose(getattr(one, which), terms[0] + terms[1])
    last = nk.propagate(net, new, order=1)[3]
    at_start = found.at(0.0)
    np.testing.assert_allclose(at_start.cov_terms[1], last.kernel_correction / 80, atol=1e-12)
    np.testing.assert_array_equal(at_start.terms[1], 0.0)
    assert abs(found.mean[1] - Y[0]) < 1e-12 and found.std[1] < 1e-6  # what is fitted is fitted at any width
    assert found.std[0] == pytest.approx(np.sqrt(found.cov[0, 0]))
    assert found.sample(7, jax.random.key(0)).shape == (7, 2)
    np.testing.assert_allclose(found.predict(NEW).mean, found.mean[:1], atol=1e-12)


def test_the_correction_falls_as_one_over_the_width():
    near, far = (
        nk.forecast(network(widths=(n, 2 * n)), X, Y, None, NEW, theory=nk.FiniteWidth()) for n in (50, 500)
    )
    assert near.distance == pytest.approx(10 * far.distance) and near.expansion >= near.distance
    assert near.width_within(near.distance / 10) == 1000 and near.width_within(1.01 * near.distance) == 100
    with pytest.warns(UserWarning, match="depth/width = 2/8 the next order may not be small"):
        nk.forecast(network(widths=(8, 8)), X, Y, None, NEW, theory=nk.FiniteWidth())


def test_outputs_share_what_they_have_in_common():
    """Outputs in another order, or rotated among each other, are forecast alike."""
    net, y = network("tanh", (64,), out=2), np.stack([Y, [-0.5, 0.9]], axis=1)
    found, turned = (
        nk.forecast(net, X, t, nk.GradientFlow(2.0), NEW, theory=nk.FiniteWidth()) for t in (y, y[:, ::-1])
    )
    assert found.mean.shape == (1, 2) and found.cov.shape == (1, 2, 1, 2) and found.std.shape == (1, 2)
    np.testing.assert_allclose(found.mean[:, ::-1], turned.mean, atol=1e-12)
    np.testing.assert_allclose(found.cov[:, ::-1, :, ::-1], turned.cov, atol=1e-12)
    assert abs(found.cov[0, 0, 0, 1]) > 1e-5  # outputs of finite networks know of each other
    np.testing.assert_allclose(found.cov_terms[0][0, 0, 0, 1], 0.0, atol=1e-15)
    angle = np.array([[0.8, -0.6], [0.6, 0.8]])
    rotated = nk.forecast(net, X, y @ angle, nk.GradientFlow(2.0), NEW, theory=nk.FiniteWidth())
    np.testing.assert_allclose(rotated.mean, found.mean @ angle, atol=1e-12)


def test_every_row_twice_is_twice_the_time():
    """The kernel matrix is singular then; at finite times that is no matter."""
    twice = nk.forecast(
        network(), np.vstack([X, X]), [*Y, *Y], nk.GradientFlow(0.7), NEW, theory=nk.FiniteWidth()
    )
    once = nk.forecast(network(), X, Y, nk.GradientFlow(1.4), NEW, theory=nk.FiniteWidth())
    for one, other in ((twice.terms, once.terms), (twice.cov_terms, once.cov_terms)):
        np.testing.assert_allclose(one[1], other[1], rtol=1e-9)


def test_a_rate_beyond_the_limit_is_a_status():
    found = nk.forecast(network(), X, Y, nk.GradientDescent(2.0), NEW, theory=nk.FiniteWidth())
    assert not found.ok and "2/lambda_max" in found.status.message and np.isinf(found.mean).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: network("relu"), r"needs smooth activations .*; got one with a kink\. These fit: .*nk\.Kinks\(\)"),
        (lambda: (network(), np.vstack([X, X[:1]]), [1.2, 0.3, 1.2]), "has rank 2 < 3: .* leave out repeated rows"),
        (lambda: (network(), X, Y, nk.Ridge(0.1)), "without inertia; got Ridge"),
        (lambda: (network(), X, Y, nk.GradientDescent(0.1, momentum=0.5)), "without inertia; got GradientDescent"),
        (lambda: (network(out=2), X, Y), "`y` has 1 outputs per row; the model has 2"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(call, message):
    arguments = call()
    net, *rest = arguments if isinstance(arguments, tuple) else (arguments,)
    x, y, algorithm = (*rest, *(X, Y, None)[len(rest) :])
    with pytest.raises((ValueError, TypeError, MemoryError), match=message) as error:
        nk.forecast(net, x, y, algorithm, NEW, theory=nk.FiniteWidth())
    assert "\n" not in str(error.value)


def test_exact_tensors_of_many_points_are_refused_in_one_line():
    exact = nk.FiniteWidth(exact=10**4)
    with pytest.raises(MemoryError, match=r"keeps tensors of four of 3000 .* points in total"):
        nk.forecast(network(), np.ones((3000, 3)), np.ones(3000), None, NEW, theory=exact)


def test_what_to_measure_needs_steps():
    with pytest.raises(TypeError, match=r"`algorithm` must be nk\.GradientDescent"):
        nk.theory.trained_observables(network(), X, Y, nk.GradientFlow(), NEW)
    with pytest.raises(ValueError, match="`algorithm` diverges: lr = 3"):
        nk.theory.trained_observables(network(), X, Y, nk.GradientDescent(3.0), NEW)


def _trained_tanh(width, size, algorithm, x, y, new):
    """Outputs at the one new point of `size` trained networks, without the library."""
    both, n = jnp.asarray(np.concatenate([x, new]) / np.sqrt(x.shape[1])), len(x)

    def one(key):
        first, second = jax.random.split(key)
        w, v = jax.random.normal(first, (x.shape[1], width)), jax.random.normal(second, (width,))
        outputs = lambda p: jnp.tanh(both @ p[0]) @ p[1] / np.sqrt(width)
        gradient = jax.grad(lambda p: 0.5 * jnp.sum((outputs(p)[:n] - y) ** 2))
        step = lambda p, _: (jax.tree.map(lambda a, g: a - algorithm.lr * g, p, gradient(p)), None)
        return outputs(jax.lax.scan(step, (w, v), None, length=algorithm.steps)[0])[n]

    run = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(width), size).reshape(-1, 20_000)
    return np.concatenate([np.asarray(run(part), np.float64) for part in keys])


def _shape(z):
    c = z - z.mean()
    v = (c**2).mean()
    return np.array([z.mean(), v, (c**3).mean() / v**1.5, (c**4).mean() / v**2 - 3])


@pytest.mark.slow
def test_what_order_one_leaves_out_falls_as_the_square_of_the_width():
    """Mean, variance, skewness, kurtosis of 400,000 networks: at twice the width off by 1/4 as much, 4 sigmas."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3, 3))
    x *= np.sqrt(3) / np.linalg.norm(x, axis=1, keepdims=True)
    y, new, algorithm = (
        np.array([0.8, -0.5, 0.3]),
        np.array([[0.9, -0.7, 1.1]]),
        nk.GradientDescent(0.5, steps=8),
    )
    off, error = [], []
    for width in (16, 32):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the next order may not be small
            law = nk.forecast(
                nk.MLP(3, (width,), activation="tanh"), x, y, algorithm, new, theory=nk.FiniteWidth()
            )
        z = _trained_tanh(width, 400_000, algorithm, x, y, new)
        theory = [law.mean[0], law.cov[0, 0], law.skewness[0], law.kurtosis[0]]
        off.append(theory - _shape(z))
        error.append(np.std([_shape(part) for part in z.reshape(20, -1)], axis=0, ddof=1) / np.sqrt(20))
    assert np.all(np.abs(off[1] - off[0] / 4) <= 4 * np.hypot(error[1], error[0] / 4)), (off, error)
    assert abs(off[0][2]) > 4 * error[0][2]  # there is something left out
