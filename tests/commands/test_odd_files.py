"""Pipes, devices, full disks, killed and competing processes: files are whole or absent, and nothing waits for ever."""

import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._base.files import write_alone, write_whole
from nearkernel._base.npz import npz_arrays
from public_calls._good import X_NEW, X, Y
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def model():
    return nk.estimators.DeepLinearBayes().fit(X, Y)


@pytest.fixture
def pipe():
    """Nobody writes to it: who opens it waits for ever."""
    os.mkfifo("pipe.npz")
    os.symlink("pipe.npz", "pipe.csv")
    os.symlink("pipe.npz", "pipe.py")
    return Path("pipe.npz")


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "pipe.csv", "--target", "y"),
        ("curve", "pipe.csv", "--target", "y"),
        ("inspect", "pipe.py:net", "iris"),
        ("advise", "--data", "pipe.csv", "--target", "y"),
        ("kernel", "build", "pipe.npz", "--kernel", "ntk", "--out", "K.zarr"),
        ("apply", "pipe.npz", "pipe.npz"),
    ],
)
def test_a_pipe_is_no_file_to_read(words, pipe):
    found = nearkernel(*words, code=2)
    assert "is not a regular file: copy it to one" in found.stderr and found.stderr.count("\n") == 1


def test_a_pipe_is_no_archive(pipe):
    with pytest.raises(ValueError, match="is not a regular file"):
        npz_arrays(pipe, "pipe.npz", {"x": ""})


def test_what_is_written_to_a_device_leaves_it_there():
    model().save("model.nk")
    np.savez("new.npz", x=X_NEW)
    nearkernel("apply", "model.nk", "new.npz", "--out", os.devnull)
    nk.save(model(), os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    if Path("/dev/full").exists():
        found = nearkernel("apply", "model.nk", "new.npz", "--out", "/dev/full", code=2)
        assert "--out /dev/full: could not write there (No space left on device)" in found.stderr
        with pytest.raises(OSError, match="No space left on device"):
            nk.save(model(), "/dev/full")


def limited(code: str, size: int) -> subprocess.CompletedProcess:
    """Python `code` in a process whose files may not grow beyond `size` bytes, as on a full disk."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return subprocess.run([sys.executable, "-c", code], preexec_fn=limit, capture_output=True, text=True)


def test_a_full_disk_leaves_the_old_model():
    model().save("model.nk")
    before = Path("model.nk").read_bytes()
    ran = limited("import nearkernel as nk; nk.load('model.nk').save('model.nk')", 1000)
    assert ran.returncode == 1 and ran.stderr.strip().endswith("File too large: 'model.nk'")
    assert os.listdir() == ["model.nk"] and Path("model.nk").read_bytes() == before


def test_a_full_disk_costs_one_line_of_a_command():
    model().save("model.nk")
    np.savez("new.npz", x=np.tile(X_NEW, (500, 1)))
    code = "import sys; from nearkernel.cli import main; sys.argv = {}; main()"
    words = ["nearkernel", "apply", "model.nk", "new.npz", "--out", "found.csv"]
    ran = limited(code.format(words), 1000)
    assert (
        ran.returncode == 2
        and ran.stderr == "error: --out found.csv: could not write there (File too large).\n"
    )
    assert sorted(os.listdir()) == ["model.nk", "new.npz"]


def test_an_error_names_the_file_that_was_asked_for(monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device: 'file'"):
        write_whole(Path("file"), b"123")
    assert not os.listdir()


def test_what_a_killed_process_left_is_swept():
    code = (
        "import os; from pathlib import Path; from nearkernel._base import files\n"
        "files.os.fsync = lambda file: os.kill(os.getpid(), 9)\n"
        "files.write_alone(Path('model.nk'), bytes(1000))\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (left,) = os.listdir()
    assert left.startswith(".model.nk.") and left.endswith(".unfinished")
    write_alone(Path("model.nk"), b"whole")
    assert os.listdir() == ["model.nk"] and Path("model.nk").read_bytes() == b"whole"


WRITER = """
import sys
from pathlib import Path
from nearkernel._base.files import write_alone
while True:
    write_alone(Path("model.nk"), sys.argv[1].encode() * 50_000)
"""


def test_of_two_writers_one_is_last_and_readers_see_whole_files():
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, word]) for word in ("a", "b")]
    try:
        seen, until = set(), time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < until:
            if Path("model.nk").exists():
                text = Path("model.nk").read_bytes()
                assert len(text) == 50_000 and len(set(text)) == 1
                seen.add(text[0])
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert len(seen) == 2
    write_alone(Path("model.nk"), b"c")
    assert os.listdir() == ["model.nk"]
