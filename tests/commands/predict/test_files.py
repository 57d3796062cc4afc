"""Files as they come: other encodings, other names, and damage; each is read right or refused in one line."""

import codecs
import io
import json
import os
import random
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkernel._commands.predict.reading.data import load
from support.commands import nearkernel

ROWS = "\n".join(f"{i},{i * i % 7}.5,{'äöü'[i % 3]},{i % 2}" for i in range(12))
TABLE = "a,größe,color,label\n" + ROWS + "\n"


@pytest.fixture
def folder(inside_an_empty_folder):
    return inside_an_empty_folder


def refuses(path, match, **options):
    with pytest.raises(ValueError, match=match) as caught:
        load(str(path), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "mark, encoding",
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_encodings_that_say_so_are_read(folder, mark, encoding, ends):
    (folder / "a.csv").write_bytes(mark + TABLE.replace("\n", ends).encode(encoding))
    data = load("a.csv", "label")
    assert data.features == ("a", "größe", "color=ä", "color=ö", "color=ü")
    np.testing.assert_array_equal(data.x[1], [1, 1.5, 0, 1, 0])


def test_other_encodings_are_read_and_said(folder):
    for encoding, name in (
        ("latin-1", "Windows-1252"),
        ("utf-16-le", "UTF-16-LE"),
        ("utf-16-be", "UTF-16-BE"),
    ):
        (folder / "a.csv").write_bytes(TABLE.encode(encoding))
        data = load("a.csv", "label")
        assert data.features[1] == "größe"
        assert f"read as {name}: a.csv (not UTF-8)" in data.notes
    (folder / "a.csv").write_bytes(TABLE.encode("utf-16")[:-1])
    refuses(
        "a.csv", r"begins as UTF-16 text, but continues differently: save it again as UTF-8", target="label"
    )
    (folder / "a.csv").write_bytes(b"\x00\x01\x02" * 100)
    refuses("a.csv", r"has zero bytes, so it is not text: save it again as UTF-8", target="label")
    for start, what in ((b"\x1f\x8b", "a gzip archive"), (b"PK\x03\x04", "a zip archive or an Excel file")):
        (folder / "a.csv").write_bytes(start + b"rest")
        refuses("a.csv", rf"a\.csv is {what}, not text: unpack it, or give it the ending", target="label")
    (folder / "a.csv").write_text("a,label\n1,\n2,\n")
    refuses("a.csv", "column 'label' of a.csv is empty: give a column that has values", target="label")


def parquet_bytes() -> bytes:
    draw, held = np.random.default_rng(0).normal, io.BytesIO()
    parquet.write_table(pa.table({"a": draw(size=40), "c": ["u", "v"] * 20, "y": draw(size=40)}), held)
    return held.getvalue()


def npz_bytes(save) -> bytes:
    draw, held = np.random.default_rng(0).normal, io.BytesIO()
    save(held, x=draw(size=(20, 3)), y=draw(size=20))
    return held.getvalue()


FILES = {
    "a.npz": npz_bytes(np.savez),
    "b.npz": npz_bytes(np.savez_compressed),
    "a.parquet": parquet_bytes(),
    "a.csv": TABLE.encode(),
}


@pytest.mark.filterwarnings("ignore")  # NumPy's, of headers that were damaged
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_refused_in_one_line(folder, name):
    draw, right = random.Random(0), FILES[name]
    target = {"a.parquet": "y", "a.csv": "label"}.get(name)
    for _ in range(150):
        data = bytearray(right)
        if draw.random() < 0.7:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)) :]
        (folder / name).write_bytes(data)
        try:
            load(name, target)
        except (ValueError, MemoryError) as error:
            assert name in str(error) or "--target" in str(error)
            assert "\n" not in str(error) and not isinstance(error, UnicodeError)


def test_a_flipped_byte_in_an_archive_costs_one_line(folder):
    data = bytearray(FILES["a.npz"])
    data[200] ^= 1
    (folder / "a.npz").write_bytes(data)
    for words in (("predict", "a.npz"), ("kernel", "build", "a.npz", "--kernel", "ntk", "--out", "K.zarr")):
        found = nearkernel(*words, code=2)
        line = "error: a.npz is damaged (Bad CRC-32 for file 'x.npy'): copy or write it again.\n"
        assert found.stderr == line
    assert os.listdir() == ["a.npz"]


def test_an_archive_is_not_unpacked_beyond_memory(folder, monkeypatch):
    from nearkernel._run import memory as _memory

    np.savez_compressed("a.npz", x=np.zeros((1000, 100)), y=np.zeros(1000))
    assert (folder / "a.npz").stat().st_size < 10_000
    monkeypatch.setattr(_memory, "available_bytes", lambda: 10**5)
    with pytest.raises(MemoryError, match=r"a\.npz needs 789\.3 KiB, but 97\.7 KiB are free: use fewer rows"):
        load("a.npz")


def test_an_archive_of_other_things_is_refused(folder):
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("x.npy", b"text, and no array")
        archive.writestr("y.npy", b"text")
    refuses("a.npz", r"'x' of a\.npz is not an array: write it with numpy\.savez")
    np.savez("b.npz", x=np.array([{}], dtype=object), y=np.zeros(1))
    refuses("b.npz", r"b\.npz holds Python objects: save plain numbers")


@pytest.mark.skipif(sys.platform != "linux", reason="names of other bytes")
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_file_is_read_whatever_the_bytes_of_its_name(folder, ending):
    name = os.fsdecode(f"caf\xe9.{ending}".encode("latin-1"))
    draw = np.random.default_rng(0).normal
    columns = {"a": draw(size=40), "b": draw(size=40), "y": draw(size=40)}
    if ending == "npz":
        np.savez(name, x=np.column_stack([columns["a"], columns["b"]]), y=columns["y"])
    elif ending == "parquet":
        with open(name, "wb") as file:
            parquet.write_table(pa.table(columns), file)
    else:
        lines = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
        with open(name, "w") as file:
            file.write("\n".join(["a,b,y", *lines]))
    assert load(name, "y").x.shape == (40, 2)
    if ending != "csv":
        return
    words = ["predict", name, "--target", "y", "--depth", "1", "--out", os.fsdecode(b"\xff"), "--json"]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "nearkernel", *words], env=environment, capture_output=True, timeout=120
    )
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    with open(os.fsdecode(b"\xff/result.json"), "rb") as file:
        assert file.read() == done.stdout
    assert json.loads(done.stdout)["data"]["test_rows"] == 8
    with open(os.fsdecode(b"\xff/report.html"), encoding="utf-8") as file:
        assert f"caf?.{ending}" in file.read()
