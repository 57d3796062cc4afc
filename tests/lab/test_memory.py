"""Memory that compiling leaves behind is given back, and programs are forgotten only if that is not enough."""

import jax
import pytest

from nearkernel.lab import _memory

MIB = 1 << 20


@pytest.mark.parametrize(
    ("trimmed", "cleared", "cleans", "start"),
    [
        (100, None, 0, 400),
        (800, 450, 1, 400),
        (1000, 980, 1, 980),
    ],  # MiB after each way, and where it begins anew
)
def test_memory_is_given_back_before_programs_are_forgotten(monkeypatch, trimmed, cleared, cleans, start):
    held, calls = [400], []
    monkeypatch.setattr(_memory, "_held", lambda: held[0] * MIB)
    monkeypatch.setattr(_memory, "_give_back", lambda: held.__setitem__(0, cleared if calls else trimmed))
    monkeypatch.setattr(jax, "clear_caches", lambda: calls.append(1))
    _memory._start.cache_clear()
    _memory.tidy()
    assert held == [400] and not calls
    held[0] = 1200
    _memory.tidy()
    assert len(calls) == cleans and _memory._start() == start * MIB
    _memory._start.cache_clear()


def test_giving_back_harms_nothing():
    _memory._give_back()
    assert _memory._held() > 0
