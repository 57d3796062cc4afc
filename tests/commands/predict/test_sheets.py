"""Excel files are read where openpyxl is there, and one line says so where it is not."""

import datetime
import sys
import types
import zipfile

import numpy as np
import pytest

from nearkernel._commands.predict.reading.data import load

DAY = datetime.datetime(2024, 1, 1)
HEAD = ("id", "area", "sold", "kind", "mixed", None, "price")
ROWS = [
    (f"a{i}", None if i == 3 else 1.5 * i, DAY + datetime.timedelta(days=i), "xyz"[i % 3], (1, "n")[i % 2], None, i)
    for i in range(30)
]  # fmt: skip


class Book:
    """What openpyxl gives, of sheets that are lists of rows."""

    def __init__(self, *sheets):
        self.sheets, self.sheetnames = sheets, [f"sheet {i + 1}" for i in range(len(sheets))]

    def __getitem__(self, name):
        rows = self.sheets[self.sheetnames.index(name)]
        return types.SimpleNamespace(iter_rows=lambda values_only: iter(rows))

    def close(self):
        pass


@pytest.fixture
def sheet(tmp_path, monkeypatch):
    """The path of a file, and a way to say what openpyxl finds in it."""
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)

    def holds(found):
        def opened(*args, **options):
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setitem(sys.modules, "openpyxl", types.SimpleNamespace(load_workbook=opened))

    return path, holds


def test_the_first_sheet_is_read_with_its_dates_and_gaps(sheet):
    path, holds = sheet
    holds(Book([HEAD, *ROWS, (None,) * 7], []))
    data = load(str(path), "price")
    assert data.features == (
        "area", "area (missing)", "sold days", "sold week sin", "sold week cos", "kind=x", "kind=y", "kind=z",
        "mixed=1", "mixed=n",
    )  # fmt: skip
    np.testing.assert_array_equal(data.y, np.arange(30))
    assert "read the first, 'sheet 1': a.xlsx (2 sheets)" in data.notes


def test_bad_sheets_cost_one_line(sheet):
    path, holds = sheet

    def refuses(match):
        with pytest.raises(ValueError, match=match):
            load(str(path), "price")

    refuses(
        r"a\.xlsx: to read \.xlsx install openpyxl \(`pip install openpyxl`\), or save the sheet as \.csv"
    )
    holds(zipfile.BadZipFile("File is not a zip file"))
    refuses(r"a\.xlsx could not be read as xlsx: File is not a zip file")
    holds(Book([HEAD]))
    refuses(r"a\.xlsx has 1 filled rows: it needs a row of column names, then rows")
    holds(Book([(1, 2.5), (3, 4)]))
    refuses(r"a\.xlsx has no header \(its first row holds numbers\): add a row of column names")


def test_a_real_one(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (HEAD, *ROWS):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert load(str(tmp_path / "a.xlsx"), "price").x.shape == (30, 10)
