"""Detection of whether the objects that a stream has delivered are up to date.

There are two proofs. A list holds everything up to the moment at which it was requested. A watch that delivered
everything up to a resourceVersion read after the watch was opened has caught up, and stays so while it is open: events
come in order. Without an open watch the proof lasts for a short time (the gap), which is enough to open the next one.
An open watch or a delivered event proves nothing: a backlog may follow.
"""

import asyncio
from typing import Any

from taintwarden.kube.watch.event_handler import EventHandler

NEVER = float("-inf")


class StreamLiveness:
    """Reports to the handler when the stream becomes live or ceases to be. Times are the event loop's.

    Args:
        gap_seconds: seconds for which the proof lasts without an open watch.
        handler: receives the stream.

    """

    def __init__(self, gap_seconds: float, handler: EventHandler[Any]) -> None:
        self._gap_seconds = gap_seconds
        self._handler = handler
        self.is_live = False
        self._proven_at = NEVER
        self._timer: asyncio.TimerHandle | None = None

    def drop_proof(self) -> None:
        """Drop the proof: what was delivered may be out of date."""
        self._stop_timer()
        self._proven_at = NEVER
        self._set(live=False)

    def prove_by_list(self, at: float) -> None:
        """Note that a list is complete that was requested at the time ``at``."""
        self._proven_at = at
        self.end_watch()

    def end_watch(self) -> None:
        """Note that no watch is open: the proof lasts for the rest of the gap."""
        self._stop_timer()
        ends_at = self._proven_at + self._gap_seconds
        loop = asyncio.get_running_loop()
        if ends_at <= loop.time():
            self._set(live=False)
        else:
            self._timer = loop.call_at(ends_at, self.drop_proof)
            self._set(live=True)

    def begin_watch(self) -> bool:
        """Note that a watch is open. Return True if it resumes the last one within the gap; else it has to catch up."""
        self._stop_timer()
        return self.is_live

    def extend_proof(self) -> None:
        """Note that the open watch delivered something, or ended after it had delivered everything."""
        if self.is_live:
            self._proven_at = asyncio.get_running_loop().time()

    def prove_by_watch(self) -> None:
        """Note that the open watch delivered everything up to a version that was read after it was opened."""
        self._proven_at = asyncio.get_running_loop().time()
        self._set(live=True)

    def _set(self, *, live: bool) -> None:
        if live != self.is_live:
            self.is_live = live
            self._handler.live(live=live)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
