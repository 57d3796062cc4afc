"""The edge to Dask: connect, hand out tasks, take what is finished. Its scheduler does the rest."""

import contextlib
import functools
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .._base.extra import needing

if TYPE_CHECKING:
    import distributed

_TIMEOUT = 10  # seconds to wait for a scheduler
_RETRIES = 3  # of a task that failed; those of killed workers are given to others anyway


class Lost(OSError):
    """The scheduler has gone."""


def _distributed() -> ModuleType:
    with needing("`scheduler`"):
        import distributed  # a second: only for those who ask
    return distributed


@contextlib.contextmanager
def connected(scheduler: str) -> "Iterator[distributed.Client]":
    """A client of the scheduler at an address such as "tcp://127.0.0.1:8786"."""
    distributed = _distributed()
    try:
        client = distributed.Client(scheduler, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise OSError(
            f"no Dask scheduler responds at `scheduler` = {scheduler!r} within {_TIMEOUT} s ({type(error).__name__}): "
            "start one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`."
        ) from None
    with _quiet(), client:
        if not client.scheduler_info()["workers"]:
            try:
                client.wait_for_workers(1, timeout=_TIMEOUT)
            except TimeoutError:
                raise OSError(
                    f"the scheduler at {scheduler} has no workers: "
                    f"start some with `dask worker {scheduler} --nthreads 1`."
                ) from None
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A lost connection is reported once, by an exception, and not in Dask's log too."""
    log, silent = logging.getLogger("distributed.client"), lambda record: False
    log.addFilter(silent)
    try:
        yield
    finally:
        log.removeFilter(silent)


def finished(
    client: "distributed.Client", task: Callable, items: Iterable[object], *shared: object
) -> Iterator[Any]:
    """Results of task(item, *shared) for every item, in the order in which they come."""
    for future in _distributed().as_completed(_submitted(client, task, items, shared), loop=client.loop):
        try:
            yield _taken(future)
        except FileNotFoundError as error:
            raise OSError(f"a worker cannot access the files of this machine: {error}") from None


def in_sequence(
    client: "distributed.Client", task: Callable, items: Iterable[object], *shared: object
) -> Iterator[Any]:
    """The same in the order of the items, a few of which wait at a time: they may be large."""
    waiting: deque[distributed.Future] = deque()
    most = 2 * max(1, sum(client.nthreads().values()))
    for item in items:
        waiting += _submitted(client, task, [item], shared)
        if len(waiting) > most:
            yield _taken(waiting.popleft())
    while waiting:
        yield _taken(waiting.popleft())


def _taken(future: "distributed.Future") -> Any:
    result = _result(future)
    future.release()
    return result


def _result(future: "distributed.Future") -> Any:
    try:
        return future.result()
    except (CancelledError, _distributed().comm.CommClosedError):
        raise Lost("the connection to the Dask scheduler was lost") from None


def _submitted(client: "distributed.Client", task: Callable, items: Iterable[object], shared: tuple) -> list:
    return [client.submit(_confined, task, item, *shared, pure=False, retries=_RETRIES) for item in items]


def shared_by_tasks(client: "distributed.Client", thing: object) -> Any:
    """`thing` as an argument of many tasks: a task itself, not scattered data, so a killed worker's copy is remade."""
    return client.submit(_same, thing, pure=False)


def _same(thing: object) -> Any:
    return thing


@functools.lru_cache(maxsize=2)
def kept_on_worker(token: str) -> list:
    """A place where a worker keeps what it made for the tasks of one `token`; nothing there is ever sent on."""
    return []


def _confined(task: Callable, *arguments: object) -> Any:
    """On a worker, which shares its machine with others: XLA gets one thread, if it has not started yet."""
    os.environ.setdefault("NPROC", "1")
    return task(*arguments)
