"""Large steps: the two-number recursion, the three phases, and where networks leave their quadratic model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(3)
D, M, C_W, TARGET = 7, 60, 1.3, 0.7
NET = nk.MLP(D, (M,), 1, "relu", weight_var=C_W)
THETA = NET.init(jax.random.key(1))
POINT = RNG.normal(size=(1, D))
QUADRATIC = nk.expand(NET, THETA, degree=2)
Z0 = float(np.asarray(NET(THETA, POINT))[0, 0])
NTK0 = float(nk.kernels.EmpiricalNTK(NET, THETA)(POINT)[0, 0])
CURVATURE = C_W**2 * float((POINT**2).sum()) / (M * D)
KEEP = nk.Record(
    {
        "z": lambda p: QUADRATIC(p, jnp.asarray(POINT))[0, 0],
        "ntk": lambda p: nk.kernels.EmpiricalNTK(QUADRATIC, p)(jnp.asarray(POINT))[0, 0],
    },
    every=1,
)


@pytest.mark.parametrize("ratio", [0.5, 1.9, 2.5, 3.2, 3.7])
def test_the_recursion_is_descent_on_all_parameters_of_the_quadratic_model(ratio):
    run = nk.simulate(QUADRATIC, THETA, POINT, [TARGET], nk.GradientDescent(ratio / NTK0, 200), KEEP)
    z, ntk = nk.theory.catapult(Z0, NTK0, TARGET, CURVATURE, ratio / NTK0, 200)
    assert np.abs(run.history["z"] - z).max() < 1e-12
    assert np.abs(run.history["ntk"] - ntk).max() < 1e-12 * NTK0
    assert ntk[-1] * ratio / NTK0 < 2.0 and abs(z[-1] - TARGET) < 1e-6  # it ends where descent is stable


def recursion_losses(width: float, y: float):
    def losses(lr):
        z = nk.theory.catapult(0.8, 1.0, y, 1 / width, lr, 1500).z
        return 0.5 * np.minimum(np.abs(z - y), 1e150) ** 2

    return losses


@pytest.mark.parametrize("y", [0.0, 0.5])
def test_phases_of_the_recursion_meet_at_2_and_4(y):
    onset, limit = nk.theory.phase_boundaries(recursion_losses(1e7, y), 1.0, 4e-3)
    assert onset == pytest.approx(2.0, rel=0.01) and limit == pytest.approx(4.0, rel=0.01)
    onset, limit = nk.theory.phase_boundaries(recursion_losses(np.inf, y), 1.0, 4e-3)  # a linear model
    assert onset == pytest.approx(2.0, rel=0.01) and limit == pytest.approx(2.0, rel=0.01)


def test_the_catapult_rises_to_the_width_and_flattens():
    """Peak loss is proportional to the width, and the kernel ends below 2/lr (lr ntk = 3 and 3.5 at the start)."""
    widths, lr = np.array([1e4, 1e6, 1e8]), np.array([[3.0], [3.5]])
    z, ntk = nk.theory.catapult(0.8, 1.0, 0.0, 1 / widths, lr, 400)
    peak = (0.5 * z**2).max(axis=0)
    slopes = np.diff(np.log(peak)) / np.diff(np.log(widths))
    assert z.shape == ntk.shape == (401, 2, 3) and np.abs(slopes - 1).max() < 0.2
    assert (ntk[-1] * lr < 2).all() and np.abs(z[-1]).max() < 1e-8


def test_divergence_is_infinite_and_stays():
    z, ntk = nk.theory.catapult(0.8, 1.0, 0.0, 1e-3, [1.0, 4.5], 400)
    assert np.isfinite(z[:, 0]).all() and z[-1, 1] == ntk[-1, 1] == np.inf
    assert (np.diff(np.isfinite(z[:, 1]).astype(int)) <= 0).all()


X = np.random.default_rng(0).normal(size=(6, 5))
Y = np.sin(X.sum(axis=1))
WIDE = nk.MLP(5, (400,), 1, "relu", weight_var=2.0)
START = jax.tree.map(np.asarray, WIDE.init(jax.random.key(2)))
TOP = float(np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(WIDE, START)(X))[-1])


@pytest.mark.parametrize("model", [nk.expand(WIDE, START, degree=2), WIDE], ids=["quadratic", "network"])
def test_phases_on_several_points(model):
    found = {
        ratio: nk.theory.learning_rate_phase(model, START, X, Y, ratio / TOP, 300)
        for ratio in (1.0, 3.0, 7.0)
    }
    assert [phase.name for phase in found.values()] == ["lazy", "catapult", "divergent"]
    for ratio, phase in found.items():
        assert phase.ratio == pytest.approx(ratio, rel=1e-9)
    lazy, catapult, divergent = found.values()
    assert lazy.moved.correlation > 0.999 > 0.99 > catapult.moved.correlation
    assert lazy.moved.ntk_end == pytest.approx(TOP, rel=0.03) and catapult.moved.ntk_end * catapult.lr < 2
    assert catapult.losses.max() > 10 * catapult.losses[0] and catapult.losses[-1] < 1e-8
    assert divergent.moved is None and divergent.status == nk.StatusKind.diverged
    assert not np.isfinite(divergent.losses[-1])


def test_weights_whose_squares_overflow_are_divergent_too():
    """The loss of a linear model is a finite number for a while after weights have become too large to be squared."""
    linear = nk.expand(WIDE, START, degree=1)
    found = [
        nk.theory.learning_rate_phase(linear, START, X, Y, ratio / TOP, 300)
        for ratio in np.linspace(3.9, 4.5, 13)
    ]
    assert {phase.name for phase in found} == {"divergent"}
    ends = [np.isfinite(phase.losses[-1]) for phase in found]
    assert any(end and phase.moved is None for end, phase in zip(ends, found, strict=True))
    assert found[0].moved is not None and not ends[-1]


@pytest.mark.slow
def test_a_relu_network_leaves_its_quadratic_model_where_neurons_flip():
    net = nk.MLP(D, (2000,), 1, "relu", weight_var=C_W)
    theta = net.init(jax.random.key(4))
    quadratic = nk.expand(net, theta, degree=2)
    top = float(nk.kernels.EmpiricalNTK(net, theta)(POINT)[0, 0])
    departures, flipped = [], []
    for ratio in (1.0, 3.0):
        descent = nk.GradientDescent(ratio / top, 25)
        runs = [
            nk.simulate(model, theta, POINT, [TARGET], descent, nk.Record(every=1))
            for model in (net, quadratic)
        ]
        size = [np.sqrt(run.history["loss"]) for run in runs]
        departures.append(np.abs(size[0] - size[1]).max() / size[1].max())
        sides = [POINT @ np.asarray(params[0]["weight"]) > 0 for params in (theta, runs[0].params)]
        flipped.append(int((sides[0] != sides[1]).sum()))
    assert departures[0] < 0.01 < 0.1 < departures[1]
    assert flipped[0] < 20 < 100 < flipped[1]


def test_phases_by_hand():
    assert nk.theory.phase_of([1.0, 0.5, 0.25]) == "lazy"
    assert nk.theory.phase_of([1.0, 0.5, 0.505, 0.1]) == "lazy"  # half a percent is not a rise
    assert nk.theory.phase_of([1.0, 0.5, 0.6, 0.1]) == "catapult"
    assert nk.theory.phase_of([1.0, 3.0, 2.0]) == "divergent"
    assert nk.theory.phase_of([1.0, np.inf]) == nk.theory.phase_of([1.0, np.nan]) == "divergent"


def test_movement_measures_what_it_says():
    moved = nk.theory.movement(WIDE, START, START, X)
    assert (moved.weights, moved.features, moved.kernel) == (0.0, 0.0, 0.0)
    doubled = [START[0], {**START[1], "weight": 2 * START[1]["weight"]}]
    moved = nk.theory.movement(WIDE, START, doubled, X)
    flat = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (START, doubled)]
    assert moved.weights == pytest.approx(np.linalg.norm(flat[1] - flat[0]) / np.linalg.norm(flat[0]))
    assert moved.correlation == pytest.approx(np.corrcoef(*flat)[0, 1], abs=0.01)
    assert moved.features == 0.0 and moved.kernel > 1  # the last layer scales the kernel of the first by 4
    assert moved.ntk_start == pytest.approx(TOP)
    conv = nk.CNN((3, 1), (4,))
    first = jax.tree.map(np.asarray, conv.init(jax.random.key(0)))
    second = [jax.tree.map(lambda a: 3.0 * a, first[0]), first[1]]  # relu features grow as weights do
    assert nk.theory.movement(conv, first, second, np.ones((2, 3, 1))).features == pytest.approx(2.0)
    assert np.isnan(nk.theory.movement(nk.expand(WIDE, START), START, doubled, X).features)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.catapult(0.1, 0.0, 0, 1, 1, 3), "`ntk` must be greater than 0; got 0"),
        (lambda: nk.theory.catapult(0.1, 1, 0, -1, 1, 3), "`curvature` must be at least 0; got -1"),
        (lambda: nk.theory.catapult(0.1, 1, 0, 1, [], 1.5), "`steps` must be an integer"),
        (
            lambda: nk.theory.catapult(np.ones(2), 1, 0, 1, np.ones(3), 3),
            "arrays that broadcast .* lr \\(3,\\)",
        ),
        (lambda: nk.theory.catapult(np.nan, 1, 0, 1, 1, 3), "`z` holds 1 NaN"),
        (
            lambda: nk.theory.phase_of([np.nan, 1.0]),
            "`losses` must be a vector of at least 2 values, the first of them finite",
        ),
        (lambda: nk.theory.learning_rate_phase(WIDE, START, X, Y, -1.0), "`lr` must be greater than 0"),
        (lambda: nk.theory.phase_boundaries(lambda lr: [1.0, 2.0], 1.0), "not lazy at 0.1/ntk"),
        (lambda: nk.theory.phase_boundaries(lambda lr: [1.0, 0.5], 1.0), "does not diverge"),
        (
            lambda: nk.theory.movement(WIDE, START, START[:1], X),
            r"`end` must have the structure of `model.init\(key\)`; MLP needs `end\[1\]",
        ),
        (lambda: nk.theory.movement(sum, START, START, X), "`model` must be a nearkernel model"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
