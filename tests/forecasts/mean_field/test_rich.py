"""`forecast` of mean-field networks: published values, limits that are known otherwise, laws, and what it refuses."""

import warnings

import jax
import numpy as np
import pytest
import scipy.integrate

import nearkernel as nk
from nearkernel.forecasts import MeanField

RNG = np.random.default_rng(12)
X, NEW = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))
Y = np.array([0.9, -0.4, 0.3, -1.1])
FEW = MeanField(neurons=1024, scrambles=4)


def network(activation="tanh", widths=(64,), out=1, bias_var=0.0, **options):
    options = {"weight_var": 1.5, "bias_var": bias_var, "parametrization": "mean_field"} | options
    return nk.MLP(3, widths, out, activation, **options)


def rich(net, richness, y=Y, lr=0.05, steps=20, x=X, new=NEW, clouds=FEW, **options):
    """With the learning rate of the network that is not scaled, so that the lazy limit does not depend on it."""
    descent = nk.GradientDescent(lr * richness**2, steps)
    return nk.forecast(nk.Scaled(net, 1 / richness), x, y, descent, new, theory=clouds, **options)


# (activation, widths, bias variance, weight variance, richness, lr, steps, x, y, new, outputs, their errors)
PUBLISHED = [
    ("tanh", (64,), 0.0, 1.5, 1.0, 0.12, 40,
     [(.03, 1.36, 1.22), (-.51, -.3, -.53), (.57, -.06, .75), (-1.85, 1.57, -.1)], (.95, .15, 1.44, -.89),
     [(.68, -.14, -.38), (.46, .82, -.2)], (-.42272, -.73912), (4e-5, 7e-5)),
    ("relu", (64,), 0.0, 2.0, 2.0, 0.06, 40,
     [(-.01, 1.05, .74), (.72, 1.62, -1.21), (-.63, -1.32, -.11), (1, -.02, .5)], (-.72, -.94, .51, 1.34),
     [(-1.91, .15, -.91), (1.78, .89, .95)], (.0112, 1.4871), (1e-4, 1e-4)),
    ("tanh", (64, 64), 0.0, 1.5, 1.0, 0.1, 30,
     [(1.83, -3.08, .96), (.07, 1.32, .39), (1.83, .03, -.52), (.58, .43, -.36)], (-.76, .83, 1.44, .12),
     [(-.25, .72, .7), (-.49, -.37, -1.81)], (.4757, -.6209), (5e-4, 14e-4)),
    ("erf", (64, 64), 0.1, 1.5, 2.0, 0.06, 30,
     [(.7, -.98, -1.57), (-2.92, -.35, 1.25), (.03, .51, 1.02), (-.88, 2.65, -.88)], (1.41, -.6, -.11, 1.17),
     [(.37, 2.74, -.11), (.11, -.51, .33)], (1.0469, .0284), (11e-4, 9e-4)),
]  # fmt: skip


@pytest.mark.parametrize("case", PUBLISHED, ids=["one tanh", "one relu", "two tanh", "two erf"])
def test_published_values(case):
    """Four networks that independent code has solved and trained, within 4 errors of both."""
    activation, widths, bias_var, weight_var, richness, lr, steps, x, y, new, expected, errors = case
    net = network(activation, widths, bias_var=bias_var, weight_var=weight_var)
    clouds = (
        MeanField(neurons=2**15, scrambles=8) if len(widths) == 1 else MeanField(neurons=2048, scrambles=4)
    )
    found = rich(net, richness, np.array(y), lr, steps, np.array(x), np.array(new), clouds)
    assert found.ok and str(found.status) == f"stopped at step {steps}"
    assert found.error.max() < (1e-3 if len(widths) == 1 else 0.012)
    assert np.abs((found.mean - expected) / np.hypot(found.error, errors)).max() < 4


@pytest.mark.parametrize("widths", [(64,), (64, 64)])
def test_small_richness_is_the_kernel_prediction(widths):
    net = network("gelu", widths, bias_var=0.2)
    found = rich(net, 1e-3)
    lazy_net = network("gelu", widths, bias_var=0.2, parametrization="ntk")
    lazy = nk.forecast(lazy_net, X, Y, nk.GradientDescent(0.05, 20), NEW)
    np.testing.assert_allclose(found.mean, lazy.mean, atol=1e-4)
    assert found.error.max() < 1e-4 and found.at(0).mean == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("widths, x, y", [((48,), X[:2], Y[:2]), ((48, 48), X[1:4], Y[1:4])])
def test_first_effect_of_richness_is_the_cubic_part_of_finite_width(widths, x, y):
    """f = f_lazy + richness^2 c with c = width times what targets of order three do to `forecast(order=1)`."""
    lazy = network("linear", widths, parametrization="ntk")

    def ddntk(y):
        found = nk.forecast(lazy, x, y, nk.GradientDescent(0.05, 15), NEW[:1], theory=nk.FiniteWidth())
        return widths[-1] * found.contributions["ddntk"].mean

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the whole correction need not be small
        expected = (ddntk(2 * y) - 2 * ddntk(y)) / 6
    start = nk.forecast(lazy, x, y, nk.GradientDescent(0.05, 15), NEW[:1]).mean
    outputs = [rich(network("linear", widths), g, y, steps=15, x=x, new=NEW[:1]) for g in (0.03, 0.06)]
    slopes = [(each.mean - start) / g**2 for each, g in zip(outputs, (0.03, 0.06), strict=True)]
    np.testing.assert_allclose((4 * slopes[0] - slopes[1]) / 3, expected, rtol=3e-4)
    assert all(each.error.max() == 0.0 for each in outputs)


@pytest.mark.parametrize("richness, y", [(0.4, 1.0), (1.0, -1.5), (2.0, 1.2)])
def test_kernel_of_a_linear_network_on_one_point(richness, y):
    """Flow conserves K^2 - 4 (richness f)^2, hence K = 2 sqrt(1 + (richness y)^2) at its end."""
    x = np.sqrt(3) * np.array([[0.6, 0.0, 0.8]])
    net, time = network("linear", weight_var=1.0), 6.0 * richness**2
    found = nk.forecast(nk.Scaled(net, 1 / richness), x, np.array([y]), nk.GradientFlow(time), x)
    kernel = 2 * np.sqrt(1 + (richness * y) ** 2)
    assert found.mean[0] == pytest.approx(y, rel=1e-5) and found.error[0] < 1e-6
    assert found.kernels().ntk[0, 0] == pytest.approx(kernel, rel=1e-4)
    early = found.kernels(0.1 * time)
    assert early.ntk[0, 0] ** 2 - 4 * (richness * found.at(0.1 * time).mean[0]) ** 2 == pytest.approx(
        4.0, rel=1e-3
    )
    assert found.kernels(0).moved < 1e-12


def test_flow_conserves_what_homogeneous_layers_share():
    """Of every relu neuron a^2 - |w|^2 stays, and d<a^2>/dt = -2 richness^2 sum e f in the time of the network."""
    richness = 1.5
    net = network("relu", weight_var=2.0)
    law = nk.forecast(
        nk.Scaled(net, 1 / richness),
        X,
        Y,
        nk.GradientFlow(2.0),
        NEW,
        theory=nk.MeanField(neurons=256, scrambles=2),
    )
    start, end = law.neurons(1, 0), law.neurons(1)
    both = np.concatenate([X, NEW]) * np.sqrt(2.0 / 3)
    sizes = [
        (np.linalg.lstsq(both, each.preactivations.T, rcond=None)[0] ** 2).sum(axis=0)
        for each in (start, end)
    ]
    conserved = [each.readout[:, 0] ** 2 - size for each, size in zip((start, end), sizes, strict=True)]
    assert np.abs(sizes[1] - sizes[0]).max() > 0.3
    off = np.abs(conserved[1] - conserved[0])
    assert (
        np.median(off) < 1e-5 and off.mean() < 5e-3
    )  # a neuron that crosses its kink costs the error of a step
    gained = [each.weights @ each.readout[:, 0] ** 2 for each in (start, end)]
    power = -2 * ((law.train - Y) * law.train).sum(axis=1)  # time is richness^2 times that of the network
    assert gained[1] - gained[0] == pytest.approx(scipy.integrate.simpson(power, x=law.times), rel=0.02)


@pytest.mark.parametrize("widths", [(64,), (32, 64)])
def test_only_richness_times_targets_matters(widths):
    net = network("erf", widths, bias_var=0.1)
    np.testing.assert_allclose(
        0.6 * rich(net, 0.6, clouds=MeanField(neurons=512, scrambles=2)).mean,
        rich(net, 1.0, 0.6 * Y, clouds=MeanField(neurons=512, scrambles=2)).mean,
        atol=1e-8,
    )


def test_points_may_come_in_any_order():
    order = [2, 0, 3, 1]
    for activation, atol in (("linear", 1e-9), ("tanh", None)):
        net = network(activation, (64, 64))
        one, two = rich(net, 1.0), rich(net, 1.0, Y[order], x=X[order])
        np.testing.assert_array_less(np.abs(one.mean - two.mean), atol or 4 * np.hypot(one.error, two.error))


@pytest.mark.parametrize("widths", [(64,), (64, 64)])
def test_a_new_point_that_is_a_training_point(widths):
    found = rich(network("tanh", widths), 1.5, new=np.concatenate([NEW, X[1:2]]))
    assert found.mean[-1] == pytest.approx(found.train[-1, 1], abs=1e-5)


def test_new_points_are_met_before_training():
    """At small richness what clouds know of new points only at the end would be noise divided by the richness."""
    found = rich(network("tanh", (64, 64)), 0.05, steps=30)
    lazy = nk.forecast(
        network("tanh", parametrization="ntk", widths=(64, 64)), X, Y, nk.GradientDescent(0.05, 30), NEW
    )
    assert np.abs(found.mean - lazy.mean).max() < 0.01
    assert found.error.max() < 0.01


def test_the_record_moves_in_time_and_to_other_inputs():
    net = network("tanh")
    found = rich(net, 1.2, steps=12)
    assert found.train.shape == (13, 4) and found.loss.shape == found.times.shape == (13,)
    np.testing.assert_allclose(found.loss, 0.5 * ((found.train - Y) ** 2).sum(axis=1), rtol=1e-12)
    early = found.at(5)
    fresh = rich(net, 1.2, steps=5)
    np.testing.assert_allclose(early.mean, fresh.mean, atol=1e-12)
    np.testing.assert_allclose(early.train, fresh.train, atol=1e-12)
    assert str(early.status) == "stopped at step 5" and early.times[-1] == 5
    np.testing.assert_allclose(found.predict(NEW[:2]).error, found.error[:2], rtol=1.0)
    assert np.abs(found.predict(NEW[:2]).mean - found.mean[:2]).max() < 4 * found.error.max()
    np.testing.assert_array_equal(found.cov, 0.0)
    np.testing.assert_array_equal(found.sample(2, jax.random.key(0)), np.stack([found.mean] * 2))
    assert found.richness == pytest.approx(1.2) == nk.richness(nk.Scaled(net, 1 / 1.2))


def test_kernels_start_as_the_closed_forms_and_move():
    net = network("erf", (64, 64), bias_var=0.2)
    found = rich(net, 1.0)
    both = np.concatenate([X, NEW])
    first, last = found.kernels(0), found.kernels()
    assert np.abs(first.ntk - nk.kernels.NTK(net)(both)).max() < 5 * first.error.max()
    last_metric = nk.kernels.NNGP(network("erf", (64, 64), bias_var=0.2, parametrization="ntk"))(both)
    np.testing.assert_allclose(1.5 * first.features[1] + 0.2, last_metric, atol=0.03)
    assert first.moved < 1e-12 and last.moved > 0.1 and len(last.gradients) == 2


def test_the_spread_of_linear_networks_is_that_of_trained_ones():
    """Clouds drawn at a width are networks of that width: variances of `spread` and `simulate`, within 4 errors."""
    net = network("linear", (128,))
    found = rich(net, 1.0, steps=10)
    spread = found.spread(128, draws=100)
    model = nk.Scaled(net, 1.0)

    def outputs(params):
        run = nk.simulate(model, params, X, Y, nk.GradientDescent(0.05, 10))
        return model(run.params, NEW)[:, 0]

    with jax.enable_x64(True):
        drawn = np.array([outputs(model.init(jax.random.key(k))) for k in range(2)])
    assert (
        drawn.shape == (2, 3)
        and spread.cov.shape == (3, 3)
        and spread.sample(5, jax.random.key(0)).shape == (5, 3)
    )
    squares = nk.measure(lambda params: (outputs(params) - found.mean) ** 2, model, 300, jax.random.key(1))
    ratio = spread.std**2 / squares.mean
    np.testing.assert_array_less(
        np.abs(ratio - 1), 4 * np.hypot(2 * spread.error, squares.sem / squares.mean)
    )
    np.testing.assert_allclose(found.spread(512, draws=100).std, spread.std / 2, rtol=1e-12)


def test_single_precision_and_rare_looks_change_little():
    net = network("tanh", (64, 64))
    whole = rich(net, 1.0)
    for clouds in (
        MeanField(neurons=1024, scrambles=4, dtype="float32"),
        MeanField(neurons=1024, scrambles=4, look=4, every=10),
    ):
        other = rich(net, 1.0, clouds=clouds)
        assert np.abs(other.mean - whole.mean).max() < 2 * whole.error.max()
    with pytest.raises(ValueError, match="`time` = 7 was not stored, only every 10 steps"):
        other.at(7)
    assert other.at(10).ok and other.train.shape == (21, 4)


def test_several_outputs_come_back_in_the_shape_of_y():
    y = np.eye(2)[[0, 1, 1, 0]]
    found = rich(network("tanh", out=2), 1.0, y, loss="cross_entropy", lr=0.3)
    assert found.mean.shape == found.error.shape == (3, 2) and found.train.shape == (21, 4, 2)
    assert found.loss[0] == pytest.approx(4 * np.log(2)) and found.loss[-1] < 0.5 * found.loss[0]
    assert found.kernels(0).ntk.shape == (7, 2, 7, 2)
    assert found.spread(64, draws=4).cov.shape == (3, 2, 3, 2)
    with pytest.raises(ValueError, match="`y` has 1 outputs per row; the model has 2"):
        rich(network("tanh", out=2), 1.0)


def test_rates_beyond_the_moved_kernel_are_a_status():
    shares = []
    clouds = MeanField(neurons=256, scrambles=2, watch=lambda share, left: shares.append((share, left)))
    wild = rich(network("relu"), 3.0, 3 * Y, lr=0.4, steps=60, clouds=clouds)
    assert (
        not wild.ok
        and wild.status == nk.StatusKind.diverged
        and "of the current kernel was" in str(wild.status)
    )
    assert np.isnan(wild.mean).all() and wild.at(1).ok
    assert shares[-1][0] == pytest.approx(1.0) and shares[-1][1] == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="training stops before 60: see `status`"):
        wild.kernels()


def test_too_few_neurons_are_a_status():
    few = rich(network("relu", (64, 64)), 2.0, steps=60, clouds=MeanField(neurons=64, scrambles=2, tol=1e-3))
    assert not few.ok and few.status == nk.StatusKind.not_converged
    assert "out of directions at step " in str(few.status) and "more neurons" in str(few.status)
    assert np.isnan(few.mean).all()


def test_layers_may_have_variances_and_activations_of_their_own():
    """A variance of the first weights is a scale of the inputs; equal values are one value."""
    own = rich(network(weight_var=(2.0, 1.5)), 1.0).mean
    scale = (2.0 / 1.5) ** 0.5
    np.testing.assert_allclose(own, rich(network(), 1.0, x=scale * X, new=scale * NEW).mean, rtol=1e-6)
    deep = {"widths": (64, 64), "weight_var": (1.5,) * 3, "bias_var": (0.1,) * 3}
    listed = rich(network(("tanh", "tanh"), **deep), 1.0, steps=3).mean
    np.testing.assert_allclose(
        listed, rich(network(widths=(64, 64), bias_var=0.1), 1.0, steps=3).mean, rtol=1e-6
    )


@pytest.mark.slow
def test_networks_whose_layers_differ_follow_their_limit():
    """Four networks of width 1500, with biases in hidden layers alone: 4 sigmas of both, and 0.02 of finite width."""
    net = network(("tanh", "erf"), (1500, 1500), weight_var=(2.0, 1.5, 1.2), bias_var=(0.3, 0.1, 0.0))
    descent = nk.GradientDescent(0.2, 10)
    law = nk.forecast(net, X, Y, descent, NEW, theory=FEW)
    trained = []
    for seed in range(4):
        params = net.init(jax.random.key(seed))
        ran = nk.simulate(net, params, X, Y, descent, lr_factors=net.lr_factors())
        trained.append(np.asarray(net(ran.params, NEW))[:, 0])
    sem = np.std(trained, axis=0, ddof=1) / 2
    np.testing.assert_array_less(np.abs(np.mean(trained, axis=0) - law.mean), 4 * sem + 4 * law.error + 0.02)


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"algorithm": nk.GradientDescent(0.1)}, ValueError, "needs finite `steps`, since"),
        ({"algorithm": nk.GradientFlow()}, ValueError, "needs finite `time`, since"),
        ({"algorithm": nk.GradientFlow(1.0, friction=1.0)}, ValueError, "`friction` must be None"),
        ({"algorithm": nk.Ridge(0.1)}, ValueError, "an `algorithm` with steps or a time .* got Ridge"),
        ({"algorithm": nk.SGD(0.1, 2, 5)}, ValueError, "`SGD` draws batches: pass `key"),
        ({"problem": network(bias_var=0.1)}, ValueError, "`problem` has a random output bias"),
        ({"problem": network(bias_var=(0.0, 0.1))}, ValueError, "or `bias_var=0` in the last layer"),
        ({"problem": nk.Scaled(network(bias_var=0.1), 1.0), "algorithm": nk.SGD(0.1, None, 5, weight_decay=0.1)},
         ValueError, "`weight_decay` decays the output bias"),
        ({"problem": nk.Scaled(network(bias_var=0.1), 1.0, False)}, ValueError, "`problem` has a random output bias"),
        ({"problem": nk.from_function(lambda p, x: x)}, TypeError, "got FunctionModel"),
        ({"problem": network(lambda z: 0.0 * z + 1.0)}, ValueError, "activation of `net` must have a finite nonzero"),
        ({"theory": nk.FiniteWidth()}, ValueError, r"needs a network; got .*These fit: nk\.MeanField\(\)"),
        ({"problem": nk.MLP(3, ()), "theory": FEW}, TypeError, "with a hidden layer, .*; got MLP"),
        ({"problem": nk.MLP(3, (8,), parametrization="mup"), "theory": FEW}, TypeError, "; got MLP"),
        ({"x": RNG.normal(size=(60, 3)), "y": np.ones(60), "theory": MeanField(neurons=64),
          "problem": network(widths=(8, 8))}, ValueError, "points are too many for clouds of 64 neurons"),
    ],
)  # fmt: skip
def test_what_it_refuses_costs_one_line(change, error, message):
    arguments = {
        "problem": network(),
        "x": X,
        "y": Y,
        "algorithm": nk.GradientDescent(0.1, 5),
        "x_new": NEW,
    } | change
    with pytest.raises(error, match=message):
        nk.forecast(**arguments)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"neurons": 1000}, "`neurons` must be a power of 2, e.g. 4096; got 1000"),
        ({"scrambles": 1}, "`scrambles` must be at least 2; got 1"),
        ({"tol": 0.7}, "`tol` must be below 0.5; got 0.7"),
        ({"dtype": "float16"}, "`dtype` must be one of"),
        ({"watch": 3}, "`watch` must be a function of"),
    ],
)
def test_clouds_are_checked(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MeanField(**options)


def test_times_and_layers_are_checked():
    found = rich(network(), 1.0, steps=5, clouds=MeanField(neurons=64, scrambles=2))
    for time in (6, 2.5):
        with pytest.raises(ValueError, match="`time` must be a step up to 5"):
            found.at(time)
    with pytest.raises(ValueError, match="`layer` must be a hidden layer, 1 to 1; got 2"):
        found.neurons(2)
    with pytest.raises(ValueError, match="`neurons` are not available for a deep linear network"):
        rich(network("linear"), 1.0, steps=2).neurons(1)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (nk.GradientDescent(0.05, 12), {}),
        (nk.SGD(0.03, 2, 8, momentum=0.5, weight_decay=0.1), {"key": jax.random.key(3)}),
        (nk.GradientFlow(0.4), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_influences_of_neurons_give_the_spread_of_drawn_networks(algorithm, options):
    """c of one hidden layer by theory, against c measured in networks of clouds, within 4 errors."""
    net = nk.MLP(3, (64,), 1, "tanh", weight_var=1.5, parametrization="mean_field")
    clouds = nk.MeanField(neurons=256, scrambles=2, every=100)
    law = nk.forecast(nk.Scaled(net, 1.5), X, Y, algorithm, NEW, theory=clouds, **options)
    known, drawn = law.spread(100), law.spread(100, draws=150)
    assert known.draws == 0 and known.error < 0.02 and drawn.draws == 150
    np.testing.assert_array_less(np.abs(known.variance / drawn.variance - 1), 4 * 2 * drawn.error)
    np.testing.assert_allclose(law.spread(400).cov, known.cov / 4, rtol=1e-12)


def test_the_spread_where_there_is_no_theory_of_it_is_measured():
    for net in (network("relu"), nk.MLP(3, (32, 32), 1, "tanh", parametrization="mean_field")):
        law = rich(net, 1.0, steps=2)
        assert law.spread(64).draws == 64
