"""The operator with every step of its event loop timed.

    python steps.py FILE run --kubeconfig ...

SIGUSR1 writes what the steps since the last one took to FILE, in CPU milliseconds: other load does not count. The
Python that the operator is installed in runs it, so it imports nothing of the benchmarks.
"""

import asyncio
import json
import signal
import sys
import threading
import time
from pathlib import Path

from taintwarden.entry import main


class Steps:
    """Times the callbacks of the main thread's event loop. Each is a step: nothing else runs meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._main = threading.get_ident()
        self._clear()

    def _clear(self) -> None:
        self._longest, self._total, self._count, self._what = 0.0, 0.0, 0, ""

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
        signal.signal(signal.SIGUSR1, lambda *_: self._write())

    def _add(self, seconds: float, handle: asyncio.Handle) -> None:
        self._total += seconds
        self._count += 1
        if seconds > self._longest:
            self._longest, self._what = seconds, repr(handle)

    def _write(self) -> None:
        found = {"longest_ms": self._longest * 1e3, "total_ms": self._total * 1e3, "steps": self._count}
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps({**found, "longest": self._what}))
        written.rename(self._path)
        self._clear()


if __name__ == "__main__":
    Steps(Path(sys.argv.pop(1))).install()
    main()
