"""A status: an enumeration with a message, and records that are `ok` by its kind alone."""

import copy
import pickle
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel import Status, StatusKind

ROOT = Path(__file__).parents[2]
DIVERGED = Status(StatusKind.diverged, "diverged: the loss rose from 1 to 9 by step 3")


def test_a_status_is_its_message_for_people_and_its_kind_for_programs():
    assert (
        str(DIVERGED) == f"{DIVERGED}" == DIVERGED.message and f"{DIVERGED:>60}".strip() == DIVERGED.message
    )
    assert DIVERGED == StatusKind.diverged and StatusKind.diverged == DIVERGED
    assert DIVERGED != StatusKind.converged and DIVERGED != DIVERGED.message
    assert DIVERGED == Status(StatusKind.diverged, DIVERGED.message) != Status(StatusKind.diverged, "else")
    assert hash(DIVERGED) == hash(StatusKind.diverged)
    assert repr(DIVERGED).startswith("Status(kind=StatusKind.diverged, message='diverged")
    with pytest.raises(AttributeError):
        DIVERGED.kind = StatusKind.converged


def test_ok_is_decided_by_the_kind_alone():
    fine = {"converged", "finished", "stationary", "singular", "positive"}
    assert {kind.name for kind in StatusKind if kind.ok} == fine
    assert not DIVERGED.ok and Status(StatusKind.converged, "diverges: not really").ok
    assert all(kind.value.endswith(".") for kind in StatusKind)


@pytest.mark.parametrize(
    "copied", (copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))), ids=("copy", "pickle")
)
def test_a_status_is_copied_and_pickled_as_itself(copied):
    found = copied(DIVERGED)
    assert found == DIVERGED and found.kind is StatusKind.diverged


def test_records_with_a_status_are_pickled_and_pass_through_jit():
    net = nk.MLP(2, (3,))
    run = nk.simulate(net, net.init(jax.random.key(0)), np.eye(2), np.ones(2), nk.GradientDescent(0.1, 3))
    assert pickle.loads(pickle.dumps(run)).status == run.status == StatusKind.finished
    assert jax.jit(lambda r: r)(run).status == run.status
    other = nk.simulate(net, net.init(jax.random.key(0)), np.eye(2), np.ones(2), nk.GradientDescent(99.0, 3))
    assert jax.jit(lambda r: jax.tree.map(jnp.asarray, r))(other).status.message == other.status.message


def test_no_code_reads_the_words_of_a_status():
    """Tests may look at the message, nothing else may."""
    reading = re.compile(
        r"status(_|\.message)?\.(startswith|endswith|split|find|lower)\(|\bin (\w+\.)+status\b|status\["
    )
    folders = ("src", "docs", "benchmarks")
    files = [path for folder in folders for kind in ("*.py", "*.md") for path in (ROOT / folder).rglob(kind)]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        for line in path.read_text("utf-8").splitlines()
        if reading.search(line)
    ]
    assert not found
