"""One executor: order, what a thread knows of its caller, all devices of JAX, and the same answers on each of them."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._run.executor import AbstractJob, PerDevice, devices, in_order, lanes, on_host, run
from nearkernel._run.precision import working_dtype
from support import device_answers


def test_results_come_in_the_order_of_their_pieces():
    wait = threading.Event()

    def task(item):
        if item == 0:
            wait.wait(5)  # the first is done last
        if item == 1:
            wait.set()
        return item

    assert list(in_order(task, iter(range(7)), 3)) == list(range(7))


def test_a_piece_knows_the_precision_of_its_caller():
    def task(_):
        return working_dtype().name, jnp.ones(2).dtype.name

    with jax.enable_x64(True), nk.precision("float32"):
        assert set(in_order(task, range(4), 2)) == {("float32", "float64")}
    with jax.enable_x64(False):
        assert set(in_order(task, range(4), 2)) == {("float64", "float32")}


def test_an_error_of_a_piece_is_that_of_the_call():
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda k: 1 / (k - 2), range(5), 2))


def test_a_caller_that_has_chosen_a_device_gets_no_other():
    assert on_host() and lanes() >= 1
    chosen = jax.devices()[0]
    with jax.default_device(chosen):
        assert devices() == [chosen] and not on_host()
        assert list(in_order(lambda _: devices(), range(3), 3)) == [[chosen]] * 3
        assert PerDevice(np.ones(2)).here().committed


def test_a_scheduler_that_is_no_address_costs_one_line():
    with pytest.raises(TypeError, match="`scheduler` must be an address such as"), nk.scale.on_cluster(8786):
        pass


class _Squares(AbstractJob[int]):
    made = 0

    def ready(self):
        _Squares.made += 1
        return lambda k: k * k


def test_a_job_is_made_ready_once():
    assert list(run(_Squares(), range(5), 2)) == [0, 1, 4, 9, 16] and _Squares.made == 1


QUICK = ("relu", "new", "products", "stored", "drawn", "samples")
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in device_answers.ANSWERS
]


@functools.cache
def on_four(names: tuple[str, ...]) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """(answers, devices that worked on them) of a process with four devices of JAX, on any machine."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/answers.npz"
        done = subprocess.run(
            [sys.executable, device_answers.__file__, path, *names],
            capture_output=True,
            text=True,
            env={**os.environ, "XLA_FLAGS": flags},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        with np.load(path) as answers:
            return dict(answers), json.loads(done.stdout)


@pytest.mark.merge
@pytest.mark.parametrize("name", NAMES)
def test_four_devices_work_and_give_the_answers_of_one(name):
    answers, places = on_four(QUICK if name in QUICK else (name,))
    assert len(places[f"all {name}"]) == 4 and len(places[f"one {name}"]) == 1
    expected = answers[f"one {name}"]
    assert np.abs(answers[f"all {name}"] - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["relu", "new", "products", "stored", "drawn"])
def test_four_devices_give_the_answers_of_the_host(name):
    """Where inputs live on devices, and where NumPy multiplies them."""
    found, expected = on_four(QUICK)[0][f"all {name}"], device_answers.run(name)[0]
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()
