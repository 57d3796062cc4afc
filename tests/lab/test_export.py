"""Pages that open from disk: their frames, their answers, their script."""

import json
import re
import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from nearkernel.lab import NAMES, find
from nearkernel.lab.export import address, answers, export, frames, moving, script, write
from nearkernel.lab.static_files import static
from support.commands import nearkernel


@pytest.mark.parametrize("name", NAMES)
def test_frames_go_from_end_to_end_and_hold_the_default(name):
    each = moving(find(name))
    found = frames(each)
    values = [each.checked(value) for value in found]
    assert values == sorted(values) and values[0] == each.low and values[-1] == each.high
    assert each.typed(each.default) in found and 2 <= len(found) <= 26


def test_answers_are_those_of_the_frames_and_presets():
    catapult = find("catapult")
    found = answers(catapult)
    assert "" in found and "ratio=3" in found and "ratio=3&width=20000&steps=100" in found
    theory = catapult(ratio=3.0).theory()
    assert found["ratio=3"]["pictures"][0]["parts"][0]["y"][1] == pytest.approx(
        theory.pictures[0].parts[0].y[1]
    )
    assert address(catapult, {"steps": "60", "ratio": "3"}) == "ratio=3"  # 60 is the default


def test_the_script_has_every_module_once_and_no_word_of_modules_left():
    found = script()
    modules = {name.removesuffix(".js") for name in static() if name.endswith(".js")}
    assert set(re.findall(r"^modules\.(\w+) =", found, re.MULTILINE)) == modules
    assert not re.search(r"^(import|export) ", found, re.MULTILINE)
    used = set(re.findall(r"= modules\.(\w+);", found))
    assert used <= modules


def test_the_script_is_javascript(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    (tmp_path / "lab.js").write_text(script())
    done = subprocess.run([node, "--check", tmp_path / "lab.js"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_exported_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^--export .*file: is a file; give a folder\.$"):
        export(tmp_path / "file", ["catapult"])
    with pytest.raises(ValueError, match=r"no experiment is named 'catapul'\. Did you mean"):
        export(tmp_path / "new", ["catapul"])
    assert not (tmp_path / "new").exists()
    result = nearkernel("lab", "--page", "catapult", code=2)
    assert (
        "--page needs --export; to open one page, add its name to the address, e.g. /catapult."
        in " ".join(result.stderr.split())
    )


def test_a_copy_opens_from_disk(browser, tmp_path, capsys):
    write(tmp_path / "copy", ["catapult"], as_json=True)
    assert len(json.loads(capsys.readouterr().out)["pages"]) == 2
    page, trouble = browser.new_page(viewport={"width": 1440, "height": 900}), []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:")) else trouble.append(request.url),
    )
    page.goto((tmp_path / "copy" / "index.html").as_uri())
    page.wait_for_selector("#content[data-drawn='6']")
    assert page.locator(".story .scene").count() == 6 and page.locator(".story a").count() == 0
    page.click(".pages a")
    page.wait_for_selector("#content[data-answered]")
    before = page.evaluate("document.querySelector('.plot').data[0].y[3]")
    page.focus("#slider-ratio")
    page.keyboard.press("End")
    page.wait_for_function("before => document.querySelector('.plot').data[0].y[3] !== before", arg=before)
    assert page.input_value("#control-ratio") == "4.5"
    page.click("[data-preset='0']")
    expect(page.locator("#control-ratio")).to_have_value("1.5")
    assert page.locator("#control-width").is_disabled() and page.locator("#check").count() == 0
    page.click("#play")  # a movie has the defaults, so no preset is chosen any more
    expect(page.locator("[data-preset='0']")).to_have_attribute("aria-pressed", "false")
    assert page.inner_text("#error") == ""
    page.close()
    assert trouble == []


@pytest.mark.slow
def test_points_of_a_copy_stay_where_they_are(browser, tmp_path):
    write(tmp_path, ["lazy-rich"], as_json=True)
    page = browser.new_page()
    page.goto((tmp_path / "lazy-rich.html").as_uri())
    page.wait_for_selector("#content[data-answered]")
    page.click("[data-preset='1']")
    expect(page.locator("#control-richness")).to_have_value("2")
    assert page.locator("#control-points input:enabled, #control-points button:enabled").count() == 0
    page.close()
