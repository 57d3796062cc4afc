"""The law of kinks against trained relu networks: mean, covariance and third cumulants at order width^(-1/2)."""

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel import Kinks

MANY = Kinks(tolerance=1e-9, most=2**13)


def moments(net, x, y, descent, new):
    """width^(1/2) times what training adds to Hermite polynomials of the outputs, beyond training by the frozen kernel.

    What the frozen kernel of a network does differs from infinite width by 1/width on average. As likely as a network
    is that with the other sign of its last layer.
    """
    plain, factors, record = (
        nk.forecast(net, x, y, descent, new),
        net.lr_factors(),
        nk.Record(every=descent.steps),
    )
    y = np.reshape(y, (len(x), -1))
    middle, cov = plain.mean.ravel(), np.kron(plain.cov, np.eye(y.shape[1]))
    both, own, size = jnp.asarray(np.concatenate([x, new])), np.diagonal(cov), y.size

    def trained(params):
        end = nk.simulate(net, params, both[: len(x)], jnp.asarray(y), descent, record)
        return net(end.params, both[len(x) :]).ravel()

    def kernel(params):
        gradients = jax.jacrev(lambda p: net(p, both).ravel())(params)
        pairs = zip(jax.tree.leaves(gradients), jax.tree.leaves(factors), strict=True)
        rows = [(g.reshape(len(both) * y.shape[1], -1), f) for g, f in pairs]
        return sum(f * (g @ g.T) for g, f in rows)

    def frozen(z, h):
        lost, e = jnp.zeros(size), z[:size] - y.ravel()
        move = lambda _, now: (now[0] + descent.lr * now[1], now[1] - descent.lr * h[:size, :size] @ now[1])
        lost, _ = jax.lax.fori_loop(0, descent.steps, move, (lost, e))
        return z[size:] - h[size:, :size] @ lost

    def hermite(f):
        d = f - middle
        return {"mean": d, "cov": jnp.outer(d, d) - cov, "third": d**3 - 3 * own * d}

    def observe(params):
        other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
        z, h = net(params, both).ravel(), kernel(params)
        found = [hermite(trained(params)), hermite(trained(other))]
        known = [hermite(frozen(z, h)), hermite(frozen(-z, h))]
        half = math.sqrt(net.widths[-1]) / 2
        return {k: half * (found[0][k] + found[1][k] - known[0][k] - known[1][k]) for k in found[0]}

    return observe


def measured(make, x, y, descent, new, pairs, roots):
    """At infinite width, from two widths: the next order is 1/width."""
    nets = [make(root * root) for root in roots]
    found = [
        nk.measure(moments(net, x, y, descent, new), net, pairs, jax.random.key(root))
        for net, root in zip(nets, roots, strict=True)
    ]
    return nk.theory.extrapolated(found, roots)


def predicted(net, x, y, algorithm, new, neurons=MANY):
    """The same by the law, and its standard errors."""
    law, root = nk.forecast(net, x, y, algorithm, new, theory=neurons), math.sqrt(net.widths[-1])
    size = law.mean.size
    values = {
        "mean": law.terms[1].ravel(),
        "cov": law.cov_terms[1].reshape(size, size),
        "third": law.cumulants(3, diagonal=True).ravel(),
    }
    errors = {
        "mean": law.error.mean.ravel(),
        "cov": law.error.cov.reshape(size, size),
        "third": law.error.third.ravel(),
    }
    return {k: root * v for k, v in values.items()}, {k: root * v for k, v in errors.items()}


def assert_agree(found, theory, errors, seen, names=("mean", "cov", "third")):
    """Within 4 standard errors; and these are so small that the largest of `seen` is far from 0."""
    for name in names:
        spread = np.hypot(found.sem[name], errors[name])
        z = (found.mean[name] - theory[name]) / spread
        assert np.abs(z).max() < 4, name
    for name, sigmas in seen.items():
        assert np.max(np.abs(theory[name]) / np.hypot(found.sem[name], errors[name])) > sigmas, name


def until_trained(net, x, rate):
    """Gradient descent to 1e-4 of the slowest residual, at `rate` over the largest eigenvalue."""
    lam = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))
    lr = float(rate / lam[-1])
    return nk.GradientDescent(lr, math.ceil(math.log(1e-4) / math.log(np.abs(1 - lr * lam).max())))


@pytest.mark.slow
def test_end_of_training_of_several_points():
    """Three points, trained to the end: the law at infinite time."""
    rng = np.random.default_rng(11)
    x, new, y = rng.normal(size=(3, 3)), rng.normal(size=(2, 3)), rng.normal(size=3)
    make = lambda width: nk.MLP(3, (width,), 1, "relu", weight_var=2.0)
    descent = until_trained(make(4), x, 1.2)
    found = measured(make, x, y, descent, new, 6000, (12, 24))
    theory, errors = predicted(make(10**8), x, y, nk.GradientDescent(descent.lr), new)
    assert_agree(found, theory, errors, {"mean": 6, "cov": 4})


@pytest.mark.slow
def test_two_outputs():
    x, y = np.array([[0.9, -0.7, 0.4], [-0.2, 1.0, 0.8]]), np.array([[0.8, -0.6], [-0.9, 1.1]])
    new, make = np.array([[0.7, 0.9, -0.5]]), lambda width: nk.MLP(3, (width,), 2, "relu", 1.8, 0.15)
    descent = until_trained(make(4), x, 0.8)
    found = measured(make, x, y, descent, new, 6000, (16, 32))
    theory, errors = predicted(make(10**8), x, y, nk.GradientDescent(descent.lr), new)
    assert_agree(found, theory, errors, {"mean": 6, "cov": 4})


@pytest.mark.slow
def test_gradient_flow():
    """Small steps: those of the flow differ from them by less than a standard error of the ensemble."""
    x, y = np.array([[1.1, 0.6, 0.3], [0.4, 1.2, -0.2], [-0.6, 0.3, 1.1]]), np.array([1.5, -0.6, 0.5])
    new, make = np.array([[1.0, -0.5, 0.9]]), lambda width: nk.MLP(3, (width,), 1, "relu", 1.6, 0.1)
    lam = np.linalg.eigvalsh(nk.kernels.NTK(make(4))(x))
    lr, steps = float(0.05 / lam[-1]), 150
    found = measured(make, x, y, nk.GradientDescent(lr, steps), new, 8000, (12, 24))
    theory, errors = predicted(make(10**8), x, y, nk.GradientFlow(lr * steps), new)
    stepped, _ = predicted(make(10**8), x, y, nk.GradientDescent(lr, steps), new)
    for name in ("mean", "cov"):
        assert (np.abs(stepped[name] - theory[name]) < found.sem[name]).all()
    assert_agree(found, theory, errors, {"mean": 6, "cov": 3})


@pytest.mark.slow
@pytest.mark.parametrize("size, far", [(2.0, False), (12.0, True)])
def test_the_warning_tells_where_the_law_is_off(size, far):
    """Larger targets move neurons further: the law of the mean is then off by a third of itself and more."""
    rng = np.random.default_rng(102)
    x, new, y = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), size * rng.normal(size=4)
    net = nk.MLP(3, (256,), 1, "relu", weight_var=2.0, bias_var=0.1)
    descent = nk.GradientDescent(float(0.5 / np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]), 92)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        theory, _ = predicted(net, x, y, descent, new)
    assert any("training moves preactivations" in str(each.message) for each in said) == far
    found = nk.measure(moments(net, x, y, descent, new), net, 1500, jax.random.key(5))
    scale = np.linalg.norm(theory["mean"])
    off, error = (
        np.linalg.norm(found.mean["mean"] - theory["mean"]) / scale,
        np.linalg.norm(found.sem["mean"]) / scale,
    )
    assert off - 4 * error > 1 / 3 if far else off + 2 * error < 1 / 3


@pytest.mark.slow
def test_two_hidden_layers():
    """Neurons of the second layer are also moved by all those of the first."""
    x, y = np.array([[1.2, 0.5, 0.2], [0.5, 1.1, -0.3]]), np.array([2.0, -1.0])
    new, make = np.array([[1.1, -0.4, 0.8]]), lambda width: nk.MLP(3, (width, width), 1, "relu", 1.6, 0.1)
    descent = nk.GradientDescent(float(0.5 / np.linalg.eigvalsh(nk.kernels.NTK(make(4))(x))[-1]), 25)
    found = measured(make, x, y, descent, new, 3000, (8, 16))
    theory, errors = predicted(make(10**8), x, y, descent, new)
    assert_agree(found, theory, errors, {"mean": 6})


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.8, 1.3])
def test_one_training_point(rate):
    """Also where residuals change their sign at each step."""
    rng = np.random.default_rng(0)
    x, new, y = rng.normal(size=(1, 3)), rng.normal(size=(1, 3)), np.array([-0.9])
    make = lambda width: nk.MLP(3, (width,), 1, "relu", weight_var=2.0, bias_var=0.1)
    descent = until_trained(make(4), x, rate)
    found = measured(make, x, y, descent, new, 4000, (16, 32))
    theory, errors = predicted(make(10**8), x, y, nk.GradientDescent(descent.lr), new)
    assert_agree(found, theory, errors, {"mean": 6, "cov": 4})
