"""Killed processes and killed workers: the build goes on and ends with the same bits."""

import os
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import nearkernel as nk

rng = np.random.default_rng(11)
N, BLOCK = 1500, 125
X = rng.normal(size=(N, 4))
KERNEL = nk.kernels.RBF(1.1)

SCRIPT = """
import sys, time
import numpy as np, nearkernel as nk
x = np.random.default_rng(11).normal(size=(1500, 4))
print("ready", flush=True)
nk.scale.build(nk.kernels.RBF(1.1), x, sys.argv[1], block=125, watch=lambda done, total: time.sleep(0.01))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed build, and the bytes of its files."""
    store = nk.scale.build(KERNEL, X, tmp_path_factory.mktemp("whole") / "K.zarr", block=BLOCK)
    return {str(f.relative_to(store.path)): f.read_bytes() for f in store.path.rglob("*") if f.is_file()}


def test_killed_at_five_random_moments_it_ends_bit_identical(tmp_path, whole):
    path, pauses, there = tmp_path / "K.zarr", np.random.default_rng(0).uniform(0.05, 0.35, 5), []
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    for pause in pauses:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        while not (path / "matrix/c").exists():  # the first block of a first run; at once later
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        there.append(sum(1 for _ in (path / "matrix/c").rglob("*") if _.suffix != ".partial"))
    assert there[0] < len(whole) and there == sorted(there)  # killed in the middle, and nothing was lost
    nk.scale.build(KERNEL, X, path, block=BLOCK)
    assert {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()} == whole


@pytest.fixture(scope="module")
def cluster():
    import dask
    import distributed

    settings = {
        "distributed.nanny.pre-spawn-environ": {"NPROC": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        "distributed.worker.multiprocessing-method": "spawn",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as found,
    ):  # fmt: skip
        yield found


@pytest.mark.filterwarnings("ignore")  # what Dask says of a killed worker
def test_a_worker_is_killed_and_the_build_finishes(tmp_path, whole, cluster):
    path, victim = tmp_path / "K.zarr", []

    def watch(done: int, total: int) -> None:
        if done == 10:
            victim.append(next(iter(cluster.workers.values())).pid)
            os.kill(victim[0], signal.SIGKILL)

    store = nk.scale.build(KERNEL, X, path, block=BLOCK, scheduler=cluster.scheduler_address, watch=watch)
    assert victim and [*store.unsound()] == []
    assert {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()} == whole


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ensembles_on_a_cluster_are_those_of_this_machine(cluster):
    net, x = nk.MLP(3, (8,), 1, "tanh"), np.ones((2, 3))
    inputs, targets = np.eye(3), np.array([1.0, -1.0, 0.5])

    def trained(params):
        run = nk.simulate(net, params, inputs, targets, nk.GradientDescent(0.1, steps=5))
        return net(run.params, x)[:, 0]

    here = nk.measure(trained, net, 40, jax.random.key(2))
    there = nk.measure(trained, net, 40, jax.random.key(2), scheduler=cluster.scheduler_address)
    assert np.abs(here.mean - there.mean).max() < 1e-12 and np.abs(here.sem - there.sem).max() < 1e-12


def test_an_unreachable_scheduler_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    from nearkernel.scale import _cluster

    monkeypatch.setattr(_cluster, "_TIMEOUT", 1)
    with pytest.raises(
        OSError, match=r"no Dask scheduler answers at `scheduler` = 'tcp://127.0.0.1:9' within 1 s"
    ):
        nk.scale.build(KERNEL, X, tmp_path / "K.zarr", scheduler="tcp://127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []
