"""An argument that would have no effect is refused: who passes it expects one."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

S = nk.statistics
X, Y, NEW = helpers.points(8, 3), np.sin(np.arange(8.0)), helpers.points(4, 3)
NET = nk.MLP(3, (16,), 1, "tanh")
PARAMS = NET.init(jax.random.key(0))
RICH = nk.MLP(3, (16,), 1, "tanh", bias_var=0.0, parametrization="mean_field")
STEPS, FLOW, KERNEL = nk.GradientDescent(0.01, 3), nk.GradientFlow(), nk.kernels.RBF(1.0)
RATES = nk.results.Rates(cores=2, build=1e8, product=2e8, entries=1e8, flops=3e10, disk=1e9)
UNUSED = {
    "samples": (
        lambda: nk.forecast(NET, X, Y, FLOW, NEW, theory=nk.InfiniteWidth(samples=10)),
        "`samples` has no effect with the loss 'squared'",
    ),
    "key": (
        lambda: nk.forecast(NET, X, Y, FLOW, NEW, key=0),
        "`key` has no effect with the loss 'squared'",
    ),
    "key of moments": (
        lambda: nk.forecast(NET, X, Y, nk.SGD(0.01, 2, 3), NEW, key=0),
        "`key` has no effect with the loss 'squared'",
    ),
    "key, rich": (
        lambda: nk.forecast(RICH, X, Y, STEPS, NEW, key=0),
        "`key` has no effect if `algorithm` draws nothing",
    ),
    "key of descent": (
        lambda: nk.simulate(NET, PARAMS, X, Y, STEPS, key=0),
        "`key` has no effect if `algorithm` draws nothing",
    ),
    "key of full batches": (
        lambda: nk.simulate(NET, PARAMS, X, Y, nk.SGD(0.01, None, 3), key=0),
        "`key` has no effect if `algorithm` draws nothing",
    ),
    "tol of steps": (
        lambda: nk.simulate(NET, PARAMS, X, Y, STEPS, tol=1e-3),
        "`tol` has no effect if `algorithm` has a finite end",
    ),
    "max_steps of steps": (
        lambda: nk.simulate(NET, PARAMS, X, Y, STEPS, max_steps=10),
        "`max_steps` has no effect if `algorithm` has a finite end",
    ),
    "max_steps of a flow": (
        lambda: nk.simulate(NET, PARAMS, X, Y, FLOW, max_steps=10),
        "`max_steps` has no effect in a flow",
    ),
    "steps of inspect": (
        lambda: nk.inspect(NET, PARAMS, X, Y, None, STEPS, steps=3),
        "`steps` has no effect if `algorithm` is given",
    ),
    "key of a curve": (
        lambda: nk.learning_curve(KERNEL, X, Y, key=3),
        "`key` has no effect without `check`",
    ),
    "machines": (
        lambda: nk.scale.plan(1000, 5, RATES, machines=3),
        "`machines` has no effect without `workers`",
    ),
    "solver at order 1": (
        lambda: nk.solve(nk.expand(NET, PARAMS, 2), X, Y, order=1, solver="cg"),
        "`solver` 'cg' needs order 0",
    ),
}


@pytest.mark.parametrize("name", UNUSED)
def test_it_is_refused(name):
    call, message = UNUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


NONSENSE = {
    "average": (lambda: nk.learning_curve(KERNEL, X, Y, average=1), "`average` must be True or False; got 1"),
    **{
        f"sizes {sizes}": (lambda sizes=sizes: nk.learning_curve(KERNEL, X, Y, sizes=sizes), message)
        for sizes, message in [
            ([True], "`sizes` must be an integer; got True"),
            ((True, 3), "`sizes` must be an integer; got True"),
            (True, "`sizes` must be an integer; got True"),
            ([2.5], "`sizes` must be an integer; got 2.5"),
            ({3, 4}, "`sizes` must be a list such as"),
            ([], "`sizes` must be a list of integers of at least 1; got none"),
            ([0], "`sizes` must be at least 1; got 0"),
            ([9], "`sizes` must be at most the number of rows, 8; got 9"),
        ]
    },
    "sizes of features": (
        lambda: nk.learning_curve(KERNEL, X, Y).with_features(10, [True]),
        "`sizes` must be an integer; got True",
    ),
    "theory": (
        lambda: nk.forecast(NET, X[:2], Y[:2], FLOW, NEW[:1], theory=3),
        "`theory` must be an object of the class AbstractTheory; got 3",
    ),
    "no step": (
        lambda: S.coordinate_check(NET, X, Y, nk.GradientDescent(0.01, 0), draws=2),
        "`steps` of `algorithm` must be at least 1",
    ),
    "no step of Adam": (
        lambda: S.coordinate_check(NET, X, Y, nk.Adam(0.01, 0), draws=2, factors=False),
        "`steps` of `algorithm` must be at least 1",
    ),
    "factors": (
        lambda: S.coordinate_check(NET, X, Y, STEPS, draws=2, factors=1),
        "`factors` must be True or False; got 1",
    ),
    "factors of a move": (
        lambda: S.first_move(NET, X[:2], Y[:2], 0.1, factors="no"),
        "`factors` must be True or False; got 'no'",
    ),
    "bias": (
        lambda: nk.theory.max_margin(X, np.sign(X[:, 0]), bias="no"),
        "`bias` must be True or False; got 'no'",
    ),
    "central": (lambda: nk.theory.zaslavsky(5, 2, central=1), "`central` must be True or False; got 1"),
    "controls": (
        lambda: nk.theory.trained_observables(NET, X[:2], Y[:2], STEPS, NEW[:1], controls=1),
        "`controls` must be True or False; got 1",
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(name):
    call, message = NONSENSE[name]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_whole_numbers_of_any_kind_are_sizes():
    found = [nk.learning_curve(KERNEL, X, Y, sizes=each).sizes for each in (4, [4], (4.0,), np.array([4, 4]))]
    assert all(np.array_equal(each, [4]) for each in found)


@pytest.mark.slow
def test_a_layer_that_does_not_move_has_no_power():
    net = nk.MLP(3, (16,), 1, "tanh", bias_var=0.0)
    with pytest.raises(ValueError, match="a layer does not move at all"):
        S.coordinate_check(net, 0 * X[:2], Y[:2], STEPS, (8, 16), draws=2, factors=False)
