"""Tests run with JAX's own default flags: the library must manage float64 without touching the host program."""

import gc
import os
from pathlib import Path

# Pictures are drawn to files only; without this Matplotlib may look for a display.
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests wait for the compiler more than for arithmetic. Programs, compiled with the flags that users have, are kept
# for the next run (and for commands started by tests) in a folder of the project's own that may be deleted at any time.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

if os.environ.get("NEARKERNEL_TYPES"):
    from support import typed

    typed.install()

import jax
import pytest

from support.durations import Durations

# Tracing makes millions of small objects; looking through those that stay takes an eighth of the time.
gc.freeze()
gc.set_threshold(200_000, 100, 1000)
_MANY_MAPS = 12_000


def pytest_configure(config):
    config.pluginmanager.register(Durations())


@pytest.fixture(scope="session", autouse=True)
def jax_keeps_its_default_precision():
    """No test, and nothing a test calls, may leave the global float64 flag switched on."""
    assert not jax.config.jax_enable_x64
    yield
    assert not jax.config.jax_enable_x64


@pytest.fixture(scope="module", autouse=True)
def programs_are_forgotten_in_time():
    """A process that keeps many thousands of compiled programs runs out of memory maps, and then crashes."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > _MANY_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def inside_an_empty_folder(tmp_path, monkeypatch):
    """Where commands may write what they like."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
