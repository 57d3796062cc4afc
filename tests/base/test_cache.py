"""Compiled programs that stay: the second process compiles nothing, whatever happened to the folder meanwhile."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import pytest

import nearkernel as nk
from nearkernel._run import cache as _cache
from nearkernel._run import programs as _programs

PROGRAM = """
import sys, jax, jax.monitoring
heard = []
jax.monitoring.register_event_listener(lambda event, **_: heard.append(event.rpartition("/")[2]))
from nearkernel import activations
import jax.numpy as jnp
jax.jit(lambda v: jnp.sin(v) + 1)(jnp.ones(3)).block_until_ready()
print(heard.count("cache_misses"), heard.count("cache_hits"), jax.config.jax_compilation_cache_dir)
"""


def ask(**environment: str) -> tuple[int, int, str]:
    """How many programs a new process compiled and wrote, how many it read, and where."""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XDG_")) and k != _programs.VARIABLE
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**clean, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    wrote, read, folder = done.stdout.split(maxsplit=2)
    return int(wrote), int(read), folder.strip()


@pytest.fixture
def as_before():
    """JAX's folder is put back."""
    before = jax.config.jax_compilation_cache_dir
    yield
    nk.cache(False)
    jax.config.update("jax_compilation_cache_dir", before)


def entry(folder: Path, name: str, size: int = 1000, used: float = 0.0) -> Path:
    path = folder / f"{name}-cache"
    path.write_bytes(zlib.compress(os.urandom(size), 0))
    if used:
        os.utime(path, (used, used))
    return path


def test_second_process_compiles_nothing_and_a_broken_entry_is_mended(tmp_path):
    first = ask(NEARKERNEL_CACHE=str(tmp_path))
    assert first[0] > 0 and first[1] == 0 and first[2].startswith(str(tmp_path))
    entries = sorted(Path(first[2]).glob("*-cache"))
    entries[0].write_bytes(entries[0].read_bytes()[:-9])  # a process was killed while it wrote
    second = ask(NEARKERNEL_CACHE=str(tmp_path))
    assert second[0] == 1 and second[1] == first[0] - 1
    assert ask(NEARKERNEL_CACHE=str(tmp_path))[:2] == (0, first[0])


@pytest.mark.slow
def test_the_environment_decides(tmp_path):
    home = {"XDG_CACHE_HOME": str(tmp_path / "user"), "HOME": str(tmp_path)}
    assert ask(**home) == (0, 0, "None")
    assert ask(NEARKERNEL_CACHE="off", **home) == (0, 0, "None")
    assert ask(NEARKERNEL_CACHE="on", **home)[0] > 0
    assert ask(NEARKERNEL_CACHE="1", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"), **home)[2] == str(
        tmp_path / "own"
    )
    (tmp_path / "file").touch()
    assert ask(NEARKERNEL_CACHE=str(tmp_path / "file"), **home) == (0, 0, "None")


def test_cache_in_python(tmp_path, as_before):
    found = nk.cache(tmp_path / "programs")
    assert found is not None and found.parent == tmp_path / "programs"
    assert jax.config.jax_compilation_cache_dir == str(found)
    assert found.stat().st_mode & 0o077 == 0
    jax.jit(lambda v: v * 3.25)(2.0).block_until_ready()
    assert list(found.glob("*-cache"))
    assert nk.cache(False) is None and jax.config.jax_compilation_cache_dir is None


def test_a_folder_of_jax_stays_unless_another_is_named(tmp_path, as_before):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    assert nk.cache() == tmp_path
    assert nk.cache(False) is None and jax.config.jax_compilation_cache_dir == str(tmp_path)


def test_folders_that_cannot_be_written_or_belong_to_all_are_not_used(tmp_path, as_before):
    (tmp_path / "file").touch()
    assert nk.cache(tmp_path / "file" / "programs") is None
    part = _programs.usable(tmp_path, mine=True)
    assert part is not None
    part.chmod(0o777)
    assert _programs.usable(tmp_path, mine=True) is None
    assert _programs.usable(tmp_path, mine=False) == part


def test_least_recently_used_go_first(tmp_path):
    old, new = (tmp_path / f"jax-{name}" for name in "ab")
    for folder in (old, new, tmp_path / "other"):
        folder.mkdir()
    entries = [entry(old if k < 3 else new, str(k), used=1e9 + k) for k in range(6)]
    others = [old / "notes.txt", entry(tmp_path / "other", "x", used=1e8)]
    others[0].touch()
    _programs.sweep(tmp_path, 5000)  # six of a thousand do not fit; four do
    assert [path.exists() for path in entries] == [False] * 3 + [True] * 3
    assert all(path.exists() for path in others)
    _programs.sweep(tmp_path, 5000)
    assert sum(path.exists() for path in entries) == 3


def test_long_processes_sweep_too(tmp_path, as_before, monkeypatch):
    found = nk.cache(tmp_path, size=5000)
    monkeypatch.setattr(_cache, "_SWEEP", 1)
    entries = [entry(found, str(k), used=1e9 + k) for k in range(9)]
    _cache._heard("/jax/compilation_cache/cache_misses")
    assert sum(path.exists() for path in entries) < 5


def test_defaults_of_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(_programs, "user_folder", lambda: tmp_path / "mine")
    environment: dict[str, str] = {}
    assert _programs.on_by_default(environment) and environment[_programs.VARIABLE] == "1"
    assert not _programs.on_by_default({_programs.VARIABLE: "OFF"})
    assert _programs.on_by_default({"JAX_COMPILATION_CACHE_DIR": "anything"})
    (tmp_path / "file").touch()
    assert not _programs.on_by_default({_programs.VARIABLE: str(tmp_path / "file")})


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _programs.usable(Path("relative/programs"), mine=True) is None


@pytest.mark.parametrize("bad", [None, 3, "", [1]])
def test_what_is_no_folder_is_refused(bad):
    with pytest.raises(
        TypeError, match=r"`folder` must be a folder, True \(the user's cache folder\) or False; got"
    ):
        nk.cache(bad)


def test_size_is_a_size():
    with pytest.raises(ValueError, match="`size` must be a size such as"):
        nk.cache(True, size="much")
