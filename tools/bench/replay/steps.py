"""The operator with every step of its event loop timed.

    python steps.py FILE run --kubeconfig ...

SIGUSR1 writes what the steps since the last one took to FILE, in CPU milliseconds: other load does not count. It
runs on asyncio's own event loop: uvloop does not tell where a step begins and ends. The Python that the operator is
installed in runs it, so it imports nothing of the benchmarks.
"""

import asyncio
import gc
import json
import signal
import sys
import threading
import time
from pathlib import Path

import uvloop

from taintwarden.entry import main


class Steps:
    """Times the callbacks of the main thread's event loop. Each is a step: nothing else runs meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._main = threading.get_ident()
        self._clear()

    def _clear(self) -> None:
        self._longest, self._what = 0.0, ""
        self._collecting_since, self._longest_collection = 0.0, 0.0

    def install(self) -> None:
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            if threading.get_ident() != self._main:
                return run(handle)
            began = time.thread_time()
            run(handle)
            self._add(time.thread_time() - began, handle)
            return None

        asyncio.events.Handle._run = timed  # type: ignore[method-assign]
        uvloop.run = asyncio.run
        gc.callbacks.append(self._collected)
        signal.signal(signal.SIGUSR1, lambda *_: self._write())

    def _add(self, seconds: float, handle: asyncio.Handle) -> None:
        if seconds > self._longest:
            self._longest, self._what = seconds, _name(handle)

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        """A step that allocates pays for the collector's pass, too."""
        if threading.get_ident() != self._main:
            return
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._longest_collection = max(self._longest_collection, time.thread_time() - self._collecting_since)

    def _write(self) -> None:
        found = {
            "longest_step_ms": self._longest * 1e3,
            "longest_step": self._what,
            "longest_collection_ms": self._longest_collection * 1e3,
        }
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps(found))
        written.rename(self._path)
        self._clear()


def _name(handle: asyncio.Handle) -> str:
    """The coroutine of the task that is resumed, or the callback."""
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return task.get_coro().__qualname__ if isinstance(task, asyncio.Task) else repr(handle)


if __name__ == "__main__":
    Steps(Path(sys.argv.pop(1))).install()
    main()
