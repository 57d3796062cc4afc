"""A query changes no field of a result, and many threads that ask one result get what one thread gets."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.linear import by_products
from support import helpers

N, THREADS, ROUNDS = 24, 4, 3
X, NEW = helpers.points(N, 3), helpers.points(5, 3, seed=1)
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
KERNEL = nk.kernels.Matern(1.5, nu=1.5)
FLOW, STEPS = nk.GradientFlow(), nk.GradientDescent(1e-3, 50)
SMALL = nk.Scaled(nk.MLP(3, (16,), 1, "tanh", 2.0, 0.1), 30.0)
PARAMS = SMALL.init(jax.random.key(0))


def by_iterations():
    """What "auto" returns for many points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_products, "_DIRECT", 10)
        return nk.solve(KERNEL, X, Y, nk.Ridge(0.5))


def expanded(order, algorithm=FLOW):
    return nk.solve(nk.expand(SMALL, PARAMS, order + 1), X[:8], Y[:8], algorithm, order)


def at(time):
    """Questions at a time that every solution with times answers."""
    return {
        f"predict at {time}": lambda s: s.predict(NEW, time).mean,
        f"residual at {time}": lambda s: s.residual(time),
        f"loss at {time}": lambda s: s.loss(time),
        f"at {time}": lambda s: s.at(time).predict(NEW).mean,
        f"status at {time}": lambda s: s.at(time).status.message,
    }


PLAIN = {
    "predict": lambda s: s.predict(NEW).mean,
    "residual": lambda s: s.residual(),
    "loss": lambda s: s.loss(),
    "repr": repr,
}
LINEAR = PLAIN | {
    "each": lambda s: s.predict_each(NEW, [nk.Ridge(0.1), nk.GradientFlow(2.0)]),
    "other ridge": lambda s: s.at(nk.Ridge(0.3)).predict(NEW).mean,
    "other ridge, fields": lambda s: np.array([s.at(nk.Ridge(0.3)).cutoff, s.at(nk.Ridge(0.3)).rank]),
    "response": lambda s: s.response(NEW),
    "left out": lambda s: s.leave_one_out().residuals,
    "largest eigenvalue": lambda s: s.lambda_max,
}
TIMES = {
    "times": lambda s: s.predict(NEW, [1, 2]).mean,
    "left out at a time": lambda s: s.leave_one_out(2).residuals,
}
CURVED = PLAIN | {
    "weights at 2": lambda s: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(s.params(2))]),
    "effective kernel at 2": lambda s: s.effective_kernel(NEW, time=2),
    "trained kernel": lambda s: s.trained_kernel(NEW),
    "quadratic form": lambda s: s.quadratic_form(NEW),
    "feature learning": lambda s: np.array([s.feature_learning(NEW, np.sin(NEW[:, 0])).slope]),
}
SOLUTIONS = {
    "flow": (lambda: nk.solve(KERNEL, X, Y), LINEAR | TIMES | at(1e3) | at(2)),
    "descent": (lambda: nk.solve(KERNEL, X, Y, nk.GradientDescent(1e-3)), LINEAR | TIMES | at(7)),
    "finite flow": (lambda: nk.solve(KERNEL, X, Y, nk.GradientFlow(3.0)), LINEAR | TIMES | at(1)),
    "ridge": (lambda: nk.solve(KERNEL, X, Y, nk.Ridge(0.2)), LINEAR),
    "iterations": (by_iterations, LINEAR),
    "expanded": (lambda: expanded(0), LINEAR | at(2)),
    "cg": (lambda: nk.solve(KERNEL, X, Y, nk.Ridge(0.5), solver="cg"), PLAIN),
    "nystrom": (
        lambda: nk.solve(KERNEL, X, Y, nk.Ridge(0.1), solver=nk.dynamics.Nystrom(8)),
        PLAIN
        | {
            f"{other}": lambda s, other=other: s.at(other).predict(NEW).mean
            for other in (nk.Ridge(0.3), nk.GradientFlow(2.0))
        },
    ),
    "any loss": (lambda: nk.solve(KERNEL, X, Y, STEPS, loss=nk.dynamics.Huber(0.5)), PLAIN | at(20)),
    "sgd": (
        lambda: nk.solve(KERNEL, X, Y, nk.SGD(1e-3, 4, 30)),
        PLAIN | at(10) | {"std": lambda s: s.predict(NEW).std, "cov": lambda s: s.predict(NEW).cov},
    ),
    "order 1": (lambda: expanded(1), CURVED | at(2)),
    "order 1, descent": (lambda: expanded(1, nk.GradientDescent(1e-5, 40)), CURVED | at(3)),
    "order 2": (lambda: expanded(2), CURVED | at(2)),
    "forecast": (
        lambda: nk.forecast(nk.MLP(3, (32,), 1, "relu"), X, Y, FLOW, NEW),
        {
            "mean at 2": lambda s: s.at(2.0).mean,
            "std at 2": lambda s: s.at(2.0).std,
            "std": lambda s: s.std,
            "elsewhere": lambda s: s.predict(NEW[:2]).std,
            "losses": lambda s: s.loss,
        },
    ),
}  # fmt: skip


def fields(solution):
    """All public values that are no methods, as text to the last digit."""
    names = {*vars(solution), *dir(type(solution))} - {"centres"}  # an old name, which warns
    with np.printoptions(threshold=10**6, floatmode="unique"):
        return {name: shown(solution, name) for name in sorted(names) if not name.startswith("_")}


def shown(solution, name):
    try:
        value = getattr(solution, name)
    except ValueError as error:  # a field that this algorithm does not have
        return str(error)
    return "" if callable(value) else repr(value)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_query_changes_no_field(name):
    make, questions = SOLUTIONS[name]
    solution = make()
    before = fields(solution)
    for ask in questions.values():
        ask(solution)
    assert fields(solution) == before


def test_a_solution_keeps_its_own_cutoff():
    solution = nk.solve(KERNEL, X, Y)
    later = solution.at(1e3)
    assert solution.cutoff == 0 and later.cutoff > 0
    solution.predict(NEW, time=1e3)
    assert solution.cutoff == 0


def test_a_solution_refuses_to_be_changed():
    for name in ("flow", "cg", "any loss", "sgd", "order 1"):
        solution = SOLUTIONS[name][0]()
        with pytest.raises(AttributeError, match="cannot assign to field 'algorithm'"):
            solution.algorithm = STEPS


@pytest.mark.parametrize("name", SOLUTIONS)
def test_threads_that_ask_one_result_get_what_one_thread_gets(name):
    """In every round a fresh result, all threads at once, each with the questions in an order of its own."""
    make, questions = SOLUTIONS[name]
    alone = {key: ask(make()) for key, ask in questions.items()}
    for round_ in range(ROUNDS):
        solution, barrier = make(), threading.Barrier(THREADS)

        def asked(seed, solution=solution, barrier=barrier):
            order = np.random.default_rng(seed).permutation(list(questions))
            barrier.wait(timeout=60)
            return {str(key): questions[str(key)](solution) for key in order}

        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(asked, range(THREADS * round_, THREADS * (round_ + 1))))
        for answers in together:
            for key, answer in answers.items():
                same(answer, alone[key], f"{name}: {key}")


def same(answer, expected, message):
    """To the last bit; iterations stop at a tolerance, and round as the threads of BLAS share the work."""
    if message.startswith("iterations") and not isinstance(expected, str):
        np.testing.assert_allclose(answer, expected, rtol=1e-6, atol=1e-9, err_msg=message)
    else:
        np.testing.assert_array_equal(answer, expected, err_msg=message)
