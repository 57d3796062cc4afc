"""The server: answers, one-line errors, streams, strangers, crowds."""

import concurrent.futures
import gc
import json
import random
from urllib.parse import quote

import httpx
import numpy as np
import psutil
import pytest

from nearkernel import claims
from nearkernel.activations.formula import DEEPEST, MOST
from nearkernel.lab import NAMES, find
from nearkernel.lab.picture import plain
from nearkernel.lab.server.gate import LONGEST_QUERY, SECURITY
from support.labs import workers


@pytest.fixture(scope="module")
def web(lab):
    with httpx.Client(base_url=lab, timeout=120) as client:
        yield client


def test_the_page_and_its_parts_come_from_this_machine_alone(web):
    page = web.get("/")
    assert page.status_code == 200 and "https://" not in page.text and "http://" not in page.text
    for name in (
        "look.css",
        "lab.css",
        "app.js",
        "claims.js",
        "icon.svg",
        "page.js",
        "story.js",
        "story.json",
    ):
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
        ("/api/experiments/catapult?width=1e99", 400, "width 1e99: give an integer from 50 to 20000."),
        ("/api/experiments/catapult?width=inf", 400, "width inf: give an integer"),
        ("/api/experiments/catapult?ratio=nan", 400, "ratio nan: must be from"),
        ("/api/experiments/catapult?ratio=", 400, "ratio (empty): give a number"),
        (
            "/api/experiments/catapult?ratoi=1",
            400,
            "unknown setting '--ratoi' of catapult: choose from --ratio, ",
        ),
        ("/api/experiments/catapult?ratio=1&ratio=2", 400, "a setting is given twice in the address"),
        ("/api/experiments/catapul", 400, "no experiment is named 'catapul'. Did you mean 'catapult'?"),
        ("/api/experiments/..%2f..%2fetc", 404, ""),
        ("/api/experiments/catapult?" + "a" * (LONGEST_QUERY + 1), 400, "longer than 12000 characters"),
        ("/api/experiments/regression?points=1,2;3", 400, "write points as x,y;x,y"),
        ("/api/experiments/regression?points=" + ";".join(["0,0"] * 13), 400, "13 points; give 1 to 12"),
        ("/api/experiments/regression?points=9,9", 400, "coordinates must be from -2 to 2"),
        ("/api/experiments/regression?activation=rleu", 400, "activation rleu: choose one of "),
        ("/api/experiments/criticality?activation=__import__('os')", 400, "activation"),
        ("/api/claims/nothing", 400, "no claim is named 'nothing'"),
        ("/api/claims/nothing/check", 400, "no claim is named 'nothing'"),
        ("/api/claims/random-walk/check?nothing=1", 400, "unknown setting '--nothing' of random-walk"),
        ("/api/experiments/catapult/check?ratio=9", 400, "ratio 9: must be from 0.1 to 4.5."),
        ("/api/experiments/catapult?ratio=%ff%fe", 400, "ratio"),
        ("/api/experiments/catapult?%ff=1", 400, "of catapult: choose from --ratio"),
        ("/api/experiments/%ff", 400, "no experiment is named"),
        ("/api/experiments/" + "a" * 5000, 400, "no experiment is named 'aaa"),
        ("/api/experiments/catapult?width=" + "9" * 1900, 400, "width 999"),
        ("/api/experiments/catapult?ratio=1e-999999999", 400, "ratio 1e-999999999: must be from"),
        ("/api/experiments/catapult?" + "a=1&" * 400, 400, "given twice"),
        ("/api/experiments/regression?points=0,nan", 400, "coordinates must be from -2 to 2"),
        ("/api/experiments/regression?points=" + "0,0;" * 400, 400, "400 points; give 1 to 12"),
        ("/api/experiments/criticality?activation=1/0", 400, "activation 1/0: 1 / 0 has no value."),
        (
            "/api/experiments/criticality?activation=" + "tanh(" * 19 + "z" + ")" * 19,
            400,
            f"has 19 functions, nested 19 deep; use at most {MOST}, nested at most {DEEPEST} deep.",
        ),
        ("/api/experiments/criticality?activation=" + "-".join(["sin(z)"] * 13), 400, "has 13 functions"),
        ("/api/experiments/criticality?activation=exp(-1e6*(z-1)^2)", 400, "a constant passes no signal"),
        ("/api/claims/" + "a" * 5000, 400, "no claim is named 'aaa"),
        ("/api/claims/%ff", 400, "no claim is named"),
        ("/api/claims/random-walk/check?seed=1&seed=1", 400, "given twice"),
        ("/static/" + "a" * 5000 + ".js", 404, "no file is named 'aaa"),
        ("/static/%ff.js", 404, "no file is named"),
        ("/" + "a" * 5000, 404, "there is no page '/aaa"),
        ("/static/..%2f_server.py", 404, ""),
        ("/static/a%00.js", 404, "no file"),
        ("/static/_server.py", 404, "no file"),
        ("/nothing", 404, ""),
    ],
)
def test_bad_addresses_cost_one_line(web, path, status, words):
    answer = web.get(path)
    assert answer.status_code == status and words in answer.text.replace("\\u0027", "'")
    assert len(answer.text) < 700 and answer.text.strip().count("\n") == 0 and "Traceback" not in answer.text
    if status == 400:
        assert "\n" not in answer.json()["error"]


def test_only_requests_addressed_to_this_machine_are_answered(web):
    for host in (
        "elsewhere.example",
        "127.0.0.1.elsewhere.example",
        "127.0.0.1@elsewhere",
        "[::2]",
        "a b",
        "",
    ):
        answer = web.get("/", headers={"Host": host})
        assert answer.status_code == 400 and "--allow-host" in answer.text
    assert web.get("/", headers={"Host": "LOCALHOST:80"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},  # a page of another site that asks in the user's name
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
        {"Origin": "http://elsewhere.example"},  # a browser that says only where the page is from
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": "http://elsewhere.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
@pytest.mark.parametrize(
    "path", ["experiments/catapult", "experiments/catapult/check", "claims/random-walk/check", "claims"]
)
def test_pages_of_others_get_no_answers(web, headers, path):
    assert web.get(f"/api/{path}", headers=headers).status_code == 403
    assert web.get("/catapult", headers=headers).status_code == 200  # a link


def test_the_labs_own_page_and_programs_get_answers(web, lab):
    for headers in ({"Origin": lab}, {"Origin": lab.upper()}, {"Sec-Fetch-Site": "same-origin"}, {}):
        assert web.get("/api/experiments/catapult", headers=headers).status_code == 200


def test_a_page_with_a_bad_name_is_told(web):
    answer = web.get("/api/experiments/catapult", headers={"X-Lab-Page": "a b"})
    assert (
        answer.status_code == 400 and "X-Lab-Page: give 1 to 64 letters, digits and hyphens." in answer.text
    )


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS", "DELETE", "BREW"])
def test_nothing_is_computed_for_other_methods(web, method):
    for path in ("experiments/catapult", "experiments/catapult/check", "claims/random-walk/check"):
        answer = web.request(method, f"/api/{path}")
        assert answer.status_code == 405 and "GET" in answer.headers["Allow"]
    assert web.head("/catapult").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("GET", "/plotly.js", {}, 200),
        ("GET", "/catapult/", {}, 307),
        ("GET", "/nothing", {}, 404),
        ("GET", "/static/nothing.js", {}, 404),
        ("GET", "/api/nothing", {}, 404),
        ("POST", "/", {}, 405),
        ("GET", "/api/experiments/catapult", {}, 200),
        ("GET", "/api/experiments/catapult?ratio=9", {}, 400),
        ("GET", "/api/experiments/catapult", {"Origin": "null"}, 403),
        ("GET", "/api/experiments/catapult", {"X-Lab-Page": "a b"}, 400),
        ("GET", "/", {"Host": "elsewhere.example"}, 400),
    ],
)
def test_every_answer_is_secured(web, method, path, headers, status):
    answer = web.request(method, path, headers=headers)
    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert answer.headers["Cache-Control"] and "server" not in answer.headers


def test_parts_of_files_and_kept_copies_are_whole_files(web):
    whole = web.get("/plotly.js")
    assert whole.headers["Content-Encoding"] == "gzip" and len(whole.content) > 1e6
    part = web.get("/plotly.js", headers={"Range": "bytes=0-0," * 50 + "0-1", "Accept-Encoding": "identity"})
    assert part.status_code == 200 and part.content == whole.content


def test_a_check_streams_its_progress_and_ends_with_an_answer(web):
    with web.stream("GET", "/api/experiments/catapult/check?steps=12&width=60") as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [event["share"] for event in events] == sorted(event["share"] for event in events)
    names = [part["name"] for part in events[-1]["answer"]["pictures"][0]["parts"]]
    assert names == ["theory", *["trained networks"] * 5]


@pytest.mark.merge
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
        return sum(process.memory_info().rss for process in (psutil.Process(), *workers()))

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
