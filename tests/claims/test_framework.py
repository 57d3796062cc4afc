"""`nearkernel claims`: records, resuming, exit codes, and one line for bad input."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nearkernel import claims
from nearkernel._commands.claims import command, records
from nearkernel._commands.claims.rows import cells
from nearkernel.cli import app
from support.commands import self_contained


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def nearkernel(*arguments, code=0):
    result = CliRunner().invoke(app, ["claims", *map(str, arguments)])
    assert result.exit_code == code, result.output + result.stderr
    return result


class Doubtful(claims.Claim):
    """Two is three."""

    source = "nowhere"
    formula = "2 = 3"

    size: int = claims.setting(10, "How many.", low=1, high=100, quick=5)
    scale: float = claims.setting(1.0, "How much.", low=0.0, high=2.0)

    def run(self, seed):
        return claims.Result((claims.exact("two", 3, 2, 1e-3),), {"x": np.arange(3), "y": np.arange(2)})

    def draw(self, axes, result):
        axes.plot(result.data["x"])


def test_a_row_knows_whether_it_agrees():
    assert claims.statistical("a", 1.0, 1.3, 0.1).ok and not claims.statistical("a", 1.0, 1.5, 0.1).ok
    assert claims.exact("a", 2.0, 2.001, 1e-3).ok and not claims.exact("a", 2.0, 2.1, 1e-3).ok
    assert claims.unlike("a", 1.0, 1.5, sem=0.1) == claims.refuted("a", 1.0, 1.5, sem=0.1)
    assert claims.refuted("a", 1.0, 1.5, sem=0.1).ok and not claims.refuted("a", 1.0, 1.3, sem=0.1).ok
    assert claims.at_most("a", 1.0, 0.5).ok and not claims.at_most("a", 1.0, 1.1).ok
    assert claims.at_least("a", 1.0, 1.1).ok and not claims.at_least("a", 1.0, 0.5).ok
    assert not claims.exact("a", 1.0, math.nan, 1e-3).ok and not claims.refuted("a", 1.0, math.nan).ok
    assert "theory 1, measured 1.5 ± 0.1 (+5.0 σ)" in claims.statistical("a", 1.0, 1.5, 0.1).told


def test_cells_have_the_digits_of_limits_and_no_negative_zero():
    assert cells(claims.exact("a", 1.0, 1.14, 0.15))[3] == "0.14 (limit 0.15)"
    assert cells(claims.exact("a", 2.0, 2.0, 1e-12))[3] == "0 (limit 1e-12)"
    assert cells(claims.statistical("a", 1.0, 0.999, 0.1, 0.125))[3] == "+0.0 σ (limit 4 σ + 0.125)"
    assert cells(claims.at_most("a", -0.0, -0.0))[1:3] == ("≤ 0", "0")


def test_settings_carry_default_quick_value_and_range():
    assert Doubtful.with_settings({}, quick=True).values() == {"size": 5, "scale": 1.0}
    assert Doubtful.with_settings({"size": "7"}, quick=True).size == 7
    size, scale = Doubtful.settings()
    assert (size.flag, size.kind, size.low, size.high, size.quick) == ("--size", int, 1, 100, 5)
    assert scale.kind is float and Doubtful(scale=2).scale == 2.0


@pytest.mark.parametrize(
    ("given", "line"),
    (
        ({"size": "many"}, "--size many: give an integer from 1 to 100."),
        ({"size": "2.5"}, "--size 2.5: give an integer"),
        ({"size": "0"}, "--size 0: must be from 1 to 100."),
        ({"scale": "nan"}, "--scale nan: must be from 0 to 2."),
        ({"sise": "3"}, "unknown setting '--sise' of .* Did you mean 'size'?"),
    ),
)
def test_bad_settings_are_refused(given, line):
    with pytest.raises(ValueError, match=line):
        Doubtful.with_settings(given)


def test_a_run_is_written_and_continued():
    first = nearkernel("run", "random-walk", "--walkers", 500, "--sites=40", "--out", "found", "--seed", 3)
    assert "1 of 1 claims confirmed" in first.stdout and "random-walk: confirmed" in first.stdout
    files = [f"random-walk.{end}" for end in ("csv", "json", "png", "svg")]
    assert sorted(os.listdir("found")) == [*files, "report.html"]
    with open("found/random-walk.json") as file:
        record = json.load(file)
    assert record["settings"] == {"sites": 40, "walkers": 500} and record["seed"] == 3
    assert set(record["versions"]) >= {"jax", "nearkernel"} and record["rows"][1]["sem"] > 0
    written = {name: os.stat(f"found/{name}").st_mtime_ns for name in os.listdir("found")}
    again = nearkernel("run", "random-walk", "--walkers", 500, "--sites=40", "--out", "found", "--seed", 3)
    assert "as before" in again.stdout
    assert written == {name: os.stat(f"found/{name}").st_mtime_ns for name in os.listdir("found")}
    other = nearkernel("run", "random-walk", "--walkers", 600, "--sites=40", "--out", "found", "--json")
    assert json.loads(other.stdout)[0]["settings"]["walkers"] == 600


def test_the_same_seed_gives_the_same_numbers_and_figure(tmp_path):
    one, two = (records.run("brownian-norm", {"points": 3}, 0, tmp_path / name) for name in ("a", "b"))
    assert one["rows"] == two["rows"]
    for end in ("csv", "svg", "png"):
        assert (tmp_path / f"a/brownian-norm.{end}").read_bytes() == (
            tmp_path / f"b/brownian-norm.{end}"
        ).read_bytes()


def test_a_damaged_record_is_run_again(tmp_path):
    claim = claims.find("brownian-norm")(points=3)
    records.run("brownian-norm", claim.values(), 0, tmp_path)
    assert records.finished(claim, 0, tmp_path) and not records.finished(claim, 1, tmp_path)
    (tmp_path / "brownian-norm.json").write_text("{}")
    assert records.finished(claim, 0, tmp_path) is None
    (tmp_path / "brownian-norm.json").write_text("no json")
    assert records.finished(claim, 0, tmp_path) is None


@pytest.fixture
def doubtful(monkeypatch):
    """A wrong claim among the others."""
    monkeypatch.setattr(Doubtful, "fingerprint", classmethod(lambda cls: "none"))
    find = lambda name: Doubtful if name == Doubtful.name() else claims.find(name)
    monkeypatch.setattr(records, "find", find)
    monkeypatch.setattr(command, "find", find)
    return Doubtful.name()


def test_a_wrong_claim_makes_the_exit_code_1_and_says_what_differs(doubtful):
    found = nearkernel("run", doubtful, "brownian-norm", "--quick", "--out", "found", code=1)
    assert (
        "1 of 2 claims confirmed" in found.stdout and "NO" in found.stdout and "are in found" in found.stdout
    )
    assert f"{doubtful}: refuted. two: theory 3, measured 2 (3.3e-01 (limit 1e-03))" in found.stderr
    assert Path(f"found/{doubtful}.csv").read_text() == "x,y\n0,0\n1,1\n2,\n"


def test_the_report_shows_every_claim_in_the_folder(doubtful, monkeypatch):
    monkeypatch.setattr(Doubtful, "statement", "<script>2</script> = 3")
    misprint = claims.Erratum("notes, line 3", "printed as 2 < 2", "2 <= 2", "two")
    monkeypatch.setattr(Doubtful, "erratum", misprint)
    nearkernel("run", "random-walk", "--walkers", 500, "--sites", 40, "--seed", 3, "--out", "found")
    nearkernel("run", doubtful, "brownian-norm", "--quick", "--out", "found", code=1)
    page = Path("found/report.html").read_text("utf-8")
    self_contained(page)
    assert "2 of 3 statements of the theory agree with experiment." in page and page.count("<svg ") == 3
    for name in ("random-walk", "brownian-norm", doubtful):
        assert page.count(f'id="{name}"') == page.count(f'href="#{name}"') == 1
    for text in (
        "notes, line 3: printed as 2 &lt; 2. Most charitable reading: 2 &lt;= 2. Excluded by: two.",
        "&lt;script&gt;2&lt;/script&gt; = 3",
        "nearkernel claims run random-walk --sites 40 --walkers 500 --seed 3",
        f"nearkernel claims run {doubtful} brownian-norm --quick --out found",
        claims.find("brownian-norm").source,
    ):
        assert text in page
    Path("found/random-walk.json").write_text("{}")  # damaged: the next run leaves it out, or makes it again
    nearkernel("run", doubtful, "brownian-norm", "--quick", "--out", "found", code=1)
    assert "1 of 2 statements" in Path("found/report.html").read_text("utf-8")


def test_an_experiment_that_breaks_leaves_the_others_alone(doubtful, monkeypatch):
    monkeypatch.setattr(Doubtful, "run", lambda self, seed: 1 / 0)
    found = nearkernel("run", doubtful, "brownian-norm", "--quick", code=1)
    assert "1 of 2 claims confirmed" in found.stdout and "failed, ZeroDivisionError" in found.stderr


def test_an_interrupted_run_keeps_what_is_finished(doubtful, monkeypatch):
    def stop(self, seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(Doubtful, "run", stop)
    found = nearkernel("run", "brownian-norm", doubtful, "--quick", "--out", "found", code=130)
    assert "interrupted: 1 of 2 claims are finished; the same command resumes from there" in found.stderr
    assert "brownian-norm.json" in os.listdir("found")
    assert "1 of 1 statements" in Path("found/report.html").read_text("utf-8")


@pytest.mark.merge
def test_jobs_give_the_same_numbers():
    names = ("brownian-norm", "catapult-phases", "random-walk")
    one = json.loads(nearkernel("run", *names, "--quick", "--json").stdout)
    two = json.loads(nearkernel("run", *names, "--quick", "--json", "--jobs", 2).stdout)
    assert [record["rows"] for record in one] == [record["rows"] for record in two]
    assert [record["claim"] for record in two] == list(names)


@pytest.mark.parametrize(
    ("typed", "line"),
    (
        (("run",), "error: name the claims to run, or give --all."),
        (("run", "sawtoth"), "error: no claim is named 'sawtoth'. Did you mean 'sawtooth'?"),
        (("show", "sawtoth"), "error: no claim is named 'sawtoth'."),
        (
            ("run", "sawtooth", "--level", "3"),
            "error: unknown setting '--level' of sawtooth: choose from --levels.",
        ),
        (("run", "sawtooth", "--levels", "99"), "error: --levels 99: must be from 3 to 14."),
        (("run", "sawtooth", "--levels"), "error: --levels needs a value."),
        (
            ("run", "sawtooth", "random-walk", "--levels", "3"),
            "error: --levels is a setting of one claim, but 2 are",
        ),
        (
            ("run", "sawtooth", "--all"),
            "error: --all runs every claim with its default settings: leave out sawtooth.",
        ),
        (("run", "sawtooth", "--jobs", "0"), "error: --jobs 0:"),
        (("run", "sawtooth", "--out", "/dev/null/x"), "error: --out /dev/null/x"),
    ),
)
def test_bad_input_costs_one_line(typed, line):
    found = nearkernel(*typed, code=2)
    assert found.stderr.startswith(line) and found.stderr.count("\n") == 1


def test_list_and_show():
    listed = json.loads(nearkernel("list", "--json").stdout)
    assert {claim["name"] for claim in listed} == {claim.name() for claim in claims.every()}
    assert all(claim["name"] in nearkernel("list").stdout for claim in listed)
    shown = nearkernel("show", "sawtooth").stdout
    assert "--levels 10" in shown and "as in line 2500" in shown and "result = Sawtooth(levels=10)" in shown
    assert json.loads(nearkernel("show", "sawtooth", "--json").stdout)["settings"][0]["flag"] == "--levels"
