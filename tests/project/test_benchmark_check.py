"""Speeds that fell are told; what rose, is new or differs by noise is not."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def record(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("_record")
    sys.modules.pop("_record", None)


@pytest.fixture
def check(monkeypatch, record, tmp_path):
    found = importlib.import_module("check")
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(found, "RESULTS", tmp_path)
    yield found
    sys.modules.pop("check", None)


def ratios(record, **values):
    return tuple(record.Ratio(name, "a rival", value, 1.0) for name, value in values.items())


def test_a_fall_of_more_than_a_quarter_shows(record):
    before = ratios(record, a=4.0, b=4.0, c=4.0, gone=4.0)
    found = record.changes(before, ratios(record, a=2.9, b=3.1, c=9.0, new=0.1))
    assert [change.name for change in found if change.fell] == ["a"]
    assert str(found[0]) == "a (against a rival): 4 before, 2.9 now"
    assert str(found[3]) == "gone (against a rival): 4 before, not measured now"


def test_ratios_come_back_from_their_file(record, tmp_path):
    path = tmp_path / "deep" / "solve.json"
    record.save(path, ratios(record, a=4.0), "a machine")
    assert record.load(path) == ratios(record, a=4.0)
    assert json.loads(path.read_text())["machine"] == "a machine"


def test_two_comparisons_of_one_name_are_refused(record, monkeypatch):
    monkeypatch.setattr(record, "_kept", [])
    record.keep("a", "a rival", 6.0, 2.0)
    assert record.kept() == (record.Ratio("a", "a rival", 3.0, 2.0),)
    with pytest.raises(ValueError, match="two comparisons are named 'a'"):
        record.keep("a", "a rival", 6.0, 2.0)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"ratios": [{"name": "a"}]}'])
def test_a_file_that_is_none_is_named(record, tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(
        ValueError, match=r"bad.json holds no ratios of a benchmark .*: write it again with --write"
    ):
        record.load(path)


def test_a_ratio_is_positive(record, tmp_path):
    record.save(tmp_path / "x.json", ratios(record, a=0.0), "")
    with pytest.raises(ValueError, match=r"the ratio of 'a' must be a number above 0; got 0\.0"):
        record.load(tmp_path / "x.json")


def test_what_fell_is_measured_once_more(record, check, monkeypatch, capsys):
    record.save(record.committed("solve", quick=True), ratios(record, a=4.0, b=4.0), "")
    runs = [ratios(record, a=2.0, b=1.0), ratios(record, a=3.9, b=1.2)]
    monkeypatch.setattr(check, "measured", lambda name: runs.pop(0))
    assert check.main([]) == 1 and not runs
    assert capsys.readouterr().out == (
        "solve: 2 ratios, 1 fell by more than a quarter\n  b (against a rival): 4 before, 1.2 now\n"
    )


def test_results_of_a_busy_machine_are_named(record, check, monkeypatch, capsys):
    record.save(record.committed("solve", quick=True), ratios(record, a=4.0), "", shared=True)
    monkeypatch.setattr(check, "measured", lambda name: ratios(record, a=4.0))
    assert check.main([]) == 0
    assert (
        "refresh with `python benchmarks/solve.py --quick --write` on a quiet one" in capsys.readouterr().out
    )


def test_seconds_at_equal_error_lie_between_those_of_the_runs_around_it(record):
    large = importlib.import_module("large")
    runs = [
        large.Found(None, large.Measured(0, seconds, 2 * seconds, 0, 0), error, None)
        for seconds, error in ((1.0, 0.8), (4.0, 0.2), (2.0, 0.9), (16.0, 0.05))  # the third is of no use
    ]
    best = lambda error: large.at_error(runs, error / large.EQUAL, lambda took: took.best)
    assert best(0.8) == pytest.approx(1.0) and best(0.2) == pytest.approx(4.0)
    assert best(0.4) == pytest.approx(2.0) and best(0.1) == pytest.approx(8.0)  # straight lines in logarithms
    assert best(1.5) == pytest.approx(1.0) and best(0.04) is None
    sys.modules.pop("large")


def test_all_is_well(record, check, monkeypatch, capsys):
    record.save(record.committed("solve", quick=True), ratios(record, a=4.0), "")
    monkeypatch.setattr(check, "measured", lambda name: ratios(record, a=3.5))
    assert check.main(["solve"]) == 0
    assert "0 fell" in capsys.readouterr().out


def test_names_are_checked(record, check):
    with pytest.raises(SystemExit, match="error: no quick run is committed; make one"):
        check.main([])
    record.save(record.committed("solve", quick=True), ratios(record, a=4.0), "")
    with pytest.raises(SystemExit, match="error: nothing has no committed quick run; choose of"):
        check.main(["nothing"])


def test_committed_ratios_can_be_read(record):
    for path in (BENCHMARKS / "results").glob("*.json"):
        assert record.load(path)
