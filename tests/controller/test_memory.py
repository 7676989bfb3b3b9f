"""What a process does with its memory once it knows its cluster."""

import ctypes
import gc
import weakref
from types import SimpleNamespace

from taintwarden.controller import memory


def test_the_collector_does_not_look_at_what_is_known_again():
    before = gc.get_freeze_count()
    memory.release_unused()
    assert gc.get_freeze_count() > before


class Loop:
    """Holds itself."""

    def __init__(self) -> None:
        self.held = self


def test_what_is_not_needed_any_more_is_collected_first():
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
