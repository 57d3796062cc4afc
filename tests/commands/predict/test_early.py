"""Advice on early stopping makes sense: nobody is told not to train in other words."""

from pathlib import Path

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.predict.early import advised, along_training
from nearkernel._commands.predict.reading.data import LabeledData
from nearkernel._commands.predict.reading.prepare import split
from nearkernel._commands.predict.shared import shared_kernels
from support.commands import nearkernel

N = 400


def losses(*means, seed=0):
    """Of rows at several times: noise around each mean, of which most is common to all times."""
    rng = np.random.default_rng(seed)
    return np.array(means)[:, None] + rng.normal(size=N) + 0.1 * rng.normal(size=(len(means), N))


def test_early_stopping_is_advised_only_where_it_pays():
    found = losses(3.0, 2.0, 2.5, 3.0)
    assert advised(found[:3], found[3], ["a time of 1", "a time of 2", "a time of 3"], False) == (
        True,
        "the NTK would do better if training stopped early, at a time of 2 (by leave-one-out)",
    )
    # Not by chance, and not if the end is the best.
    assert advised(losses(3.0, 2.5, 2.501), losses(3.0)[0], ["1", "2", "3"], False) == (False, "")
    assert advised(losses(3.0, 2.5, 2.0), losses(3.0)[0], ["1", "2", "3"], False) == (False, "")


@pytest.mark.parametrize("classes, name", [(True, "the most frequent class"), (False, "the mean")])
def test_a_network_that_is_best_untrained_has_nothing_to_add(classes, name):
    found = losses(2.0, 2.3, 3.0, 2.0)
    early, advice = advised(found[:3], found[3], ["a time of 1e-06"] * 3, classes)
    assert not early and advice.startswith(
        f"the NTK has nothing to add over {name}: trained to the end it does worse"
    )
    assert "time of" not in advice


def test_the_constant_is_what_a_network_knows_before_training():
    rng = np.random.default_rng(0)
    for classes in ((), ("a", "b", "c")):
        y = rng.normal(size=60) if not classes else rng.choice(3, 60, p=[0.6, 0.2, 0.2])
        data = LabeledData("made", rng.normal(size=(60, 3)), y, ("a", "b", "c"), "y", classes)
        parts = split(data, 0.2, 100, 0)
        _, ntk = shared_kernels(nk.MLP(3, (1,), parts.y.shape[1], "relu"))
        curve = along_training(ntk, nk.GradientFlow(), data, parts)
        assert curve.error[0] == pytest.approx(curve.constant, rel=0.02) and curve.at[0] < 1e-3
        assert not curve.early and (not curve.advice or "nothing to add" in curve.advice)


@pytest.mark.usefixtures("inside_an_empty_folder")
def test_a_rare_class_is_not_told_to_stop_at_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    label = np.where(rng.random(300) < 0.05, "Yes", "No")
    lines = [",".join([*map(str, row), each]) for row, each in zip(x.tolist(), label, strict=True)]
    Path("table.csv").write_text("a,b,c,d,churned\n" + "\n".join(lines), "utf-8")
    said = nearkernel("predict", "table.csv", "--target", "churned").stdout
    page = Path("out/report.html").read_text("utf-8")
    assert (
        "the NTK has nothing to add over the most frequent class" in said
        and "The NTK has nothing to add" in page
    )
    assert "stopped early, at" not in said and "best time" not in page
