"""The expected loss of every depth, leaving rows out: against single forecasts and trained networks."""

import jax
import numpy as np
import pytest

import nearkernel as nk

X = np.random.default_rng(0).normal(size=(4, 3))
Y = np.sin(X.sum(axis=1))
TRAINED = nk.GradientDescent(0.2, 30)


def network(depth=2, width=256, **options):
    return nk.MLP(3, (width,) * depth, options.pop("out", 1), "tanh", weight_var=1.2, bias_var=0.1, **options)


def test_every_depth_is_what_forecasts_of_it_say():
    y = np.stack([Y, Y**2], axis=1)
    found = nk.theory.depth_losses(network(out=2), X, y, TRAINED)
    assert found.depths.tolist() == [1, 2]
    for depth in (1, 2):
        rows = []
        for row in range(4):
            others = np.delete(np.arange(4), row)
            law = nk.forecast(
                network(depth, out=2), X[others], y[others], TRAINED, X[[row]], theory=nk.FiniteWidth()
            )
            rows.append(
                [law.expected_loss(y[[row]]).mean, law.expected_loss(y[[row]]).terms[0], law.expansion]
            )
        mean, wide, expansion = np.array(rows).T
        assert found.at(256)[depth - 1] == pytest.approx(mean.mean(), rel=1e-7)
        assert found.at(np.inf)[depth - 1] == pytest.approx(wide.mean(), rel=1e-7)
        assert found.expansion[depth - 1] == pytest.approx(256 * np.median(expansion), rel=1e-6)
    np.testing.assert_allclose(found.bias + found.variance, found.at(np.inf))
    assert found.best(256) == 1 + np.argmin(found.at(256))


@pytest.mark.slow
def test_losses_are_those_of_networks_that_were_trained():
    """Width 48: the change from infinite width is seen, and the order 1/width explains it."""
    theory = nk.theory.depth_losses(network(), X, Y, TRAINED)
    for depth in (1, 2):
        net = network(depth, 48)

        def loss(params, net=net):
            total = 0.0
            for row in range(4):
                others = np.delete(np.arange(4), row)
                end = nk.simulate(net, params, X[others], Y[others], TRAINED, nk.Record(every=30))
                other = [*params[:-1], jax.tree.map(lambda leaf: -leaf, params[-1])]
                turned = nk.simulate(net, other, X[others], Y[others], TRAINED, nk.Record(every=30))
                for run in (end, turned):
                    total = total + (net(run.params, X[[row]])[0, 0] - Y[row]) ** 2 / 16
            return total

        found = nk.measure(loss, net, 6000, jax.random.key(depth))
        said = theory.at(48)[depth - 1]
        assert abs(found.mean - said) < 4 * found.sem + 0.3 * abs(said - theory.at(np.inf)[depth - 1])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: (network(), X[:1], Y[:1]), "`x` must have at least two rows, all different"),
        (lambda: (network(), X[[0, 0]], Y[:2]), "`x` must have at least two rows, all different"),
        (lambda: (nk.MLP(3, (4, 5), 1, "tanh"), X, Y), "`net` must have the same width, activation"),
        (
            lambda: (nk.MLP(3, (4, 4), 1, ("tanh", "sin")), X, Y),
            "`net` must have the same width, activation",
        ),
        (lambda: (nk.MLP(3, (4, 4)), X, Y), r"`theory=nk\.FiniteWidth\(\)` needs smooth activations"),
        (lambda: (network(), X, Y, nk.GradientDescent(9.0)), "`algorithm` diverges: lr = 9"),
        (
            lambda: (nk.CNN((4, 4, 1)), X, Y),
            r"`depth_losses` supports inputs that are vectors; got inputs of shape \(4, 4, 1\)",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        nk.theory.depth_losses(*call())
