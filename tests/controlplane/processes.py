"""Child processes that never outlive the tests: each is stopped by its own pid, whatever way the tests end.

Three nets, one below the other: the owner calls `stop`; `atexit` stops what the owner forgot; and where the kernel
offers it (Linux), a child is killed when the interpreter that started it dies without a word.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from controlplane.waiting import wait_until

# Runs in the child before the program replaces it. Not a preexec_fn: that is unsafe with threads, and Python says so.
# The kernel counts the *thread* as the parent: start processes from a thread that lives as long as they should.
TIE_TO_PARENT = """
import ctypes, os, signal, sys
parent, program = int(sys.argv[1]), sys.argv[2:]
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent has gone")
os.execv(program[0], program)
"""

TAIL_LINES = 25
_running: "set[Process]" = set()


class ProcessFailedError(Exception):
    """A process ended, or did not get ready; the message carries the end of its log."""


class Process:
    """One program with its log file; after a restart it continues the same log.

    `patience_seconds` is how long `stop` waits for an orderly end before it kills.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        patience_seconds: float = 15,
    ):
        self.name = name
        self.patience_seconds = patience_seconds
        self.command = [str(part) for part in command]
        self.log = log
        self.env = None if env is None else {**os.environ, **env}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when a signal ended it."""
        return None if self._child is None else self._child.poll()

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        if self.is_running:
            raise ProcessFailedError(f"{self.name} is running already")
        # -S and -I: the shim needs nothing but the standard library, and is gone in 20 ms.
        shim = [sys.executable, "-I", "-S", "-c", TIE_TO_PARENT, str(os.getpid())]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*shim, *self.command],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the tests first, which then stop things in order
            )
        _running.add(self)

    def wait_ready(self, is_ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Raise ProcessFailedError, with the end of the log, if it ends before it is ready or is not ready in time."""

        def ready() -> bool:
            if not self.is_running:
                raise ProcessFailedError(f"{self.name} ended with {self.exit_code}\n{self.tail()}")
            return is_ready()

        try:
            wait_until(ready, timeout_seconds, f"{self.name} to be ready")
        except TimeoutError as error:
            raise ProcessFailedError(f"{error}\n{self.tail()}") from error

    def stop(self) -> int | None:
        """Terminate, then kill when patience ends. Returns the exit code; safe to call twice."""
        if self._child is None:
            return None
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(self.patience_seconds)
            except subprocess.TimeoutExpired:
                self._child.kill()
        return self._reap()

    def kill(self) -> int | None:
        """SIGKILL: what a node failure looks like from inside."""
        if self._child is None:
            return None
        self._child.kill()
        return self._reap()

    def _reap(self) -> int:
        assert self._child is not None
        code = self._child.wait(10)
        _running.discard(self)
        return code

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The end of the log, headed with its place."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([f"--- {self.log}", *text.splitlines()[-lines:]])


@atexit.register
def stop_all() -> None:
    """Stop what is left. The newest first: an API server without its etcd only fills its log."""
    for process in sorted(_running, key=lambda process: process.pid or 0, reverse=True):
        process.stop()


def exists(pid: int) -> bool:
    """Return True if a process with this pid exists; a zombie counts as gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or ") Z" not in stat.read_text()
