"""Tests run with JAX's own default flags: the library must manage float64 without touching the host program."""

import gc
import os

# Pictures are drawn to files only; without this Matplotlib may look for a display.
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests wait for the compiler, not for arithmetic: without LLVM's optimizations they take a quarter less time.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

import jax
import pytest

# Tracing makes millions of small objects; looking through those that stay takes an eighth of the time.
gc.freeze()
gc.set_threshold(200_000, 100, 1000)


@pytest.fixture(scope="session", autouse=True)
def jax_keeps_its_default_precision():
    """No test, and nothing a test calls, may leave the global float64 flag switched on."""
    assert not jax.config.jax_enable_x64
    yield
    assert not jax.config.jax_enable_x64


@pytest.fixture
def inside_an_empty_folder(tmp_path, monkeypatch):
    """Where commands may write what they like."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
