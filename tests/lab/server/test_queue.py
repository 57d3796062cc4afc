"""Who waits before few places: everybody has a turn, and only the newest question of a page waits."""

import asyncio

import pytest

from nearkernel.lab.server import queue as _line
from nearkernel.lab.server.queue import Full, Line, Replaced
from support.labs import finished


class Crowd:
    """Pages in a line; a place is held until the page is let go."""

    def __init__(self, line):
        self.line, self.order, self._go, self._tasks = line, [], {}, []

    async def ask(self, page, name, long=False):
        self._go[name] = asyncio.Event()

        async def one():
            async with self.line.turn(page, long) as place:
                self.order.append(name)
                await self._go[name].wait()
                return place

        task = asyncio.create_task(one())
        self._tasks.append(task)
        await asyncio.sleep(0)
        return task

    async def let_go(self, *names):
        for name in names:
            self._go[name].set()
            await asyncio.sleep(0.01)

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def with_a_crowd(test):
    def run(**given):
        async def inside():
            crowd = Crowd(Line(given.pop("places", 1), given.pop("longest", 200)))
            await test(crowd, **given)
            await crowd.end()
            if not crowd.line._waiting:
                assert not crowd.line._served and len(crowd.line._free) == crowd.line._places

        finished(inside())

    return run


def test_pages_take_turns_however_much_one_of_them_asks():
    @with_a_crowd
    async def story(crowd):
        for name in ("a1", "a2", "b1", "a3", "c1", "a4"):
            await crowd.ask(name[0], name)
        await crowd.let_go("a1", "a4", "b1", "c1")
        assert crowd.order == ["a1", "a4", "b1", "c1"]  # the newest question of a, at the rank of its first

    story()


def test_an_older_question_that_waits_is_replaced_and_one_that_is_answered_is_not():
    @with_a_crowd
    async def story(crowd):
        first, second = await crowd.ask("a", "a1"), await crowd.ask("a", "a2")
        third = await crowd.ask("a", "a3")
        with pytest.raises(Replaced):
            await second
        await crowd.let_go("a1", "a3")
        assert await first == 0 and await third == 0

    story()


def test_a_page_has_one_place_at_a_time():
    @with_a_crowd
    async def story(crowd):
        await crowd.ask("a", "a1")
        await crowd.ask("a", "a2")
        last = await crowd.ask("b", "b1")
        assert crowd.order == ["a1", "b1"] and crowd.line.crowded
        await crowd.let_go("b1", "a1")
        assert crowd.order == ["a1", "b1", "a2"] and await last == 1

    story(places=2)


def test_who_leaves_is_forgotten_wherever_it_is():
    @with_a_crowd
    async def story(crowd):
        first, second = await crowd.ask("a", "a1"), await crowd.ask("b", "b1")
        third = await crowd.ask("c", "c1")
        second.cancel()  # while it waits
        await asyncio.sleep(0)
        first.cancel()  # while it is served
        await asyncio.sleep(0.01)
        assert crowd.order == ["a1", "c1"]
        fourth = await crowd.ask("d", "d1")
        crowd._go["c1"].set()
        while not fourth.done() and "d1" not in crowd.order:
            ticket = crowd.line._waiting.get("d")
            await asyncio.sleep(0)
            if ticket and ticket.place.done():
                fourth.cancel()  # between the two
                break
        assert await third == 0
        await asyncio.gather(fourth, return_exceptions=True)
        assert not crowd.line.crowded and not crowd.line._served

    story()


def test_too_many_are_sent_away():
    @with_a_crowd
    async def story(crowd):
        for name in "abc":
            await crowd.ask(name, name)
        with pytest.raises(Full):
            await (await crowd.ask("d", "d"))
        newer = await crowd.ask("c", "c2")  # it takes the rank of another
        await crowd.let_go("a", "b", "c2")
        assert await newer == 0

    story(longest=2)


def test_long_questions_leave_a_place_to_quick_ones(monkeypatch):
    monkeypatch.setattr(_line, "QUICK", 0.1)

    @with_a_crowd
    async def story(crowd):
        await crowd.ask("quick", "q1")
        await crowd.ask("a", "a1", long=True)
        await crowd.let_go("q1")
        await crowd.ask("b", "b1", long=True)
        assert crowd.order == ["q1", "a1"]  # one place is kept
        await crowd.ask("c", "q2")
        assert crowd.order == ["q1", "a1", "q2"]
        await crowd.let_go("q2")
        await asyncio.sleep(0.15)  # no quick question comes any more
        assert crowd.order == ["q1", "a1", "q2", "b1"]

    story(places=2)


def test_long_questions_alone_use_all_places():
    @with_a_crowd
    async def story(crowd):
        await crowd.ask("a", "a1", long=True)
        await crowd.ask("b", "b1", long=True)
        assert crowd.order == ["a1", "b1"]

    story(places=2)
