"""The progress of a command, on a terminal."""

import time

from rich.console import Console


class Progress:
    """Shows progress on standard error, if it is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._status = console.status("", spinner="line") if console.is_terminal else None
        self._told_at = 0.0

    def __enter__(self) -> "Progress":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a text, unless another one has just been shown."""
        now = time.monotonic()
        if self._status is not None and now - self._told_at > 0.1:
            self._told_at = now
            self._status.update(text)
