"""The lab in a real browser: every control moves the numbers to where the library says they are."""

import contextlib
import os
import subprocess
import sys
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from nearkernel.lab import NAMES, find
from nearkernel.lab.picture import plain
from support import odd_worker as do

QUICK = {"catapult"}  # the others compile, and move many controls; their pages are opened by other tests


@pytest.fixture
def page(browser, lab):
    with watched(browser, lab) as page:
        yield page


@contextlib.contextmanager
def watched(browser, lab):
    """A fresh page that fails the test if anything is asked of another machine, or goes wrong in it."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, base_url=lab, accept_downloads=True
    )
    page, trouble = context.new_page(), []
    page.set_default_timeout(120_000)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url) if urlsplit(request.url).hostname not in
            ("127.0.0.1", None) else None)  # fmt: skip
    yield page
    context.close()
    assert trouble == []


def opened(page, address):
    page.goto(address)
    page.wait_for_selector("#content[data-answered]")
    return page


def answers(page) -> int:
    return int(page.locator("#content").get_attribute("data-answered"))


def moved(page, act) -> None:
    """Does something and waits until the page has answered to the last of it."""
    before = answers(page)
    act()
    page.wait_for_function(
        "before => Number(document.getElementById('content').dataset.answered) > before", arg=before
    )
    page.wait_for_timeout(50)
    assert page.inner_text("#error") == ""


def shown(page) -> dict[str, str]:
    return {
        item.get_attribute("data-number"): item.get_attribute("data-value")
        for item in page.query_selector_all("#numbers dd")
    }


def told(name: str, address: str) -> dict[str, str]:
    """The numbers of the library at the settings of an address."""
    typed = dict(parse_qsl(urlsplit(address).query))
    return {number.name: number.value for number in find(name).with_settings(typed).theory().numbers}


def agree(page, name: str) -> None:
    found, expected = shown(page), told(name, page.url)
    assert set(found) == set(expected)
    for quantity, value in expected.items():
        if isinstance(value, str):
            assert found[quantity] == value
        elif np.isfinite(value):
            assert float(found[quantity]) == pytest.approx(plain(float(value)), rel=1e-5, abs=1e-9), quantity
        else:
            assert found[quantity] in (None, "null")


def move(page, spec) -> None:
    """Changes a control by the keyboard, as little as it can be."""
    if spec.kind is tuple:
        page.locator(".handles circle").first.focus()
        page.keyboard.press("ArrowUp")
    elif spec.kind is str and spec.choices:
        other = next(word for word in reversed(spec.choices) if word != spec.default)
        page.select_option(f"#control-{spec.name}", other)
    elif spec.kind is str:
        page.fill(
            f"#control-{spec.name}", "tanh(z) + 0.1*z" if spec.high < 1000 else "0 1 1\n1 0 2\n2 3 2\n3 3 4"
        )
    else:
        page.focus(f"#slider-{spec.name}")
        page.keyboard.press("ArrowLeft" if spec.default == spec.high else "ArrowRight")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n not in QUICK else []) for n in NAMES]
)
def test_every_control_moves_the_numbers_to_the_librarys(page, name):
    opened(page, f"/{name}")
    agree(page, name)
    for spec in find(name).settings():
        moved(page, lambda spec=spec: move(page, spec))
        assert f"{spec.name}=" in page.url
        agree(page, name)
    link, numbers = page.url, shown(page)
    opened(page, link)
    assert shown(page) == numbers  # a link reproduces a view
    moved(page, lambda: page.click("#reset"))
    assert urlsplit(page.url).query == ""


def test_pictures_and_data_are_saved_and_the_program_is_shown(page, tmp_path):
    opened(page, "/catapult?ratio=3")
    for kind, begin in {"png": b"\x89PNG", "svg": b"<svg", "csv": b'"x","theory"'}.items():
        with page.expect_download() as saved:
            page.locator(f"figure >> nth=0 >> [data-save={kind}]").click()
        assert saved.value.suggested_filename == f"nearkernel-catapult-loss.{kind}"
        saved.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(begin)
    page.locator("figure >> nth=0 >> [data-save=python]").click()
    assert page.locator("#python").is_visible()
    assert page.inner_text("#python").strip() == find("catapult")(ratio=3.0).python().strip()


def test_a_check_shows_its_progress_its_networks_and_can_be_stopped(page):
    opened(page, "/catapult?steps=12&width=60")
    page.click("#check")
    expect(page.locator("#progress")).to_have_text("done", timeout=120_000)
    names = page.evaluate("document.querySelector('.plot').data.map(trace => trace.name)")
    assert names == [*["trained networks"] * 5, "theory"]  # theory is drawn last: networks do not cover it
    moved(page, lambda: page.fill("#control-steps", "13"))  # new settings leave the old check behind
    assert page.evaluate("document.querySelector('.plot').data.length") == 1
    page.click("#check")
    page.click("#stop")
    expect(page.locator("#progress")).to_have_text("stopped")
    assert page.locator("#check").is_enabled()


def test_bad_settings_are_told_and_the_picture_stays(page):
    opened(page, "/catapult")
    page.fill("#control-ratio", "99")
    expect(page.locator("#error-ratio")).to_have_text("ratio 99: must be from 0.1 to 4.5.")
    assert page.inner_text("#error") == "" and page.inner_text("#error-width") == ""
    assert page.locator("#control-ratio").get_attribute("aria-invalid") == "true"
    assert page.evaluate("document.querySelector('.plot').data.length") == 1
    moved(page, lambda: page.fill("#control-ratio", "1.5"))
    assert page.locator("#control-ratio").get_attribute("aria-invalid") == "false"


@pytest.mark.slow
def test_bad_rows_are_told_beside_their_field_and_the_pictures_stay(page):
    opened(page, "/own-data")
    before = page.url
    for text, words in {
        "1,2\n" * 250_000: "rows: 999999 characters; at most 6000 are allowed.",
        "é" * 5000: "rows: too many special characters; paste lines of numbers.",
        "a,b\n1,2\n2,nan\n3,1\n4,2": "rows: line 3: 'nan' is not a finite number; write numbers like 0.5 or 1e-3.",
        "1\n2\n3\n4": "rows: line 1 has 1 column; give 1 to 10 inputs and the target, with commas, tabs or spaces "
        "between them.",
        "some words": "rows: 0 rows of numbers; give 4 to 200.",
    }.items():
        page.fill("#control-rows", text)
        expect(page.locator("#error-rows")).to_have_text(words)
        assert page.inner_text("#error") == "" and page.locator(".shown figure").count() == 3
        assert len(page.url) < 2000
    moved(page, lambda: page.click("#reset"))
    assert page.inner_text("#error-rows") == "" and page.url == before


def test_pages_change_without_loading_and_back_goes_back(page):
    opened(page, "/catapult?ratio=1.2")
    page.click("nav a[data-name=bias]")
    expect(page.locator("h1")).to_have_text(find("bias").title)
    page.wait_for_selector("#numbers dd")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Catapult")
    assert page.input_value("#control-ratio") == "1.2"


def test_a_page_that_comes_late_does_not_replace_the_one_chosen_since(page):
    opened(page, "/catapult")
    held = []
    page.route("**/api/claims", lambda route: held.append(route))
    page.click("nav a[data-name=claims]")
    page.click("nav a[data-name=bias]")
    page.wait_for_selector("#numbers dd")
    held[0].continue_()
    page.wait_for_timeout(300)
    assert page.inner_text("h1") == find("bias").title and page.locator("#search").count() == 0


def test_a_long_answer_is_announced(page):
    opened(page, "/catapult")
    held = []
    page.route("**/api/experiments/catapult?*", lambda route: held.append(route))
    page.fill("#control-ratio", "1.1")
    expect(page.locator("#speed")).to_contain_text("Computing")
    moved(page, lambda: held[0].continue_())
    expect(page.locator("#speed")).to_contain_text("Answered in")
    assert page.locator(".shown.waiting").count() == 0


def test_a_server_that_is_gone_is_told(page):
    opened(page, "/catapult")
    page.route("**/api/**", lambda route: route.abort())
    page.fill("#control-ratio", "1.1")
    expect(page.locator("#error")).to_contain_text("does not answer")
    page.click("nav a[data-name=claims]")
    expect(page.locator("#content .error")).to_contain_text("does not answer")


def test_light_dark_and_a_phone(page):
    opened(page, "/catapult")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) != light
    page.click("#theme")
    assert page.evaluate(paper) == light and page.inner_text("#theme").endswith("light")
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("", "catapult", "regions", "claims"):
        page.goto(f"/{name}")
        page.wait_for_selector("#numbers dd, #verdict, #content[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert not page.is_visible("nav#pages") and page.input_value("#menu") == name
    page.select_option("#menu", "catapult")
    page.wait_for_selector("#content[data-answered]")
    page.evaluate("window.scrollTo(0, 500)")
    top = page.locator(".shown").bounding_box()["y"]
    assert 0 <= top < 100  # the picture stays in sight


def test_the_story_opens_its_pages_and_pages_turn(page):
    page.goto("/")
    page.wait_for_selector("#content[data-drawn='6']")
    assert page.locator(".story .plot .main-svg").count() >= 6
    assert page.locator(".story .scene .legend:has(i)").count() == 6  # every picture says what its curves are
    assert page.locator(".pages a").count() == len(NAMES)
    expect(page.locator("#next")).to_contain_text(find(NAMES[0]).menu or find(NAMES[0]).title)
    page.goto("/catapult")
    page.click("#previous")
    expect(page.locator("h1")).to_have_text(find(NAMES[NAMES.index("catapult") - 1]).title)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_page_fits_a_projector_and_a_phone(page, name):
    opened(page, f"/{name}")
    for button in ("#check", "#play", "#fullscreen"):
        box = page.locator(button).bounding_box()
        assert box["y"] + box["height"] < 900, button
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator(".formulas").evaluate("node => node.scrollWidth <= node.clientWidth")
    assert page.locator("#check").bounding_box()["y"] < 844


def test_views_to_try_play_and_the_button_that_trains_are_in_sight(page):
    opened(page, "/catapult?width=60")
    for name in ("#check", "#play", "#fullscreen", ".preset >> nth=3"):
        box = page.locator(name).bounding_box()
        assert box["y"] + box["height"] < 900, name
    chosen = find("catapult").presets[1]
    moved(page, lambda: page.click("[data-preset='1']"))
    assert page.input_value("#control-ratio") == "3" and page.input_value("#control-width") == "1000"
    assert page.inner_text("#see") == chosen.see
    before = answers(page)
    page.click("#play")
    page.wait_for_function(
        "n => Number(document.getElementById('content').dataset.answered) > n + 3", arg=before
    )
    assert float(page.input_value("#control-ratio")) > 3 and page.inner_text("#see") == chosen.see
    page.click("#play")
    page.wait_for_timeout(600)
    still = page.input_value("#control-ratio")
    page.wait_for_timeout(400)
    assert page.input_value("#control-ratio") == still and "Play" in page.inner_text("#play")


def test_the_whole_screen_enlarges_and_its_keys_turn_pages(page):
    opened(page, "/catapult")
    page.click("#fullscreen")
    page.wait_for_selector(":root.lecture", state="attached")
    page.keyboard.press("PageDown")
    expect(page.locator("h1")).to_have_text(find("bias").title)
    page.wait_for_selector("#content[data-answered]")
    expect(page.locator("#fullscreen")).to_have_text("Exit fullscreen")
    page.click("#fullscreen")
    page.wait_for_selector(":root:not(.lecture)", state="attached")
    expect(page.locator("#fullscreen")).to_have_text("Fullscreen")


def test_the_story_fills_the_screen_and_the_last_page_leads_back(page):
    page.goto("/")
    page.wait_for_selector("#content[data-drawn='6']")
    page.click("#fullscreen")
    page.wait_for_selector(":root.lecture", state="attached")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.story .plot')].every(plot =>"
        " Math.abs(plot.querySelector('.main-svg').clientHeight - plot.clientHeight) < 2)"
    )
    page.goto("/claims")
    page.wait_for_selector("#verdict")
    page.click("#fullscreen")
    page.keyboard.press("PageUp")
    expect(page.locator("h1")).to_have_text(find(NAMES[-1]).title)


@pytest.mark.slow
def test_a_short_logarithmic_axis_has_numbers_in_full(page):
    opened(page, "/learning-curve")
    ticks = page.evaluate("[...document.querySelectorAll('.xtick')].map(tick => tick.textContent)")
    assert {"20", "50", "100", "200"} <= set(ticks)


def test_a_name_of_the_legend_hides_its_curve(page):
    opened(page, "/catapult")
    names = "[...document.querySelectorAll('.plot')].at(-1).data.map(trace => trace.name)"
    assert page.evaluate(names) == ["theory", "stable below 2"]
    page.click("[data-curve='stable below 2']")
    page.wait_for_function(f"() => {names}.length === 1")
    moved(page, lambda: page.fill("#control-ratio", "1.1"))
    assert page.evaluate(names) == ["theory"]  # it stays hidden
    page.click("[data-curve='stable below 2']")
    page.wait_for_function(f"() => {names}.length === 2")


def test_formulas_have_a_font_of_their_own(page):
    opened(page, "/catapult")
    assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px \"Lab Math\"'))")
    assert "Lab Math" in page.evaluate("getComputedStyle(document.querySelector('math')).fontFamily")


@pytest.fixture
def odd_page(browser, odd):
    with watched(browser, odd) as page:
        yield page


def test_a_point_follows_the_pointer(odd_page):
    # What is computed does not matter here, only where the point lands.
    page, experiment = odd_page, find("regression")
    opened(page, "/regression")
    box = page.locator(".handles circle").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y - 60, steps=4)
    moved(page, lambda: page.mouse.up() or page.locator(".handles circle").nth(1).press("ArrowRight"))
    points = experiment.with_settings(dict(parse_qsl(urlsplit(page.url).query))).points
    start = experiment().points
    assert points[0][0] > start[0][0] + 0.02 and points[0][1] > start[0][1] + 0.1
    assert points[1] == (pytest.approx(start[1][0] + 0.05), start[1][1])
    moved(page, lambda: page.click("#add-points"))
    assert page.locator(".handles circle").count() == 5


def test_claims_are_found_and_run(page):
    page.goto("/claims")
    page.fill("#search", "random walk")
    page.click("a[data-claim=random-walk]")
    page.wait_for_selector("#verdict[data-verdict=confirmed]")
    assert page.locator("#claim figure svg").count() == 1 and "name=random-walk" in page.url
    assert page.locator("#claim table tr").count() > 1


def sent(page, path):
    """Settings asked for, and what became of each question."""
    found = []
    page.on(
        "requestfinished",
        lambda request: (
            found.append((urlsplit(request.url).query, request.response().status))
            if urlsplit(request.url).path == path
            else None
        ),
    )
    return found


def test_newer_settings_replace_a_question_that_waits(odd_page):
    page = odd_page
    opened(page, "/catapult")
    found = sent(page, "/api/experiments/catapult")
    page.fill("#control-steps", "150")
    page.fill("#control-width", f"{do.SPIN}")  # it takes 1.5 s: the page has its place for so long
    for ratio in ("1.1", "1.2", "1.3", "1.4"):
        page.wait_for_timeout(400)
        page.fill("#control-ratio", ratio)
    page.wait_for_function("() => document.querySelector('.plot').data[0].y[1] === 1.4")
    page.wait_for_timeout(300)
    statuses = [status for query, status in found if f"width={do.SPIN}" in query]
    assert set(statuses) == {200, 409} and "ratio=1.4" in found[-1][0] and found[-1][1] == 200
    assert page.inner_text("#error") == "" and "Answered in" in page.inner_text("#speed")
    assert page.locator(".shown.waiting").count() == 0


def test_what_takes_too_long_is_told(odd_page):
    page = odd_page
    opened(page, "/catapult")
    page.fill("#control-width", f"{do.ENDLESS}")
    expect(page.locator("#error")).to_contain_text("take more than 2 s to compute", timeout=60_000)
    moved(page, lambda: page.fill("#control-width", "100"))


def test_a_page_that_is_left_asks_for_nothing_more(odd_page):
    page = odd_page
    opened(page, "/catapult")
    page.fill("#control-width", f"{do.ASLEEP}")
    page.wait_for_timeout(300)
    page.click("nav a[data-name=regression]")
    page.wait_for_selector(".handles circle")  # its answer does not wait for the other's limit
    assert page.inner_text("#error") == ""


@pytest.mark.parametrize(("ci", "outcome"), [("1", "1 error"), ("", "1 skipped")])
def test_no_browser_fails_in_ci_and_is_skipped_elsewhere(ci, outcome):
    test = f"{__file__}::test_light_dark_and_a_phone"
    settings = {**os.environ, "CI": ci, "PATH": "/nowhere", "CHROMIUM": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)
    assert outcome in done.stdout and "no Chromium here" in done.stdout
    assert done.returncode == (1 if ci else 0)
