"""The server: answers, one-line errors, streams that can be left, strangers, crowds."""

import concurrent.futures
import gc
import json
import random
import threading
import time
from urllib.parse import quote

import httpx
import numpy as np
import psutil
import pytest

from nearkernel import claims
from nearkernel.lab import NAMES, find
from nearkernel.lab._picture import plain
from nearkernel.lab._server import LONGEST_QUERY


@pytest.fixture(scope="module")
def web(lab):
    with httpx.Client(base_url=lab, timeout=120) as client:
        yield client


def test_the_page_and_its_parts_come_from_this_machine_alone(web):
    page = web.get("/")
    assert page.status_code == 200 and "https://" not in page.text and "http://" not in page.text
    for name in ("look.css", "lab.css", "app.js", "claims.js", "icon.svg"):
        part = web.get(f"/static/{name}")
        assert (
            part.status_code == 200
            and "https://" not in part.text
            and "default-src 'self'" in (part.headers["Content-Security-Policy"])
        )
    assert web.get("/plotly.js").status_code == 200
    for name in (*NAMES, "claims"):
        assert web.get(f"/{name}").text == page.text


def test_an_answer_is_the_librarys(web):
    answer = web.get("/api/experiments/catapult", params={"ratio": "3.1", "steps": "20"}).json()
    own = find("catapult")(ratio=3.1, steps=20)
    assert answer["pictures"] == plain(own.theory())["pictures"] and answer["python"] == own.python()
    assert answer["csv"][0].startswith('"x","theory"\n0,')


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/experiments/catapult?ratio=9", 400, "ratio 9: must be from 0.1 to 4.5."),
        ("/api/experiments/catapult?width=1e99", 400, "width 1e99: give a whole number from 50 to 20000."),
        ("/api/experiments/catapult?width=inf", 400, "width inf: give a whole number"),
        ("/api/experiments/catapult?ratio=nan", 400, "ratio nan: must be from"),
        ("/api/experiments/catapult?ratio=", 400, "ratio : give a number"),
        ("/api/experiments/catapult?ratoi=1", 400, "ratoi is no setting of catapult"),
        ("/api/experiments/catapult?ratio=1&ratio=2", 400, "given twice"),
        ("/api/experiments/catapul", 400, "no experiment is named 'catapul'. Did you mean 'catapult'?"),
        ("/api/experiments/..%2f..%2fetc", 404, ""),
        ("/api/experiments/catapult?" + "a" * (LONGEST_QUERY + 1), 400, "longer than 2000 characters"),
        ("/api/experiments/regression?points=1,2;3", 400, "write points as x,y;x,y"),
        ("/api/experiments/regression?points=" + ";".join(["0,0"] * 13), 400, "13 points came, give 1 to 12"),
        ("/api/experiments/regression?points=9,9", 400, "coordinates must be from -2 to 2"),
        ("/api/experiments/regression?activation=rleu", 400, "choose one of"),
        ("/api/experiments/criticality?activation=__import__('os')", 400, "activation"),
        ("/api/claims/nothing", 400, "no claim is named 'nothing'"),
        ("/api/claims/nothing/check", 400, "no claim is named 'nothing'"),
        ("/api/claims/random-walk/check?nothing=1", 400, "nothing is no setting of random-walk"),
        ("/api/experiments/catapult/check?ratio=9", 400, "ratio 9: must be from 0.1 to 4.5."),
        ("/static/..%2f_server.py", 404, ""),
        ("/static/a%00.js", 404, "no file"),
        ("/static/_server.py", 404, "no file"),
        ("/nothing", 404, ""),
    ],
)
def test_bad_addresses_cost_one_line(web, path, status, words):
    answer = web.get(path)
    assert answer.status_code == status and words in answer.text.replace("\\u0027", "'")
    if status == 400:
        assert "\n" not in answer.json()["error"] and "Traceback" not in answer.text


def test_only_requests_addressed_to_this_machine_are_answered(web):
    assert web.get("/", headers={"Host": "elsewhere.example"}).status_code == 400
    assert web.post("/api/experiments/catapult").status_code == 405
    elsewhere = {"Sec-Fetch-Site": "cross-site"}  # a page of another site that asks in the user's name
    assert web.get("/api/experiments/catapult", headers=elsewhere).status_code == 403
    assert web.get("/catapult", headers=elsewhere).status_code == 200  # a link


def test_a_check_streams_its_progress_and_ends_with_an_answer(web):
    with web.stream("GET", "/api/experiments/catapult/check?steps=12&width=60") as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [event["share"] for event in events] == sorted(event["share"] for event in events)
    names = [part["name"] for part in events[-1]["answer"]["pictures"][0]["parts"]]
    assert names == ["theory", *(f"network {seed}" for seed in range(5))]


def test_a_check_that_nobody_reads_is_stopped(web, monkeypatch):
    seen, experiment = threading.Event(), find("catapult")
    ended = threading.Event()

    def endless(self, watch):
        try:
            while True:
                watch(0.5, "working")
                seen.set()
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(experiment, "check", endless)
    with web.stream("GET", "/api/experiments/catapult/check") as stream:
        next(stream.iter_lines())
        assert seen.wait(10)
    assert ended.wait(10)


def test_a_run_that_was_left_keeps_its_place_until_it_has_ended(web, monkeypatch):
    let_go = threading.Event()

    def stubborn(self, watch):
        watch(0.5, "working")
        let_go.wait(10)
        return self.theory()

    monkeypatch.setattr(find("catapult"), "check", stubborn)
    for _ in range(2):
        with web.stream("GET", "/api/experiments/catapult/check") as stream:
            assert json.loads(next(stream.iter_lines()))["words"] == "working"
    with web.stream("GET", "/api/experiments/catapult/check") as stream:
        lines = stream.iter_lines()
        assert json.loads(next(lines))["words"] == "waiting for other runs to end"
        let_go.set()
        assert [json.loads(line)["words"] for line in lines] == ["working", "done"]


def test_what_goes_wrong_in_a_check_is_told(web, monkeypatch):
    def wrong(self, watch):
        raise ValueError("the network\nis tired")

    monkeypatch.setattr(find("catapult"), "check", wrong)
    with web.stream("GET", "/api/experiments/catapult/check") as stream:
        assert [json.loads(line) for line in stream.iter_lines()] == [{"error": "the network is tired"}]


def test_claims_are_listed_with_their_verdicts_and_run(web):
    listed = web.get("/api/claims").json()["claims"]
    assert [claim["name"] for claim in listed] == [claim.name() for claim in claims.every()]
    assert {claim["verdict"] for claim in listed} == {"confirmed"}
    with web.stream("GET", "/api/claims/random-walk/check") as stream:
        last = [json.loads(line) for line in stream.iter_lines()][-1]
    assert last["record"]["verdict"] == "confirmed" and "<svg" in last["svg"] and last["csv"] and last["png"]


def test_two_users_do_not_see_each_others_state(lab):
    def ask(ratio):
        with httpx.Client(base_url=lab, timeout=60) as own:
            return [
                own.get("/api/experiments/catapult", params={"ratio": str(ratio)}).json() for _ in range(10)
            ]

    ratios = [0.5, 1.5, 2.5, 3.5]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for ratio, answers in zip(ratios, pool.map(ask, ratios), strict=True):
            expected = plain(find("catapult")(ratio=ratio).theory())["pictures"]
            assert all(answer["pictures"] == expected for answer in answers)


def test_a_thousand_odd_requests_leave_it_alive_and_its_memory_flat(web):
    rng = random.Random(0)
    letters = "abcz019.,;:+-*/^()%&=?#'\"<>\\ \u00e9\u4e2d\U0001f600\x00"

    def word(most=30):
        return "".join(rng.choice(letters) for _ in range(rng.randrange(most)))

    def odd():
        kind = rng.randrange(6)
        name = rng.choice(["catapult", "bias", "criticality", "regression"])
        if kind == 0:
            return f"/api/experiments/{name}", {word(8) or "a": word()}
        if kind == 1:
            return "/api/experiments/criticality", {"activation": word(60) + "!"}
        if kind == 2:
            return f"/x{quote(word(12), safe='')}", {}
        if kind == 3:
            return "/api/experiments/regression", {"points": word(60) + "x"}
        if kind == 4:
            return f"/api/claims/{quote(word(9), safe='')}x", {}
        return "/api/experiments/catapult", {"ratio": f"{rng.uniform(0.1, 4.5):.4g}"}

    def memory():
        gc.collect()
        return psutil.Process().memory_info().rss

    codes = []
    for i in range(1000):
        path, typed = odd()
        codes.append(web.get(path, params=typed or None).status_code)
        if i == 300:
            before = memory()
    assert set(codes) <= {200, 400, 404} and codes.count(200) > 50
    assert memory() - before < 40e6
    answer = web.get("/api/experiments/catapult").json()
    assert np.isclose(answer["numbers"][1]["value"], find("catapult")().theory().numbers[1].value)
