"""Long calls say how far they are: on a terminal, to a function, or to nobody; Ctrl-C leaves what there is."""

import io
import sys

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._run import progress as _progress
from nearkernel._run.progress import Report, report, task, watched

X = np.random.default_rng(0).standard_normal((12, 2))
Y = X[:, 0] * X[:, 1]
NET = nk.MLP(in_dim=2, widths=(8,), activation="tanh")


@pytest.fixture
def eager(monkeypatch):
    """Everything is told at once, and nothing is left out."""
    monkeypatch.setattr(_progress, "_INTERVAL", 0.0)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)


def test_long_verbs_report_their_progress(eager):
    told: list[Report] = []
    with nk.progress(told.append):
        nk.simulate(NET, NET.init(jax.random.key(0)), X, Y, nk.GradientDescent(0.01, 5000))
        assert told[-1].task == "simulate" and told[-1].done == told[-1].total == 5000 and told[-1].left == 0
        nk.measure(lambda params: NET(params, X[:1]), NET, size=64, key=jax.random.key(1))
        assert told[-1].task == "measure" and told[-1].done == told[-1].total == 64
        nk.solve(nk.kernels.RBF(1.0), X, Y, nk.Ridge(0.1), solver="cg")
        assert told[-1].task == "solve" and told[-1].note.startswith("relative residual")
        nk.learning_curve(nk.kernels.RBF(1.0), X, Y, nk.Ridge(0.1), check=3)
        assert told[-1].task == "learning curve" and 0 < told[-1].done < told[-1].total
        net = nk.MLP(in_dim=2, widths=(64,), activation="tanh", parametrization="mean_field")
        clouds = nk.MeanField(neurons=64, scrambles=2)
        nk.forecast(net, X[:3], Y[:3], nk.GradientDescent(0.1, 4), X[3:5], theory=clouds)
        assert (
            told[-1].task == "forecast" and told[-1].total == 1.0 and str(told[-1]).startswith("forecast: ")
        )
    before = len(told)
    nk.measure(lambda params: NET(params, X[:1]), NET, size=64, key=jax.random.key(1))
    assert len(told) == before


def test_silence_and_bad_choices(eager, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    with nk.progress(False), task("work", 2):
        report("work", 1)
    assert screen.getvalue() == ""
    with pytest.raises(TypeError, match="`watch` must be True, False or a function of a report; got 'loud'"):
        with nk.progress("loud"):
            pass


def test_a_terminal_shows_one_line_that_is_gone_in_the_end(eager, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    with task("outer", 1000):
        report("outer", 10)
        with task("inner", 5):  # a part of the outer one
            report("inner", 1)
        report("outer", 1000)
    lines = screen.getvalue().split("\r")
    assert lines[1].startswith("outer: 10 of 1,000, ") and lines[2].startswith(
        "outer: 1,000 of 1,000, 0 s left"
    )
    assert "inner" not in screen.getvalue() and lines[-1] == "" and lines[-2].strip() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with task("piped", 1):
        report("piped", 1)
    assert sys.stderr.getvalue() == ""


def test_reports_are_words():
    assert str(Report("solve", 12, np.inf, 3.0, np.inf, "residual 1e-3")) == "solve: 12, residual 1e-3"
    assert str(Report("forecast", 0.25, 1.0, 30.0, 7200.0, "")) == "forecast: 25%, 2.0 h left"
    assert str(Report("measure", 1, 2, 100.0, 100.0, "")) == "measure: 1 of 2, 2 min left"


def _parts(count):
    yield from ((1, i) for i in range(count))
    raise KeyboardInterrupt


def test_an_interrupt_leaves_what_there_is_at_a_prompt(monkeypatch):
    with pytest.raises(KeyboardInterrupt):  # a program ends
        list(watched("draw", 9, _parts(3), lambda part: part[0]))
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert len(list(watched("draw", 9, _parts(3), lambda part: part[0]))) == 3
    with pytest.raises(KeyboardInterrupt):  # nothing to show yet
        list(watched("draw", 9, _parts(0), lambda part: part[0]))


def test_an_interrupted_run_is_a_run_up_to_there(eager, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    params = NET.init(jax.random.key(0))

    def stop(what):
        if what.done >= 3000:
            raise KeyboardInterrupt

    with nk.progress(stop):
        run = nk.simulate(NET, params, X, Y, nk.GradientDescent(0.01, 20_000))
    assert run.status == nk.StatusKind.interrupted and not run.ok and 0 < run.steps < 4000
    assert str(run.status) == f"interrupted at step {run.steps}" and run.history["time"][-1] == run.steps
    whole = nk.simulate(NET, params, X, Y, nk.GradientDescent(0.01, run.steps))
    for found, expected in zip(jax.tree.leaves(run.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
