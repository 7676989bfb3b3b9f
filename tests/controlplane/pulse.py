"""Time that a busy machine takes from every process on it, so that tests do not count it as late."""

import threading
import time
from typing import Self

import urllib3

from controlplane.client import ApiError, Client, resource_path

BEAT_SECONDS = 0.1
NORMAL_SECONDS = 0.05  # what the server may take for an answer


class Pulse:
    """Asks the API server something small ten times a second, in a thread, and remembers which answers were late.

    A machine that stands still, or runs other programs, is late here as everywhere. Upper bounds of tests grow by
    what was lost; lower bounds hold as they are. A server that was stopped refuses, and a refusal is not late.
    """

    def __init__(self, client: Client):
        self._client = client
        self._late: list[tuple[float, float]] = []
        self._due: float | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def lost(self, since: float, until: float | None = None) -> float:
        """The seconds lost between two moments of the monotonic clock; `until` is now by default."""
        due, now = self._due, time.monotonic()
        # In this order: a beat that ends meanwhile is in both, and counts once.
        spans = ({} if due is None else {due: now}) | dict(self._late)
        end = now if until is None else until
        return sum(max(0.0, min(ended, end) - max(due, since) - NORMAL_SECONDS) for due, ended in spans.items())

    def _beat(self) -> None:
        path = resource_path("namespaces", "default")
        while True:
            due = time.monotonic() + BEAT_SECONDS
            if self._stopping.wait(BEAT_SECONDS):
                return
            self._due = due
            try:
                self._client.request("GET", path)
                if (ended := time.monotonic()) - due > NORMAL_SECONDS:
                    self._late.append((due, ended))
            except (ApiError, urllib3.exceptions.HTTPError):
                pass
            finally:
                self._due = None
