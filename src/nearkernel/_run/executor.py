"""One executor for all that falls into independent pieces: tiles, panels, blocks, draws, clouds, neurons.

Pieces run on threads of this process, each of which has one of JAX's devices to itself while it works, or on the
workers of a Dask cluster. Results come in the order of the pieces, so that sums do not depend on who was first, and a
few at a time, so that memory does not grow with their number.
"""

import abc
import contextlib
import contextvars
import itertools
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import jax
import numpy as np

from .._base.check import shown
from .._base.types import PyTree
from .blas import SMALL, one_thread
from .cluster import connected, finished, in_sequence, kept_on_worker, shared_by_tasks
from .memory import cores
from .precision import precision, working_dtype

if TYPE_CHECKING:
    import distributed

_COLUMNS = 100  # that are worth a thread
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_CLIENT: contextvars.ContextVar["distributed.Client | None"] = contextvars.ContextVar(
    "nearkernel_client", default=None
)


class AbstractJob(abc.ABC, Generic[_Item]):
    """Pieces of work that other processes can do too: it is sent there once, without arrays of JAX."""

    @abc.abstractmethod
    def ready(self) -> Callable[[_Item], Any]:
        """The function of a piece, made once in every process that works."""


def devices() -> list[jax.Device]:
    """All devices of JAX's default platform; one if the caller has chosen it by `jax.default_device`."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if chosen is not None and not isinstance(chosen, str):
        return [chosen]
    return list(jax.local_devices(backend=chosen))


def on_host() -> bool:
    """Whether NumPy and JAX share the one device there is: nothing is gained by keeping arrays on it."""
    if jax.config.jax_default_device is not None:  # type: ignore[attr-defined]
        return False
    local = jax.local_devices()
    return len(local) == 1 and local[0].platform == "cpu"


def lanes() -> int:
    """How many pieces are worth doing at once: one for each core, or for each device."""
    places = devices()
    return max(cores(), len(places)) if places[0].platform == "cpu" else len(places)


class PerDevice:
    """A tree of NumPy arrays, copied to every device that asks for it once."""

    def __init__(self, tree: PyTree):
        self._tree: PyTree = tree
        self._copies: dict[jax.Device, PyTree] = {}

    def here(self) -> PyTree:
        """The tree on the device of the piece that asks."""
        device = devices()[0]
        if device not in self._copies:
            self._copies[device] = jax.device_put(self._tree, device)
        return self._copies[device]


def in_order(
    task: Callable[[_Item], _Made], items: Iterable[_Item], threads: int | None = None
) -> Iterator[_Made]:
    """task(item) for every item, in their order, on `threads` (by default all `lanes`) of this process."""
    threads = lanes() if threads is None else threads
    if isinstance(items, Sized):
        threads = min(threads, len(items))
    if threads <= 1:
        yield from map(task, items)
        return
    places: SimpleQueue[jax.Device] = SimpleQueue()
    for device in itertools.islice(itertools.cycle([None] if on_host() else devices()), threads):
        places.put(device)
    wide, dtype = bool(jax.config.jax_enable_x64), working_dtype().name  # type: ignore[attr-defined]

    def run(item: _Item) -> _Made:
        device = places.get()
        try:
            # What the caller has set holds for its thread alone.
            place = contextlib.nullcontext() if device is None else jax.default_device(device)
            with jax.enable_x64(wide), precision(dtype), place:
                return task(item)
        finally:
            places.put(device)

    with _pool(threads) as pool:
        waiting: deque[Future] = deque()
        for item in items:
            waiting.append(pool.submit(run, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextlib.contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that nobody else uses, kept for the next call: to start one takes as long as a small tile."""
    idle = _IDLE.setdefault(threads, [])
    try:
        pool = idle.pop()
    except IndexError:
        pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    idle.append(pool)


_IDLE: dict[int, list[ThreadPoolExecutor]] = {}
if hasattr(os, "register_at_fork"):  # threads stay behind
    os.register_at_fork(after_in_child=_IDLE.clear)


def by_columns(function: Callable[[np.ndarray], np.ndarray], right: np.ndarray) -> np.ndarray:
    """function(right) (n, m) of a function that treats each column by itself: some columns to each thread.

    For matrices so small that BLAS's own threads would wait for each other; large ones are left to them.
    """
    n, m = right.shape
    count = min(lanes(), m // _COLUMNS)
    if count < 2 or n > SMALL or not on_host():
        return function(right)
    edges = [m * k // count for k in range(count + 1)]
    parts = [right[:, a:b] for a, b in itertools.pairwise(edges)]
    with one_thread():
        return np.concatenate(list(in_order(function, parts)), axis=1)


def run(
    job: AbstractJob[_Item], items: Iterable[_Item], threads: int | None = None, *, ordered: bool = True
) -> Iterator[Any]:
    """The results of a job's pieces: on the cluster within `on_cluster`, else `in_order` in this process.

    Without `ordered` a cluster gives them as they come.
    """
    client = _CLIENT.get()
    if client is None:
        yield from in_order(job.ready(), items, threads)
        return
    gathered = in_sequence if ordered else finished
    shared = shared_by_tasks(client, job)
    yield from gathered(client, _on_worker, items, shared, uuid.uuid4().hex, working_dtype().name)


def _on_worker(item: Any, job: AbstractJob, token: str, dtype: str) -> Any:
    place = kept_on_worker(token)  # not in the job itself, which must stay fit to be sent on
    with jax.enable_x64(True), precision(dtype):
        if not place:
            place.append(job.ready())
        return place[0](item)


@contextlib.contextmanager
def on_cluster(scheduler: str | None) -> Iterator[None]:
    """Ensembles on a Dask cluster, within a `with`: draws, sampled networks and neurons, clouds, blocks of matrices.

    `scheduler` is the address of its scheduler, e.g. "tcp://10.0.0.1:8786"; None: in this process. What is asked for is
    the same as without a cluster, to rounding.
    """
    if scheduler is None:
        yield
        return
    if not isinstance(scheduler, str):
        raise TypeError(
            f'`scheduler` must be an address such as "tcp://10.0.0.1:8786"; got {shown(scheduler)}.'
        )
    with connected(scheduler) as client:
        token = _CLIENT.set(client)
        try:
            yield
        finally:
            _CLIENT.reset(token)


def elsewhere() -> bool:
    """Whether jobs run on a cluster."""
    return _CLIENT.get() is not None


def workers() -> int:
    """Pieces that are done at once where a job would run now."""
    client = _CLIENT.get()
    return lanes() if client is None else max(1, sum(client.nthreads().values()))
