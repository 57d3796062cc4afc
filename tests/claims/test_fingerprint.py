"""A verdict outlives a change of words, and no change of what decides it."""

import pytest

from nearkernel.claims._fingerprint import fingerprint

CLAIM = '''"""A file."""
from .. import Claim, Result, exact
from ._helper import size


class Two(Claim):
    """Two is two."""

    source = "nowhere"
    formula = "2 = 2"

    def run(self, seed: int) -> Result:
        """Looks."""
        found = nk.dynamics.max_margin(size(2), [_scale(seed)])
        return Result((exact("two", 2.0, found, 1e-3),), {"x": found})

    def draw(self, axes, result):
        _point(axes, result)


def _scale(seed):
    return 1.0 + seed


def _point(axes, result):
    axes.plot(result.data["x"])
'''
HELPER = '''"""Helps."""


def size(n):
    return n * _UNIT


_UNIT = 3.0


def other(n):
    return n
'''


@pytest.fixture
def stamp(tmp_path):
    """The fingerprint of the claim, with texts replaced."""

    def stamped(*changes):
        for name, text in (
            ("topic/two.py", CLAIM),
            ("topic/_helper.py", HELPER),
            ("_row.py", "exact = max\n"),
            ("__init__.py", "from ._row import exact as exact\n"),
        ):
            for old, new in changes:
                text = text.replace(old, new)
            path = tmp_path / "package" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return fingerprint(tmp_path / "package/topic/two.py", "Two")

    return stamped


@pytest.fixture(autouse=True)
def read_again(monkeypatch):
    from nearkernel.claims import _fingerprint

    monkeypatch.setattr(_fingerprint, "_contents", _fingerprint._contents.__wrapped__)


@pytest.mark.parametrize(
    "change",
    [
        ("Two is two.", "Two equals two."),
        ("nowhere", "notes, line 3"),
        ("2 = 2", "1 + 1 = 2"),
        ('        """Looks."""\n', "        # looks\n"),
        ("nk.dynamics.max_margin", "nk.theory.max_margin"),
        ("size(2), [_scale(seed)]", "\n            size(2), [_scale(seed)]\n        "),
        ("class Two", "@dataclasses.dataclass(frozen=True)\nclass Two"),
        ("(self, seed: int) -> Result", "(self, seed)"),
        ("_point(axes, result)\n\n\n", "pass\n\n\n"),
        ('axes.plot(result.data["x"])', "pass"),
        ("def other(n)", "def other(n, m)"),
    ],
)
def test_words_and_places_do_not_count(stamp, change):
    before = stamp()
    assert stamp(change) == before


@pytest.mark.parametrize(
    "change",
    [
        ("size(2)", "size(3)"),
        ("1e-3", "1e-2"),
        ("exact(", "statistical("),
        ("nk.dynamics.max_margin", "nk.theory.margin_flow"),
        ("return 1.0 + seed", "return 2.0 + seed"),
        ("_UNIT = 3.0", "_UNIT = 4.0"),
        ("return n * _UNIT", "return n + _UNIT"),
        ("exact = max", "exact = min"),
    ],
)
def test_what_decides_numbers_counts(stamp, change):
    before = stamp()
    assert stamp(change) != before
