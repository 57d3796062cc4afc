"""A fair line before a few places: pages take turns, and a newer question replaces the older one that still waits."""

import asyncio
import contextlib
import dataclasses
import heapq
import math
from collections.abc import AsyncIterator, Hashable

QUICK = 5.0  # seconds for which a place is kept free after a quick question


class Full(Exception):
    """Too many wait already."""


class Replaced(Exception):
    """The same page has asked again."""


@dataclasses.dataclass(frozen=True)
class _Ticket:
    place: asyncio.Future[int]
    long: bool


class Line:
    """Gives out `places`, numbered from 0, the lowest free one first; at most `longest` pages wait.

    A page has one question in the line and one place at a time. Where quick questions come, questions announced as
    `long` leave one place to them.
    """

    def __init__(self, places: int = 2, longest: int = 200):
        self._free, self._places, self._longest = list(range(places)), places, longest
        self._waiting: dict[Hashable, _Ticket] = {}  # in order
        self._served: dict[Hashable, bool] = {}  # pages that have a place, and whether for long
        self._quick_until = -math.inf
        self._later: asyncio.TimerHandle | None = None

    @property
    def crowded(self) -> bool:
        """Whether a question that comes now has to wait."""
        return not self._free

    @contextlib.asynccontextmanager
    async def turn(self, page: Hashable, long: bool = False) -> AsyncIterator[int]:
        """A place, when its turn comes. Raises `Full`, or `Replaced` while it waits."""
        place = await self._granted(page, long)
        try:
            yield place
        finally:
            self._given_back(page, place)

    async def _granted(self, page: Hashable, long: bool) -> int:
        older = self._waiting.get(page)
        if older is None and len(self._waiting) >= self._longest:
            raise Full
        loop = asyncio.get_running_loop()
        ticket = self._waiting[page] = _Ticket(loop.create_future(), long)  # at the older one's rank
        if older is not None and not older.place.done():
            older.place.set_exception(Replaced())
        if not long:
            self._quick_until = loop.time() + QUICK
        self._serve()
        try:
            return await ticket.place
        except asyncio.CancelledError:  # the reader has left
            if self._waiting.get(page) is ticket:
                del self._waiting[page]
            elif not ticket.place.cancelled() and ticket.place.exception() is None:
                self._given_back(page, ticket.place.result())
            raise

    def _given_back(self, page: Hashable, place: int) -> None:
        del self._served[page]
        heapq.heappush(self._free, place)
        self._serve()

    def _serve(self) -> None:
        """Gives free places to those who wait longest."""
        for page, ticket in list(self._waiting.items()):
            if not self._free:
                return
            if ticket.place.done() or page in self._served or (ticket.long and self._last_is_kept()):
                continue
            del self._waiting[page]
            self._served[page] = ticket.long
            ticket.place.set_result(heapq.heappop(self._free))

    def _last_is_kept(self) -> bool:
        """Whether all places but one are taken for long while quick questions come. Looks again later."""
        loop = asyncio.get_running_loop()
        if sum(self._served.values()) < max(1, self._places - 1) or loop.time() >= self._quick_until:
            return False
        if self._later is not None:
            self._later.cancel()
        self._later = loop.call_at(self._quick_until, self._serve)
        return True
