"""Ctrl-C and kill -9 at bad moments: one line, a clean terminal, no file half written."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path]), "TERM": "xterm-256color"}


def run(script: str, *words: str):
    return subprocess.run(
        [sys.executable, "-c", script, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )


SLOW = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\nprint('loaded', flush=True)\n"
PROGRAM = """
from nearkernel._run.interrupt import run_program, work_begins
import time
def program():
    {begin}
    {work}
    try:
        time.sleep(10)
    finally:
        print("cleaned up")
run_program(program)
"""


def test_an_import_is_not_broken_into():
    with open("slow.py", "w") as file:
        file.write(SLOW)
    early = run(PROGRAM.format(begin="", work="import slow"))
    assert (early.returncode, early.stdout, early.stderr) == (130, "", "interrupted: nothing was written\n")
    late = run(PROGRAM.format(begin="work_begins()", work="import slow"))
    assert (late.returncode, late.stdout) == (130, "loaded\ncleaned up\n")
    assert late.stderr == "interrupted: nothing was written\n"


COLLECTED = """
    import gc, os, signal
    came = []
    def callback(phase, info):
        if not came:
            came.append(os.kill(os.getpid(), signal.SIGINT))
        time.sleep(0.05)
    gc.callbacks.append(callback)
    gc.collect()
"""
DELETED = """
    import os, signal
    class Thing:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
    Thing()
"""


@pytest.mark.parametrize("work", [COLLECTED, DELETED], ids=["callback", "__del__"])
def test_what_python_would_ignore_is_said_again(work):
    found = run(PROGRAM.format(begin="work_begins()", work=work))
    assert (found.returncode, found.stdout) == (130, "cleaned up\n")
    assert found.stderr == "interrupted: nothing was written\n"


def test_other_ends_of_a_program_are_its_own():
    script = (
        "from nearkernel._run.interrupt import run_program\nimport sys\nrun_program(lambda: sys.exit(%s))"
    )
    assert [run(script % code).returncode for code in ("0", "3", "None")] == [0, 3, 0]


PARENT = """
import multiprocessing, os, signal, subprocess, sys, time
from nearkernel._run.interrupt import children_ignore_it, end_with_parent
def work(path):
    end_with_parent()
    time.sleep(0.2)
    open(path, "w").write(str(os.getpid()))
    time.sleep(60)
if __name__ == "__main__":
    with children_ignore_it():
        process = multiprocessing.get_context("spawn").Process(target=work, args=(sys.argv[1],))
        process.start()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    process.join()
"""


def test_processes_leave_ctrl_c_to_their_parent_and_end_with_it():
    with open("parent.py", "w") as file:
        file.write(PARENT)
    parent = subprocess.Popen([sys.executable, "parent.py", "child"], env=ENVIRONMENT)
    end = time.monotonic() + 30
    while not (os.path.exists("child") and os.path.getsize("child")):
        assert parent.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    with open("child") as file:
        child = int(file.read())
    os.kill(child, signal.SIGINT)
    time.sleep(0.2)
    os.kill(child, 0)  # it is still there
    parent.kill()
    parent.wait()
    while os.path.exists(f"/proc/{child}/exe"):
        assert time.monotonic() < end, "the child outlives its parent"
        time.sleep(0.02)


WRITER = """
import os, signal, sys
from pathlib import Path
from nearkernel._base import files as _files
from nearkernel._commands.predict.reporting.output import write_together
at, how, replace, count = int(sys.argv[1]), getattr(signal, sys.argv[2]), os.replace, [0]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
def counted(old, new):
    count[0] += 1
    if count[0] == at:
        os.kill(os.getpid(), how)
    replace(old, new)
_files.os.replace = counted
write_together(Path("out"), {"a": "new a", "b": "new b", "c": "new c"})
"""


def write_old():
    Path("out").mkdir()
    for name in "abc":
        Path("out", name).write_text("old")


@pytest.mark.parametrize(
    "at", range(1, 8)
)  # three files are written, then three are moved; the last one finishes
def test_files_that_belong_together_are_never_mixed(at):
    from nearkernel._commands.predict.reporting.output import write_together

    write_old()
    done = run(WRITER, str(at), "SIGKILL")
    assert done.returncode == (-9 if at < 7 else 0)
    found = {file.name: file.read_text() for file in Path("out").glob("[abc]")}
    assert set(found.values()) <= {"old", "new a", "new b", "new c"}
    if "c" in found:  # the last one speaks for all
        assert found in ({"a": "old", "b": "old", "c": "old"}, {"a": "new a", "b": "new b", "c": "new c"})
    write_together(Path("out"), {"a": "x"})
    assert all(not name.startswith(".") for name in os.listdir("out"))  # what was left is swept up


@pytest.mark.parametrize("at", range(1, 7))
def test_ctrl_c_while_files_are_moved_waits(at):
    write_old()
    done = run(WRITER, str(at), "SIGINT")
    assert "KeyboardInterrupt" in done.stderr
    found = [Path("out", name).read_text() for name in "abc"]
    assert found == (["old"] * 3 if at < 4 else ["new a", "new b", "new c"])
    assert sorted(os.listdir("out")) == ["a", "b", "c"]


COMMANDS = {
    "predict": ("predict", "digits", "--out", "o"),
    "curve": ("curve", "digits", "--out", "o"),
    "advise": ("advise", "--out", "o"),
    "ladder": ("ladder", "--seeds", "1", "--out", "o"),
    "build": ("kernel", "build", "data.npz", "--kernel", "ntk", "--out", "K.zarr", "--memory", "20MB"),
    "solve": ("kernel", "solve", "S.zarr", "data.npz", "--ridge", "1e-3", "--tol", "1e-14", "--out", "c.npz"),
    "verify": ("kernel", "verify", "S.zarr"),
    "claims": ("claims", "run", "--all", "--quick", "--out", "o"),
    "jobs": ("claims", "run", "--all", "--quick", "--jobs", "2", "--out", "o"),
    "lab": ("lab", "--no-browser"),
}


def interrupted(words, seconds: float) -> tuple[int, str]:
    """The exit code and what a terminal shows when Ctrl-C is typed after so many seconds."""
    leader, follower = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    process = subprocess.Popen(
        [sys.executable, "-m", "nearkernel", *words], env=ENVIRONMENT, start_new_session=True, **streams
    )
    os.close(follower)
    shown, start, sent = b"", time.monotonic(), False
    while process.poll() is None or select.select([leader], [], [], 0.1)[0]:
        if select.select([leader], [], [], 0.05)[0]:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
        if not sent and time.monotonic() > start + seconds:
            os.killpg(process.pid, signal.SIGINT)
            sent = True
        assert time.monotonic() < start + seconds + 120, shown[-500:]
    os.close(leader)
    return process.wait(), shown.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_in_a_command_leaves_terminal_and_folder_clean(command):
    import nearkernel as nk

    x = np.random.default_rng(0).normal(size=(3000, 5))
    np.savez("data.npz", x=x, y=x[:, 0])
    settings = {"kernel": "rbf", "length": 2.0}
    nk.scale.build(nk.kernels.RBF(2.0), x, "S.zarr", memory="40MB", settings=settings)
    for seconds in (0.5, 1.5, 4.0, 8.0):
        code, shown = interrupted(COMMANDS[command], seconds)
        assert code in (0, 130), shown  # 0: it was done before, or the lab, which ends so
        assert "Traceback" not in shown and "unexpected" not in shown and "leaked" not in shown
        assert shown.count("\x1b[?25l") <= shown.count("\x1b[?25h")  # the cursor is back
        hidden = [name for _, folders, files in os.walk(".") for name in (*folders, *files) if name[0] == "."]
        assert hidden == []
        if code == 130 and command not in ("build", "claims", "jobs"):
            assert sorted(os.listdir()) == ["S.zarr", "data.npz"] and shown.count("interrupted:") == 1
