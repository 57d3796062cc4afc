"""One executor: order, what a thread knows of its caller, all devices of JAX, and the same answers on each of them."""

import contextlib
import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._executor import AbstractJob, PerDevice, devices, in_order, lanes, on_host, run
from nearkernel._precision import working_dtype

ANSWERS = """
import jax, jax.numpy as jnp, numpy as np
import nearkernel as nk

from nearkernel._executor import run
from nearkernel.dynamics._losses import get_loss
from nearkernel.statistics._sampled import Draw, NeuronJob
from nearkernel.statistics._sampled_forecast import _Sum, _Training

draw = np.random.default_rng(0).normal


def program(factor, matrix, u, xi, z):
    return factor * jnp.tanh(u @ matrix), (xi * z).sum(axis=0)


def answers():
    x, x_new = draw(size=(450, 7)), draw(size=(30, 7))
    x[440] = x[3]  # a pair that needs more digits than a product has
    found, net = {}, lambda name: nk.MLP(7, (32, 32), 1, name, 1.5, 0.1)
    for name in ("relu", "tanh"):
        found[name] = np.stack(nk.kernels.nngp_and_ntk(net(name), x))
        found[name + " new"] = np.stack(nk.kernels.nngp_and_ntk(net(name), x[:300], x_new))
    with nk.precision("float32"):
        found["float32"] = nk.kernels.NTK(net("relu"))(x)
    found["product"] = nk.solve(
        nk.kernels.RBF(2.0), x, x[:, 0], nk.GradientDescent(1e-3, 3),
        solver=nk.dynamics.Richardson(memory="1MB"),
    ).coefficients
    small = nk.MLP(7, (16,), 1, "tanh", 1.5, 0.1)
    drawn = nk.measure(lambda p: small(p, jnp.asarray(x[:4]))[:, 0] ** 2, small, 64, jax.random.key(0))
    found["drawn"] = np.stack([drawn.mean, drawn.sem])
    # Eigenvectors have signs of their own on every machine, so these two start from given draws.
    matrix, start = x[:20] @ x[:20].T / 7, draw(size=(20, 40))
    loss, classes = _Sum(get_loss("cross_entropy")), np.eye(2)[np.arange(20) % 2]
    training = _Training(loss, matrix, classes, nk.GradientDescent(0.05, 20))
    found["samples"] = np.concatenate([w for w, _ in run(training, np.split(start, 5, axis=1))], axis=1)
    cubes = [np.random.default_rng(k).uniform(size=(8, 6)) for k in range(6)]
    neurons = NeuronJob(program, (3.0,), (np.eye(2),), Draw([2, 2, 2], [np.ones(2)] * 3, 1), "float64")
    found["neurons"] = np.stack([np.concatenate([part.ravel() for part in each]) for each in run(neurons, cubes)])
    return found
"""


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


@contextlib.contextmanager
def four_devices():
    """Four devices of JAX in a process of their own, on any machine."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    yield {**os.environ, "XLA_FLAGS": flags}


def test_four_devices_give_the_same_answers_and_all_of_them_work(tmp_path):
    program = f"""{ANSWERS}
import sys
from nearkernel._executor import in_order, lanes
from nearkernel.kernels._tiles import _placed_pairs

assert len(jax.devices()) == 4 and lanes() >= 4
places = [{{str(d) for d in a.devices()}} for a in in_order(lambda k: jax.jit(lambda v: v + k)(np.ones(3)), range(8))]
assert len(set.union(*places)) == 4, places
np.savez(sys.argv[1], **answers())
print(_placed_pairs._cache_size())
"""
    path = tmp_path / "four.npz"
    with four_devices() as environment:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, env=environment
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 4  # compiled for each
    scope: dict = {}
    exec(ANSWERS, scope)
    here, four = scope["answers"](), np.load(path)
    for name, expected in here.items():
        tol = 1e-5 if name == "float32" else 1e-12
        assert np.abs(four[name] - expected).max() <= tol * np.abs(expected).max(), name
