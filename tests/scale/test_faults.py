"""Killed processes and killed workers: the build goes on and ends with the same bits."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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
        there.append(sum(1 for _ in (path / "matrix/c").rglob("*") if _.suffix != ".unfinished"))
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_forecasts_on_a_cluster_are_those_of_this_machine(cluster):
    x, x_new = rng.normal(size=(20, 3)), rng.normal(size=(2, 3))
    small, flow = nk.MLP(3, (8,), 1, "tanh"), nk.GradientDescent(0.05, 10)
    rich = nk.MLP(3, (8, 8), 1, "tanh", parametrization="mean_field")
    clouds = nk.MeanField(neurons=1024, scrambles=2)
    finite, kinks = nk.FiniteWidth(most=2048, scrambles=4), nk.Kinks(most=2048, scrambles=4)

    def forecasts():
        labels, key = (x[:, 0] > 0).astype(int), jax.random.key(0)
        classes = {"loss": "cross_entropy", "theory": nk.InfiniteWidth(samples=30), "key": key}
        batches = nk.SGD(0.005, 4, 4)
        limit = nk.forecast(rich, x[:6], x[:6, 0], batches, x_new, key=key, theory=clouds)
        return [
            nk.forecast(nk.MLP(3, (8,), 2, "erf"), x, labels, flow, x_new, **classes).samples,
            nk.forecast(small, x, x[:, 0], flow, x_new, theory=finite).std,
            nk.forecast(nk.MLP(3, (8,), 1, "relu"), x, x[:, 0], flow, x_new, theory=kinks).mean,
            limit.mean,
            limit.spread(64, draws=6).cov,
        ]

    here = forecasts()
    with nk.scale.on_cluster(cluster.scheduler_address):
        there = forecasts()
    for one, other in zip(here, there, strict=True):
        assert np.abs(one - other).max() < 1e-9


@pytest.mark.filterwarnings("ignore")  # that narrow networks are narrow
def test_jobs_can_be_sent_to_other_processes():
    """All that a cluster is given, through the pickle that Dask uses, where 64 bits are off."""
    import cloudpickle

    from nearkernel._run import executor as _executor

    x, key = rng.normal(size=(14, 3)), jax.random.key(0)
    sent = []

    class Client:
        def nthreads(self):
            return {"one": 1}

    def through(client, task, items, job, token, dtype):
        sent.append(type(job).__name__)
        again = cloudpickle.loads(cloudpickle.dumps(job))
        return [task(item, again, token, dtype) for item in items]

    rich = nk.MLP(3, (8, 8), 1, "tanh", parametrization="mean_field")
    clouds = nk.MeanField(neurons=1024, scrambles=2, watch=lambda share, left: None)
    neurons = nk.FiniteWidth(most=1024, scrambles=2)
    net, steps = nk.MLP(3, (8,), 2, "erf"), nk.GradientDescent(0.05, 5)

    def answers():
        classes = nk.forecast(
            net,
            x,
            (x[:, 0] > 0).astype(int),
            steps,
            x[:2],
            loss="cross_entropy",
            theory=nk.InfiniteWidth(samples=8),
            key=key,
        )
        batches = nk.SGD(0.005, 4, 3)
        limit = nk.forecast(rich, x[:6], x[:6, 0], batches, x[6:8], key=key, theory=clouds)
        return [
            classes.samples,
            limit.mean,
            limit.spread(64, draws=3).cov,
            nk.forecast(nk.MLP(3, (8,), 1, "tanh"), x, x[:, 0], steps, x[:1], theory=neurons).std,
        ]

    here = answers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_executor, "in_sequence", through)
        patch.setattr(_executor, "shared_by_tasks", lambda client, job: job)
        token = _executor._CLIENT.set(Client())
        try:
            there = answers()
        finally:
            _executor._CLIENT.reset(token)
    assert set(sent) == {"_Training", "_Runs", "_Draws", "NeuronJob"}
    for one, other in zip(here, there, strict=True):
        assert np.abs(one - other).max() < 1e-10


@pytest.mark.filterwarnings("ignore")  # what Dask says of a scheduler that ends
def test_a_scheduler_that_dies_is_one_line_and_the_blocks_are_kept(tmp_path, whole, monkeypatch):
    import dask
    import distributed

    from nearkernel._run import cluster as _cluster

    monkeypatch.setattr(_cluster, "_TIMEOUT", 2)
    path, options = tmp_path / "K.zarr", {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        distributed.LocalCluster(protocol="tcp://", dashboard_address=None, **options) as found,
    ):

        def watch(done: int, total: int) -> None:
            if done == 5:
                found.sync(found.scheduler.close)

        line = r"connection to the Dask scheduler was lost: at least \d+ of 78 blocks are stored; start a scheduler"
        with pytest.raises(OSError, match=line):
            nk.scale.build(KERNEL, X, path, block=BLOCK, scheduler=found.scheduler_address, watch=watch)
    nk.scale.build(KERNEL, X, path, block=BLOCK)
    assert content(path) == whole


def content(path) -> dict:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def test_a_store_is_filled_by_one_process_at_a_time(tmp_path, whole):
    path = tmp_path / "K.zarr"
    refused = []

    def watch(done: int, total: int) -> None:
        if done == 3:
            with pytest.raises(
                OSError, match=r"is being built by another process: wait for it, or use another"
            ):
                nk.scale.build(KERNEL, X, path, block=BLOCK)
            refused.append(done)

    nk.scale.build(KERNEL, X, path, block=BLOCK, watch=watch)
    assert refused == [3] and content(path) == whole
    nk.scale.build(KERNEL, X, path, block=BLOCK)  # the hold has ended


def test_two_builders_that_begin_at_once_make_one_store(tmp_path, whole, monkeypatch):
    """Both find nothing at the path; one of them is first, the other is told so or finds it done."""
    from nearkernel.scale import store as _store

    path, together, write = tmp_path / "K.zarr", threading.Barrier(2), _store._write_layout
    monkeypatch.setattr(_store, "_write_layout", lambda *about: (write(*about), together.wait(20)))

    def work(_) -> str:
        try:
            return str(nk.scale.build(KERNEL, X, path, block=BLOCK).n)
        except OSError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(work, range(2))]
    assert str(N) in found and all(
        each == str(N) or "is being built by another process" in each for each in found
    )
    assert content(path) == whole and [each.name for each in tmp_path.iterdir()] == ["K.zarr"]


def test_a_store_of_another_kernel_that_was_first_is_refused(tmp_path, monkeypatch):
    from nearkernel.scale import store as _store

    path, write = tmp_path / "K.zarr", _store._write_layout

    def beaten(*about) -> None:
        monkeypatch.undo()
        nk.scale.build(nk.kernels.RBF(9.0), X, path, block=BLOCK)
        write(*about)

    monkeypatch.setattr(_store, "_write_layout", beaten)
    with pytest.raises(ValueError, match=r"holds another kernel: RBF\(length=9.0\)"):
        nk.scale.build(KERNEL, X, path, block=BLOCK)
    assert [each.name for each in tmp_path.iterdir()] == ["K.zarr"]


class Full:
    """A file on a disk that becomes full in the middle of it."""

    def __init__(self, file, room: list[int]):
        self.file, self.room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *about):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data) -> None:
        size = memoryview(data).nbytes
        if size > self.room[0]:
            self.file.write(memoryview(data).cast("B")[: self.room[0]])
            raise OSError(28, "No space left on device")
        self.room[0] -= size
        self.file.write(data)


@pytest.mark.parametrize(
    "room", [10, 60_000, 2_000_000], ids=["the inputs", "the first block", "a later block"]
)
def test_a_disk_that_becomes_full_leaves_no_half_file(tmp_path, whole, monkeypatch, room):
    from nearkernel._base import files as _files

    path, left = tmp_path / "K.zarr", [room]
    monkeypatch.setattr(_files, "open", lambda *how: Full(open(*how), left), raising=False)
    line = (
        r"no space left for .*K\.zarr: make space"
        if room == 10
        else r"no space left for .* blocks are stored"
    )
    with pytest.raises(OSError, match=line):
        nk.scale.build(KERNEL, X, path, block=BLOCK)
    if room == 10:
        assert list(tmp_path.iterdir()) == []
    else:
        assert {len(data) for name, data in content(path).items() if "matrix/c/" in name} <= {
            len(whole["matrix/c/0/0"])
        }
        assert not any("unfinished" in name for name in content(path))
    monkeypatch.undo()
    nk.scale.build(KERNEL, X, path, block=BLOCK)
    assert content(path) == whole


class Unknown(nk.kernels.AbstractKernel):
    def matrix(self, x1, x2):
        return np.full((len(x1), len(x1 if x2 is None else x2)), np.nan)

    def traced(self, x1, x2):
        raise NotImplementedError

    def diagonal(self, x):
        return np.ones(len(x))


def test_a_kernel_that_is_not_finite_is_said_before_it_is_written(tmp_path):
    kernel = Unknown()
    with pytest.raises(ValueError, match="is nan for row 0"):
        nk.scale.build(kernel, X, tmp_path / "K.zarr", block=BLOCK)
    assert not [*(tmp_path / "K.zarr/matrix").glob("c/*/*")]


def test_an_unreachable_scheduler_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    from nearkernel._run import cluster as _cluster

    monkeypatch.setattr(_cluster, "_TIMEOUT", 1)
    with pytest.raises(
        OSError, match=r"no Dask scheduler responds at `scheduler` = 'tcp://127.0.0.1:9' within 1 s"
    ):
        nk.scale.build(KERNEL, X, tmp_path / "K.zarr", scheduler="tcp://127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")  # what Dask says when it ends
def test_a_scheduler_without_workers_and_a_worker_without_files_are_one_line(tmp_path, monkeypatch):
    import distributed

    from nearkernel._run import cluster as _cluster

    monkeypatch.setattr(_cluster, "_TIMEOUT", 1)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty:
        with pytest.raises(OSError, match=r"has no workers: start some with `dask worker .* --nthreads 1`"):
            nk.scale.build(KERNEL, X, tmp_path / "K.zarr", scheduler=empty.scheduler_address)
        empty.scale(1)
        with _cluster.connected(empty.scheduler_address) as client:
            with pytest.raises(OSError, match=r"a worker cannot access the files of this machine: .*nowhere"):
                list(_cluster.finished(client, open, ["/nowhere"]))
