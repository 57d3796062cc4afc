"""Many tasks on a few threads, in order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")


def in_order(task: Callable[[_T], Any], items: Iterable[_T], threads: int) -> Iterator[Any]:
    """task(item) for every item, in order, a few at a time: memory does not grow with their number."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future] = deque()
        for item in items:
            waiting.append(pool.submit(task, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
