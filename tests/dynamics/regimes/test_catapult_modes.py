"""Large steps on one point in modes, bounds of one step, observables of one's own, complexity of a ball."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

D = nk.dynamics
KEY = jax.random.key(3)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_modes_follow_descent_of_the_quadratic_model(activation):
    net = nk.MLP(2, (30,), 1, activation)
    params = net.init(KEY)
    x = np.array([[0.7, -0.4]])
    modes = nk.theory.output_modes(net, params, x)
    lr, steps, y = 2.6 / modes.ntk, 40, 0.3
    path = nk.theory.mode_catapult(modes, y, lr, steps)
    record = nk.Record({"z": lambda p: nk.expand(net, params, 2)(p, x)[0, 0]}, every=1)
    run = nk.simulate(
        nk.expand(net, params, 2), params, x, np.array([y]), nk.GradientDescent(lr, steps), record
    )
    np.testing.assert_allclose(path.z, run.history["z"], rtol=1e-6, atol=1e-8)


def test_two_modes_are_the_two_numbers_of_the_relu_network():
    c, g = 0.01, np.array([0.6, 0.4])
    # of a network at z = (g_+^2 - g_-^2)/(2 c)
    modes = nk.results.ModesResult((g[0] ** 2 - g[1] ** 2) / (2 * c**0.5), g, np.array([1.0, -1.0]) * c**0.5)
    found = nk.theory.mode_catapult(modes, 0.5, np.array([1.0, 4.5]), 30)
    theory = nk.theory.catapult(modes.z, modes.ntk, 0.5, c, np.array([1.0, 4.5]), 30)
    np.testing.assert_allclose(found.ntk[:20], theory.ntk[:20], rtol=1e-9)


def test_any_observable_is_the_same_before_and_after_a_step_at_rest():
    x = np.array([[1.0, 0.2], [0.3, -1.0], [-0.7, 0.5], [0.1, 0.9]])
    y = np.array([1.0, -0.5, 0.2, 0.4])
    model, sgd = nk.FeatureModel(lambda x: x, in_dim=2), nk.SGD(0.05, 1, 20_000)
    start = model.init()
    square = lambda p: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))
    change = nk.theory.step_change(square, model, start, x, y, sgd)
    rest = nk.theory.sgd_stationary(x, y, sgd)
    # E[change] = lr^2 tr C - 2 lr <theta.grad L> at a theta; exact at the start: theta = 0
    moment = nk.theory.gradient_moment(model, start, x, y, 1)
    assert float(change(start)) == pytest.approx(0.05**2 * np.trace(moment), rel=1e-5)
    run = nk.simulate(model, start, x, y, sgd, nk.Record({"change": change, "square": square}, 10), key=KEY)
    late = run.history["change"][200:]
    blocks = late[: len(late) // 20 * 20].reshape(20, -1).mean(axis=1)
    assert abs(blocks.mean()) < 4 * blocks.std(ddof=1) / 20**0.5
    assert np.isfinite(rest.loss)


def test_bounds_of_one_step_have_their_powers():
    target = nk.theory.MultiIndexPolynomial(np.eye(2, 16), {(2, 0): 1.0, (0, 2): -1.0})
    one, many = nk.theory.one_step_bound(target, 1000, 100), nk.theory.one_step_bound(target, 4000, 400)
    assert many.data == pytest.approx(one.data / 2) and many.neurons == pytest.approx(one.neurons / 2)
    assert many.head == pytest.approx(one.head / 2)
    assert one.risk == pytest.approx(one.data + one.neurons + one.descent)
    assert nk.theory.query_bound(100, 4).points == pytest.approx((100 / np.log(100)) ** 2)
    assert nk.theory.query_bound(100, 4, 10).tolerance == pytest.approx(np.log(1000) / 100)


def test_a_small_start_that_is_not_symmetric_finds_the_directions():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 12))
    y = x[:, 0] ** 2 - x[:, 1] ** 2
    pairs = nk.theory.one_step_features(x, y, 100, KEY, subspace=np.eye(2, 12))
    free = nk.theory.one_step_features(x, y, 100, KEY, subspace=np.eye(2, 12), head=1e-3)
    assert pairs.overlap > 0.9 and free.overlap > 0.9
    assert np.unique(np.abs(free.signs)) == 1e-3
    large = nk.theory.one_step_features(x, y, 100, KEY, subspace=np.eye(2, 12), head=1.0)
    assert large.share < free.share  # its own outputs outweigh the target


def test_complexity_is_below_its_bound_and_that_of_a_line():
    x = np.random.default_rng(1).normal(size=(40, 3))
    found = nk.theory.rademacher(nk.kernels.Linear(), x, 2.0)
    assert found.value <= found.bound
    signs = np.random.default_rng(2).choice([-1.0, 1.0], (4000, 40))
    brute = 2.0 / 40 * np.linalg.norm(signs @ x, axis=1)  # sup over |w| <= 2 of w . mean(s x)
    assert abs(found.value - brute.mean()) < 4 * np.hypot(found.sem, brute.std() / 4000**0.5)


def test_errors_name_the_argument():
    net = nk.MLP(2, (3,), 1, "tanh")
    params = net.init(KEY)
    with pytest.raises(ValueError, match=r"`x` must be one point, \(1, d\); got 2 points"):
        nk.theory.output_modes(net, params, np.ones((2, 2)))
    wide = nk.MLP(2, (3,), 2, "tanh")
    with pytest.raises(ValueError, match=r"`model` must have one output; got 2"):
        nk.theory.output_modes(wide, wide.init(KEY), np.ones((1, 2)))
    with pytest.raises(TypeError, match=r"`modes` must be an nk\.results\.ModesResult; got float"):
        nk.theory.mode_catapult(1.0, 0.0, 0.1, 3)
    with pytest.raises(ValueError, match=r"`modes` must have the same number of slopes and curvatures"):
        nk.theory.mode_catapult(nk.results.ModesResult(0.0, np.ones(2), np.ones(3)), 0.0, 0.1, 3)
    with pytest.raises(TypeError, match=r"`observable` must be a function of the parameters; got 3"):
        nk.theory.step_change(3, net, params, np.ones((2, 2)), np.ones(2), nk.SGD(0.1, 1, 3))
    with pytest.raises(ValueError, match=r"`sgd` must have at most 2000 batches of a fixed size;"):
        nk.theory.step_change(lambda p: 0.0, net, params, np.ones((30, 2)), np.ones(30), nk.SGD(0.1, 15, 3))
    with pytest.raises(ValueError, match=r"`target` must have a mean Hessian of full rank"):
        nk.theory.one_step_bound(nk.theory.MultiIndexPolynomial(np.eye(1, 3), {(3,): 1.0}), 10, 10)
    with pytest.raises(TypeError, match=r"`target` must be an nk\.theory\.MultiIndexPolynomial; got int"):
        nk.theory.one_step_bound(3, 10, 10)
    with pytest.raises(ValueError, match=r"`queries` must be at least 1; got 0\.5"):
        nk.theory.query_bound(3, 2, 0.5)
