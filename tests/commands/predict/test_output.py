"""Files appear together or not at all."""

import os

import pytest

from nearkernel._commands.predict.reporting.output import check_writable, write_together

NAMES = ("a.txt", "b.txt")


def test_files_are_written_and_replaced_together(tmp_path):
    folder = tmp_path / "new" / "deep"
    check_writable(folder, NAMES)
    assert not folder.exists()
    write_together(folder, {"a.txt": "one", "b.txt": "zwei ±\n"})
    write_together(folder, {"a.txt": "two"})
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {
        "a.txt": "two",
        "b.txt": "zwei ±\n",
    }


def test_an_interruption_while_writing_leaves_the_old_files(tmp_path, monkeypatch):
    write_together(tmp_path, {"a.txt": "old", "b.txt": "old"})

    def interrupted(path, data):
        if path.name == "b.txt":
            raise KeyboardInterrupt
        path.write_bytes(data)

    monkeypatch.setattr("nearkernel._commands.predict.reporting.output.write_whole", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_together(tmp_path, {"a.txt": "new", "b.txt": "new"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_folders_that_cannot_take_the_files_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"--out .*file: .*file is a file, not a folder"):
        check_writable(tmp_path / "file", NAMES)
    with pytest.raises(ValueError, match=r"--out .*below: .*file is a file, not a folder"):
        check_writable(tmp_path / "file" / "below", NAMES)
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(ValueError, match=r"a.txt is a folder, where the file a.txt belongs"):
        check_writable(tmp_path, NAMES)
    with pytest.raises(ValueError, match=r"--out .*: could not write there \(Not a directory\)"):
        write_together(tmp_path / "file" / "below", {"a.txt": ""})


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # a test run by root may write everywhere
    with pytest.raises(ValueError, match=r"--out .*: no permission to write in"):
        check_writable(tmp_path / "new", NAMES)
