"""What training will do to a network: exact for linear models, checked by the network itself for others."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.inspection.verdict import CARE, KEPT, PROMISED, TRUST, trusted_until
from support import helpers
from support.cases import few

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "before-you-fine-tune.md"
NET = nk.MLP(3, (16,), 2, "tanh")
PARAMS = NET.init(jax.random.key(0))
X, X_NEW = helpers.points(6, 3), helpers.points(5, 3, 1)
Y = np.eye(2)[[0, 1, 0, 1, 1, 0]]
LINEAR = nk.expand(NET, PARAMS)
LOG = nk.from_function(lambda w, x: jnp.log(x @ w))  # -inf at w = 0


@pytest.mark.parametrize(
    "algorithm, loss",
    few(
        [
            (nk.GradientDescent(0.05, 30), "squared"),
            (nk.GradientDescent(0.05, 30), "cross_entropy"),
            (nk.GradientFlow(1.5), "squared"),
            pytest.param(nk.GradientFlow(1.5), "cross_entropy", marks=pytest.mark.slow),
        ],
        1,
    ),
)
def test_a_linear_model_is_predicted_exactly_and_its_check_is_zero(algorithm, loss):
    found = nk.inspect(LINEAR, PARAMS, X, Y, X_NEW, algorithm, loss=loss)
    run = nk.simulate(LINEAR, PARAMS, X, Y, algorithm, loss=loss)
    np.testing.assert_allclose(found.prediction, LINEAR(run.params, X_NEW), atol=1e-6)
    np.testing.assert_allclose(found.loss[-1], run.history["loss"][-1], rtol=1e-6)
    assert found.check.max() < 1e-9 and set(found.verdicts) == {nk.results.Verdict.trust}
    assert found.trusted_until == algorithm.end() == found.moments[-1]
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(run.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_predictions_are_those_of_solve():
    algorithm = nk.GradientDescent(0.05, 30)
    found = nk.inspect(NET, PARAMS, X, Y, X_NEW, algorithm)
    solution = nk.solve(LINEAR, X, Y, algorithm)
    for moment, at_x, at_new in zip(found.moments, found.fitted, found.predictions, strict=True):
        np.testing.assert_allclose(at_new, solution.predict(X_NEW, moment).mean, atol=1e-10)
        np.testing.assert_allclose(at_x, solution.predict(X, moment).mean, atol=1e-10)
    kernel = nk.kernels.EmpiricalNTK(NET, PARAMS).full(X).reshape(12, 12)
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(kernel)[::-1], rtol=1e-9)
    np.testing.assert_allclose(found.alignment.sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.effective_dimension, np.trace(kernel) ** 2 / (kernel**2).sum())


def test_the_check_is_the_gap_between_network_and_linearization():
    found = nk.inspect(NET, PARAMS, X, Y, X_NEW, nk.GradientDescent(0.05, 30))
    rows = np.concatenate([X, X_NEW])
    predicted = np.concatenate([found.fitted[-1], found.prediction])
    gap = np.linalg.norm(np.asarray(NET(found.params, rows)) - predicted)
    moved = np.linalg.norm(predicted - np.asarray(NET(PARAMS, rows)))
    np.testing.assert_allclose(found.check[-1], gap / moved, rtol=1e-9)


def test_the_check_falls_with_the_lazy_scale():
    checks = []
    for alpha in (8.0, 16.0):
        scaled = nk.Scaled(NET, alpha)
        algorithm = nk.GradientDescent(0.05 / alpha**2, 30)
        checks.append(nk.inspect(scaled, scaled.at(PARAMS), X, Y, X_NEW, algorithm).check[-1])
    assert 0.4 < checks[1] / checks[0] < 0.6


def test_linearizing_again_on_the_way_comes_nearer_to_training():
    net = nk.MLP(3, (12, 12), 2, "tanh", weight_var=2.0)
    params = net.init(jax.random.key(1))
    algorithm = nk.GradientDescent(0.05, 100)
    trained = np.asarray(net(nk.simulate(net, params, X, Y, algorithm).params, X_NEW))
    one, several = (nk.inspect(net, params, X, Y, X_NEW, algorithm, pieces=pieces) for pieces in (1, 8))
    errors = [np.linalg.norm(each.prediction - trained) for each in (one, several)]
    assert errors[1] < 0.6 * errors[0] and several.check[-1] < one.check[-1]
    assert one.expanded_at == (0.0,) and 1 < len(several.expanded_at) <= 8
    assert list(several.expanded_at) == sorted(set(several.expanded_at))


def test_a_rate_that_is_too_large_is_not_trusted():
    found = nk.inspect(NET, PARAMS, X, Y, algorithm=nk.GradientDescent(10.0, 1000))
    assert found.verdict is nk.results.Verdict.distrust and found.predictions is None


def test_the_default_rate_is_that_of_the_largest_eigenvalue():
    found = nk.inspect(NET, PARAMS, X, Y, steps=7)
    assert found.algorithm.steps == 7
    np.testing.assert_allclose(found.algorithm.lr, 1 / found.eigenvalues[0])
    assert found.seconds > 0 and found.training_seconds > 0 and found.parameters == 3 * 16 + 16 + 32 + 2


def test_halfway_is_when_the_residual_of_a_point_stays_below_half():
    algorithm = nk.GradientDescent(0.05, 200)
    found = nk.inspect(LINEAR, PARAMS, X, Y, algorithm=algorithm)
    residuals = np.linalg.norm(np.stack([np.asarray(LINEAR(PARAMS, X)), *found.fitted]) - Y, axis=2)
    for i, moment in enumerate(found.halfway):
        below = residuals[1:, i] <= 0.5 * residuals[0, i]
        later = found.moments >= moment
        assert below[later].all() and (not later.any() or later.all() or not below[~later][-1])


def test_verdicts_by_the_check():
    verdict = nk.results.Verdict.of
    assert [verdict(TRUST), verdict(CARE), verdict(CARE + 1e-9), verdict(np.inf), verdict(np.nan)] == [
        "trust",
        "with care",
        *["do not trust"] * 3,
    ]
    assert trusted_until([1, 2, 3], [0.0, TRUST + 1, 0.0]) == 1 and trusted_until([1], [np.nan]) == 0


def test_the_promise_of_a_verdict_is_that_of_the_study():
    """The table of the guide, which docs/fine_tuning_study.py writes."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in GUIDE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| linearized ")
    ]
    for verdict in nk.results.Verdict:
        found = [row for row in rows if row[1] == verdict.value]
        assert len(found) == 2
        if verdict not in PROMISED:
            assert all(row[4] == "nothing" for row in found) and verdict.promise.startswith("no promise")
            continue
        assert all(row[4] == f"at most {PROMISED[verdict]}" for row in found)
        kept = [int(row[column].split(" %")[0]) for row in found for column in (5, 6)]
        assert KEPT[verdict] == min(kept) / 100
        assert f"at most {100 * PROMISED[verdict]:.0f} %" in verdict.promise
        assert f"held for {min(kept)} %" in verdict.promise


def test_kinks_are_told():
    net = nk.MLP(3, (16,), 2, "relu")
    assert nk.inspect(net, net.init(jax.random.key(0)), X, Y).kinked
    assert nk.inspect(NET, PARAMS, X, Y, steps=2).kinked is False
    plain = nk.from_function(lambda p, x: abs(x @ p["w"]))
    assert nk.inspect(plain, {"w": helpers.points(3, 2)}, X, Y, steps=2).kinked


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(algorithm=nk.Ridge(1.0)), r"`algorithm` must be nk\.GradientDescent.*got Ridge"),
        (
            dict(algorithm=nk.GradientDescent(0.1)),
            "`steps` must be finite and positive in nk.inspect; got inf",
        ),
        (dict(algorithm=nk.GradientFlow()), "`time` must be finite and positive in nk.inspect; got inf"),
        (dict(algorithm=nk.GradientDescent(0.1, 5, 0.9)), "`momentum` must be 0 in nk.inspect; got 0.9"),
        (dict(algorithm=nk.GradientFlow(1.0, 2.0)), "`friction` must be None in nk.inspect; got 2.0"),
        (dict(pieces=0), "`pieces` must be at least 1; got 0"),
        (dict(steps=0), "`steps` must be at least 1; got 0"),
        (dict(y=Y[:5]), "`x` and `y` must have the same number of rows; got 6 and 5"),
        (dict(loss="hinge"), "`loss` must be one of 'squared', 'cross_entropy', 'huber', .*; got 'hinge'"),
        (dict(model=3), "`model` must be a nearkernel model; got int"),
        (
            dict(model=LOG, params=np.zeros((3, 1)), y=Y[:, :1]),
            "outputs are not finite: check `params`, `x` and `x_new`",
        ),
    ],
)
def test_bad_arguments_cost_one_line(arguments, message):
    given = dict(model=NET, params=PARAMS, x=X, y=Y) | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        nk.inspect(**given)


def test_a_model_that_does_not_move_is_refused():
    still = nk.from_function(lambda p, x: 0.0 * p["w"] + x[:, :1])
    with pytest.raises(ValueError, match="do not depend on its parameters: there is nothing to train"):
        nk.inspect(still, {"w": np.ones(1)}, X, Y[:, :1])
