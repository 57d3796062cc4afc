"""Numbers at axes and in tables are written for people."""

import pytest

from nearkernel._predict.columns import COLUMNS, for_people
from nearkernel._predict.pictures import _power_of_ten, short
from nearkernel._predict.scores import Score


@pytest.mark.parametrize(
    "value, text",
    [
        (250_000.0, "250k"), (1.4e6, "1.4M"), (-3e9, "-3G"), (9500.0, "9500"), (0.25, "0.25"), (0.0, "0"),
        (1e15, "1e+15"),
    ],
)  # fmt: skip
def test_numbers_at_axes_are_short(value, text):
    assert short(value) == text


def test_powers_of_ten_and_large_losses():
    assert _power_of_ten(1e-3) == "10⁻³" and _power_of_ten(1e12) == "10¹²"
    show = {column.key: column.show for column in COLUMNS["classification"]}["log_loss"]
    assert show(Score(0.1234, 0.01)) == "0.123" and show(Score(197.056, 5.0)) == "197" and show(None) == "-"
    assert for_people(1_683_912.0) == "1,680,000"
