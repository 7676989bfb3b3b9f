"""Unused memory is released once a process knows its cluster."""

import ctypes
import gc
import weakref
from types import SimpleNamespace

from taintwarden.controller import memory


def test_known_objects_are_frozen_for_the_garbage_collector():
    before = gc.get_freeze_count()
    memory.release_unused()
    assert gc.get_freeze_count() > before


class Loop:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.held = self


def test_unused_objects_are_collected_first():
    lost = weakref.ref(Loop())
    memory.release_unused()
    assert lost() is None


def test_free_memory_is_returned(monkeypatch):
    trimmed: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=trimmed.append))
    memory.release_unused()
    assert trimmed == [0]


def test_a_c_library_that_cannot_return_it_is_no_error(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    memory.release_unused()
