"""Rows of numbers that people paste."""

import numpy as np
import pytest

from nearkernel.lab import Watch
from nearkernel.lab.experiments.own_data import OwnData
from nearkernel.lab.pasted_rows import LONGEST, table

GOOD = "0,1\n1,2\n2,5\n3,1"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(",", "\t"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "   "),
        GOOD.replace("\n", "\r\n\r\n"),
        GOOD.replace("\n", ",\n"),
        'a,"b"\n' + GOOD,
    ],
)
def test_separators_names_and_empty_lines_are_read(text):
    found = table(text)
    assert found.x.tolist() == [[0], [1], [2], [3]] and found.y.tolist() == [1, 2, 5, 1]
    assert found.names == (("a", "b") if text.startswith("a") else ("input 1", "target"))


def test_a_comma_of_numbers_is_kept_where_semicolons_separate():
    with pytest.raises(ValueError, match=r"rows: line 1: '0,5' is not a finite number"):
        table("0,5;1\n1;2\n2;5\n3;1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rows: empty; paste lines of numbers, the target last."),
        ("1\n2\n3\n4", "rows: line 1 has 1 column; give 1 to 10 inputs and the target"),
        ("\n".join([",".join("123456789123")] * 5), "rows: line 1 has 12 columns"),
        ("0,1\n1,2\n2,5", "rows: 3 rows of numbers; give 4 to 200."),
        ("\n".join(f"{i},{i}" for i in range(201)), "rows: 201 rows of numbers; give 4 to 200."),
        (GOOD + "\n4", "rows: line 5 has 1 column, the first line has 2."),
        (GOOD + "\n4,x", "rows: line 5: 'x' is not a finite number; write numbers like 0.5 or 1e-3."),
        (GOOD + "\n4,nan", "rows: line 5: 'nan' is not a finite number"),
        (GOOD + "\n4,1e99", "rows: line 5: '1e99' is not a finite number"),
        (GOOD + "\n4,,", "rows: line 5: an empty cell is not a finite number"),
        ("0,1\n0,2\n0,5\n0,1", "rows: column 1 (input 1) is constant; leave it out."),
        ("a,b\n0,1\n1,1\n2,1\n3,1", "rows: column 2 (b) is constant; leave it out."),
        (
            "\n".join(f"{i}e-300,{i % 3}" for i in range(6)),
            "rows: column 1 (input 1) varies by 5e-300 only: scale it towards 1.",
        ),
        (
            "\n".join(f"{i},{i % 3}e-200" for i in range(6)),
            "rows: column 2 (target) varies by 2e-200 only: scale it towards 1.",
        ),
        (
            "\n".join(f"{10**12 - i / 1000},{i % 3}" for i in range(6)),
            "rows: column 1 (input 1) varies in its last digits only: subtract a constant from it.",
        ),
        ("__import__('os'),2\n" + GOOD, "rows: line 1: \"__import__('os')\" is not a finite number"),
        ("1," * LONGEST, f"rows: {2 * LONGEST} characters; at most {LONGEST} are allowed."),
    ],
)
def test_what_is_wrong_is_one_line_that_says_where(text, words):
    with pytest.raises(ValueError) as told:
        table(text)
    assert str(told.value).startswith(words) and "\n" not in str(told.value)


def test_an_input_that_the_rows_do_not_have_is_told():
    with pytest.raises(ValueError, match=r"^column 3: the rows have 1 input\.$"):
        OwnData(rows=GOOD, column=3).theory()


@pytest.mark.parametrize("unit", ["e-120", "e11"])
def test_small_and_large_units_are_answered(unit):
    found = OwnData(rows="\n".join(f"{i}{unit},{i % 3}{unit}" for i in range(9))).theory()
    assert all(np.isfinite(part.y).all() for part in found.pictures[0].parts)


def test_predictions_are_in_the_units_of_the_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2)).round(3)
    rows = [(a, b, 100 + 10 * a) for a, b in x]
    one, other = (
        OwnData(rows="\n".join(f"{a:.4f},{scale * b:.4f},{c:.4f}" for a, b, c in rows)).theory()
        for scale in (1.0, 1000.0)
    )
    for left, right in zip(one.pictures[0].parts, other.pictures[0].parts, strict=True):
        np.testing.assert_allclose(left.y, right.y, rtol=1e-6)
    known = {number.name: number.value for number in one.numbers}
    assert known["R² on new rows"] > 0.9 and 0 < known["typical error"] < 5


@pytest.mark.slow
def test_networks_trained_on_rows_end_at_the_kernel_machine():
    """Mean and spread of ten networks of width 128, by the standard errors of ten; small ridges need wider ones."""
    answer = OwnData(depth=1, activation="erf").check(Watch())
    parts = answer.pictures[0].parts
    networks = np.array([part.y for part in parts if part.name == "trained networks"])
    wide = next(part for part in parts if part.name == "NTK")
    std = (wide.band[1] - wide.band[0]) / 2
    z = (networks.mean(axis=0) - wide.y) / (std / len(networks) ** 0.5)
    assert np.sqrt(np.mean(z**2)) < 2 and np.abs(z).max() < 5
    assert networks.std(axis=0, ddof=1).sum() == pytest.approx(std.sum(), rel=0.35)
