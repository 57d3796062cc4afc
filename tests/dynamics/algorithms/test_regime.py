"""`nk.regime` says which theory to trust; forecasts, solutions and inspections say it too."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

rng = np.random.default_rng(0)
X, X_NEW = rng.normal(size=(6, 3)), rng.normal(size=(2, 3))
Y = np.sign(X[:, 0])


def mean_field(width=64, out=1):
    return nk.MLP(3, (width,), out, "tanh", parametrization="mean_field")


@pytest.mark.parametrize(
    ("model", "y", "name"),
    [
        (nk.MLP(3, (10_000,)), Y, "lazy"),
        (nk.MLP(3, (10_000,)), 20 * Y, "nearly lazy"),
        (nk.MLP(3, (10_000,)), 100 * Y, "rich"),
        (mean_field(), Y, "rich"),
        (nk.Scaled(mean_field(), 4.0), Y, "nearly lazy"),
        (nk.Scaled(mean_field(), 40.0), Y, "lazy"),
        (nk.Scaled(mean_field(), 4.0), 0.1 * Y, "lazy"),
    ],
)
def test_richness_times_targets_decides(model, y, name):
    found = nk.regime(model, y)
    assert found.name == name and str(found).startswith(f"{name}: it")
    assert found.strength == pytest.approx(nk.richness(model) * np.sqrt(np.mean(y**2)))
    assert found.moved == found.strength**2 and found.correction is None


def test_sizes_of_what_width_leaves():
    wide = nk.MLP(3, (10_000, 2500))
    found = nk.regime(wide, Y)
    assert found.aspect == pytest.approx(5e-4) and found.noise == pytest.approx(5e-4**0.5)
    assert found.width == 2500 and found.richness == pytest.approx(0.02)
    assert nk.regime(mean_field(out=2), np.ones((4, 2))).strength == pytest.approx(np.sqrt(2))
    linear = nk.regime(nk.MLP(3, ()), Y)
    assert linear.name == "lazy" and linear.width == 0 and linear.noise == 0


def test_a_network_of_dense_layers_is_in_the_regime_of_its_mlp():
    Dense, Activation = nk.layers.Dense, nk.layers.Activation
    network = nk.Network((3,), [Dense(50), Activation("tanh"), Dense(100), Activation("tanh"), Dense(1)])
    same = nk.MLP(3, (50, 100), 1, "tanh")
    assert nk.regime(network, Y) == nk.regime(same, Y)
    laws = [nk.forecast(net, X, Y, nk.GradientFlow(5.0), X_NEW) for net in (network, same)]
    assert laws[0].regime == laws[1].regime and "regime='nearly lazy" in repr(laws[0])


def test_one_narrow_network_is_nearer_to_its_own_kernel_than_to_the_limit():
    narrow, wide = (
        nk.regime(nk.Scaled(mean_field(32), 2.0), Y),
        nk.regime(nk.Scaled(mean_field(2048), 2.0), Y),
    )
    assert narrow.name == wide.name == "rich" and narrow.narrow and not wide.narrow
    assert narrow.advice == wide.advice + " for the average network, or order 0 of nk.solve for one network"
    assert not nk.regime(mean_field(32), Y).narrow and not nk.regime(nk.MLP(3, (4,)), 0.01 * Y).narrow


def test_a_large_correction_overrules_the_richness_and_alone_decides_of_other_models():
    wide = nk.MLP(3, (10_000,))
    assert nk.regime(wide, Y, correction=0.3).name == "rich"
    assert nk.regime(wide, 20 * Y, correction=0.001).name == "nearly lazy"
    other = nk.from_function(lambda theta, x: x @ theta)
    for correction, name in ((0.001, "lazy"), (0.05, "nearly lazy"), (0.2, "rich"), (np.inf, "rich")):
        found = nk.regime(other, Y, correction)
        assert found.name == name and found.richness is found.strength is found.moved is None
        assert "Scaled" not in found.advice
    with pytest.raises(TypeError, match=r"`model` must be an nk\.MLP, an nk\.Network of Dense"):
        nk.regime(other, Y)


def test_forecasts_say_it():
    wide, flow = nk.MLP(3, (10_000,), activation="tanh"), nk.GradientFlow(5.0)
    law = nk.forecast(wide, X, Y, flow, X_NEW)
    assert law.regime.name == law.at(1.0).regime.name == law.predict(X).regime.name == "lazy"
    assert "regime='lazy'" in repr(law)
    narrow = nk.forecast(nk.MLP(3, (16,), activation="tanh"), X, Y, flow, X_NEW)
    assert (
        "regime='nearly lazy: its tangent kernel changes a little; use nk.forecast with theory=nk.FiniteWidth()"
        in repr(narrow)
    )
    rich = nk.forecast(wide, X, 100 * Y, flow, X_NEW)
    assert "use nk.forecast with theory=nk.MeanField()" in repr(rich)
    kernels = nk.kernels.NNGP(wide), nk.kernels.NTK(wide)
    for unknown in (
        nk.forecast(kernels, X, Y, flow, X_NEW),
        nk.forecast((nk.kernels.NNGP(wide),) * 2, X, Y, flow, X_NEW),
    ):
        assert unknown.regime is None and "regime" not in repr(unknown)


def test_forecasts_by_other_theories_say_it():
    steps = nk.GradientDescent(0.05, 3)
    few = nk.MeanField(neurons=64, scrambles=2)
    limit = nk.forecast(nk.Scaled(mean_field(), 2.0), X, Y, steps, X_NEW, theory=few)
    assert limit.regime.name == "rich" and limit.regime.strength == pytest.approx(0.5)
    assert "regime='rich'," in repr(limit)
    net = nk.MLP(3, (16,), activation="tanh")
    sampled = nk.forecast(
        net,
        X,
        (Y > 0).astype(int),
        nk.GradientFlow(1.0),
        X_NEW,
        loss="cross_entropy",
        key=0,
        theory=nk.InfiniteWidth(samples=4),
    )
    assert sampled.regime.name == "nearly lazy" and "regime=" in repr(sampled)
    drawn = nk.forecast(net, X, Y, nk.SGD(0.05, 2, 3), X_NEW)
    assert drawn.regime.name == "nearly lazy" and "regime=" in repr(drawn)


def test_first_order_forecasts_say_it():
    net = nk.MLP(2, (30,), activation="tanh")
    law = nk.forecast(net, X[:2, :2], Y[:2], nk.GradientFlow(1.0), X_NEW[:1, :2], theory=nk.FiniteWidth())
    assert law.regime.name == "nearly lazy" and "regime='nearly lazy'" in repr(law)


def test_solutions_say_it_and_warn_with_it():
    net = nk.MLP(3, (16,), activation="tanh")
    params = net.init(jax.random.key(0))
    for problem in (nk.kernels.NTK(net), nk.kernels.EmpiricalNTK(net, params), nk.expand(net, params)):
        solution = nk.solve(problem, X, Y)
        assert solution.regime.name == "nearly lazy" and "regime='nearly lazy'" in repr(solution)
    assert nk.solve(nk.kernels.RBF(1.0), X, Y).regime is None
    first = nk.solve(nk.expand(net, params, degree=2), X, 5 * Y, order=1)
    with pytest.warns(
        UserWarning, match="not small.*The network is rich: it learns features; use nk.forecast"
    ):
        first.predict(X_NEW)


def test_inspections_say_it_of_any_network():
    steps = nk.GradientDescent(0.05, 3)
    net = nk.MLP(3, (400,), activation="tanh")
    params = net.init(jax.random.key(0))
    known = nk.inspect(net, params, X, Y, algorithm=steps)
    assert known.regime.name == "lazy" and known.regime.correction == known.check[-1]
    other = nk.from_function(lambda theta, x: jnp.tanh(x @ theta))
    found = nk.inspect(other, jnp.ones((3, 1)), X, Y, algorithm=steps)
    assert found.regime.richness is None and f"regime={found.regime.name!r}" in repr(found)


@pytest.mark.slow
def test_the_named_theory_is_the_best_one_of_trained_networks():
    """Over richness and width: the theory that is named is within a factor 1.5 of the best, or within 1 %."""
    draw = np.random.default_rng(5).normal(size=(20, 6))
    x = np.sqrt(6) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    x, new, y, steps = x[:10], x[10:], np.sign(draw[:10, 0]), 60
    make = lambda size, how: nk.MLP(6, (size,), 1, "tanh", weight_var=2.0, parametrization=how)
    rate = 0.3 / float(np.linalg.eigvalsh(nk.kernels.NTK(make(8, "ntk"))(x))[-1])
    good, told = [], []
    for richness in (0.03, 0.06, 0.13, 0.22, 0.6, 1.0, 2.0):
        clouds = nk.MeanField(neurons=4096, scrambles=2, every=steps)
        limit_net = nk.Scaled(make(64, "mean_field"), 1 / richness)
        limit = nk.forecast(
            limit_net, x, y, nk.GradientDescent(rate * richness**2, steps), new, theory=clouds
        )
        for width, seed in ((64, 0), (64, 1), (1024, 0), (1024, 1)):
            alpha = 1 / (richness * width**0.5)
            model = nk.Scaled(make(width, "ntk"), alpha)
            descent = nk.GradientDescent(rate / alpha**2, steps)
            params = model.init(jax.random.key(seed))
            trained = np.asarray(model(nk.simulate(model, params, x, y, descent).params, new))[:, 0]
            expanded = nk.expand(model, params, degree=3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                orders = [nk.solve(expanded, x, y, descent, order).predict(new).mean for order in (0, 2)]
            theories = dict(zip(("lazy", "nearly lazy", "rich"), (*orders, limit.mean), strict=True))
            off = {
                name: np.linalg.norm(mean - trained) / np.linalg.norm(trained)
                for name, mean in theories.items()
            }
            found = nk.regime(model, y)
            named = "lazy" if found.narrow else found.name
            good.append(off[named] <= 1.5 * min(off.values()) + 0.01)
            told.append((richness, named, off))
    assert np.mean(good) >= 0.85, told
