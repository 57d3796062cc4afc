"""What costs too much is ended, whatever it is, and the others do not notice."""

import concurrent.futures
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import psutil
import pytest

from nearkernel.lab.claim_run import claim_events
from nearkernel.lab.server import asking as _asking
from nearkernel.lab.server.limits import Meter, TooMuch
from support import odd_worker as do
from support.labs import STRICT, finished, listening, workers


@pytest.fixture(scope="module")
def web(odd):
    with httpx.Client(base_url=odd, timeout=60) as client:
        assert client.get("/api/experiments").status_code == 200  # it has started
        yield client


def theory(web, width, steps=40, ratio=1.0, page=None, timeout=60.0):
    headers = {} if page is None else {"X-Lab-Page": page}
    typed = {"width": width, "steps": steps, "ratio": ratio}
    return web.get("/api/experiments/catapult", params=typed, headers=headers, timeout=timeout)


def well(web):
    return theory(web, 100).status_code == 200


def busy():
    """Processor seconds that workers use in the next second."""
    found = workers("odd_worker")
    before = {each.pid: sum(each.cpu_times()[:2]) for each in found}
    time.sleep(1)
    return sum(
        sum(each.cpu_times()[:2]) - before[each.pid] for each in workers("odd_worker") if each.pid in before
    )


def spent():
    """Processor seconds of all workers that live."""
    return sum(sum(each.cpu_times()[:2]) for each in workers("odd_worker"))


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("width", [do.ENDLESS, do.ASLEEP])
def test_an_answer_that_takes_too_long_is_ended(web, width):
    answer = theory(web, width)
    assert answer.status_code == 422 and answer.json()["error"].startswith(
        f"these settings take more than {STRICT.seconds:g} s to compute; choose smaller ones"
    )
    assert well(web)
    until(lambda: busy() < 0.1)


def test_what_breaks_off_is_told_and_the_next_is_answered(web):
    answer = theory(web, do.ABORT)
    assert answer.status_code == 500 and "stopped unexpectedly" in answer.json()["error"]
    assert well(web)


@pytest.mark.parametrize(
    ("width", "status", "words"), [(do.RAISE, 500, "unexpected RuntimeError"), (do.DIVIDE, 400, "division")]
)
def test_what_goes_wrong_is_told_in_one_line(web, width, status, words):
    answer = theory(web, width)
    assert answer.status_code == status and words in answer.json()["error"] and "\n" not in answer.text


def test_what_is_printed_spoils_no_answer(web):
    assert theory(web, do.PRINT).status_code == 200


def test_a_process_that_has_grown_is_replaced(web):
    until(lambda: workers("odd_worker"))
    for _ in range(6):
        assert theory(web, do.GROW, 150).status_code == 200
    assert all(each.memory_info().rss < STRICT.kept_memory for each in workers("odd_worker"))


def test_an_answer_is_ended_when_its_reader_has_left(web):
    assert well(web)
    for _ in range(2):
        with pytest.raises(httpx.ReadTimeout):
            theory(web, do.ENDLESS, timeout=0.5)
    until(lambda: busy() < 0.1)
    assert well(web)


def test_questions_whose_readers_have_left_are_never_begun(web):
    before = spent()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for done in [pool.submit(theory, web, do.SPIN, 190, 1, None, 0.7) for _ in range(20)]:
            assert isinstance(done.exception(), httpx.TimeoutException)
    assert well(web)
    assert spent() - before < 10  # of 38 s that were asked for


def test_a_pages_newer_question_replaces_its_older_one(web):
    """The first holds the page's place; of the others only the last is answered."""
    until(lambda: busy() < 0.1)
    statuses = {}

    def ask(number):
        statuses[number] = theory(web, do.SPIN, 100, 1 + number / 100, page="one").status_code

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert statuses == {0: 200, 1: 409, 2: 409, 3: 409, 4: 200}


def test_somebody_who_asks_a_lot_does_not_hold_up_the_others(web):
    assert well(web)

    def greedy(number):
        return theory(web, do.SPIN, 20, 1 + number / 100, page="greedy").status_code

    with concurrent.futures.ThreadPoolExecutor(25) as pool:
        asked = [pool.submit(greedy, number) for number in range(20)]
        time.sleep(0.2)
        assert well(web)
        done = sum(each.done() and each.result() == 200 for each in asked)
        assert {each.result() for each in asked} <= {200, 409}
    assert done <= 3  # it did not wait for twenty answers


def test_too_many_questions_are_sent_away(web):
    def ask(number):
        return theory(web, do.SPIN, 12, 1 + number / 100)

    with concurrent.futures.ThreadPoolExecutor(STRICT.waiting + 12) as pool:
        answers = list(pool.map(ask, range(STRICT.waiting + 12)))
    sent_away = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers} == {200, 503} and len(sent_away) <= 12
    assert "try again" in sent_away[0].json()["error"] and sent_away[0].headers["Retry-After"] == "5"


def test_the_name_of_a_page_is_a_short_word(web):
    for name in ("a b", "a" * 65, ""):
        assert theory(web, 100, page=name).status_code == 400


def stream(web, width, **more):
    return web.stream("GET", "/api/experiments/catapult/check", params={"width": width}, **more)


def test_a_check_that_nobody_reads_is_stopped(web):
    with stream(web, do.TOLD) as found:
        assert json.loads(next(found.iter_lines())) == {"share": 0.5, "words": "working"}
    with stream(web, do.TOLD) as found:
        assert json.loads(next(found.iter_lines()))["words"] == "working"
    until(lambda: busy() < 0.1)


def test_a_run_that_does_not_stop_is_ended_and_keeps_its_place_until_then(web):
    for _ in range(2):
        with stream(web, do.STUBBORN) as found:
            assert json.loads(next(found.iter_lines()))["words"] == "working"
    with stream(web, 80) as found:
        lines = [json.loads(line)["words"] for line in found.iter_lines()]
    assert lines[0] == "waiting for other runs to end" and lines[-1] == "done"


def test_what_goes_wrong_in_a_check_is_told(web):
    with stream(web, do.WRONG) as found:
        assert [json.loads(line) for line in found.iter_lines()] == [{"error": "the network is tired"}]


def test_a_reader_who_takes_nothing_fills_no_memory_and_loses_its_place(web, monkeypatch):
    monkeypatch.setattr(_asking, "_PATIENCE", 2.0)
    server = psutil.Process()
    with stream(web, do.TALKATIVE) as found:
        next(found.iter_bytes(1000))
        before = server.memory_info().rss
        time.sleep(1)
        assert server.memory_info().rss - before < 20e6
        until(lambda: busy() < 0.1)
        with stream(web, 80) as other:
            assert json.loads(next(other.iter_lines()))["words"] == "done"


def test_runs_that_wait_are_replaced_and_too_many_are_sent_away(web):
    with contextlib.ExitStack() as held:

        def begun(width, page=None):
            found = held.enter_context(stream(web, width, headers={"X-Lab-Page": page} if page else None))
            lines = found.iter_lines()
            open_.append(lines)  # which ends when nobody holds it
            return json.loads(next(lines))["words"], lines

        open_ = []
        assert [begun(do.TOLD)[0] for _ in range(2)] == ["working"] * 2
        waiting = "waiting for other runs to end"
        first, lines = begun(80, page="one")
        assert first == begun(80, page="one")[0] == waiting
        assert json.loads(next(lines)) == {"error": "a newer run of this page has replaced this one."}
        for _ in range(STRICT.waiting - 1):
            begun(80)
        first, lines = begun(80)
        assert first == waiting
        assert json.loads(next(lines)) == {"error": "too many runs are waiting; try again later."}


def test_memory_is_limited_too():
    meter = Meter(psutil.Process().pid, now=0.0)
    meter.require(0.0, 30, 1 << 40)
    with pytest.raises(
        TooMuch, match=r"these settings take more than 1 MiB of memory; choose smaller ones\."
    ):
        meter.require(0.0, 30, 1 << 20)


def test_a_claim_that_takes_too_long_is_stopped():
    async def run():
        return [event async for event in claim_events("random-walk", [], 0.2)]

    assert finished(run())[-1] == {
        "error": "stopped after 0.00333333 minutes; `nearkernel claims run` has no limit."
    }


def test_a_process_that_does_not_start_is_told():
    with listening(command=(sys.executable, "-c", "")) as address, httpx.Client(base_url=address) as web:
        for path in ("experiments", "experiments/catapult", "experiments"):
            answer = web.get(f"/api/{path}", timeout=60)
            assert answer.status_code == 500 and "stopped unexpectedly" in answer.json()["error"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_server(how):
    command = (
        sys.executable,
        "-m",
        "nearkernel",
        "lab",
        "--no-browser",
        "--json",
        "--port",
        f"{free_port()}",
    )
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = []
    try:
        until(lambda: psutil.Process(lab.pid).children())
        found = psutil.Process(lab.pid).children()
        lab.send_signal(how)
        _, trouble = lab.communicate(timeout=60)
        assert lab.returncode == (0 if how is signal.SIGINT else -how) and trouble == ""
        assert psutil.wait_procs(found, timeout=60)[1] == []
    finally:
        for each in (lab, *found):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
