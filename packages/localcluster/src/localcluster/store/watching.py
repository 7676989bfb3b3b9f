"""Watches: a bounded buffer of encoded lines for each client, which the store fills synchronously.

A watch with a full buffer ends, as upstream. The client then reconnects with its last revision.
Forbidden here: sockets, timers.
"""

import asyncio
from collections import deque

from localcluster.errors import ApiError, gone
from localcluster.store.collection import Collection
from localcluster.store.entries import Change, Selection, encode
from localcluster.store.store import Store

BUFFER_MAX = 16_384


class Watcher:
    """The watch of one client, with a buffer of at most `most` lines to send."""

    def __init__(
        self,
        store: Store,
        collection: Collection,
        selection: Selection,
        prefix: bytes,
        most: int = BUFFER_MAX,
    ) -> None:
        self._store = store
        self._collection = collection
        self._selection = selection
        self._prefix = prefix
        self._most = most
        self._lines: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self.has_ended = False
        self.resource = collection.name
        collection.listeners.append(self._on_change)

    def start(self, revision: int) -> None:
        """Start after a revision. Raises a 410 if it is too old."""
        if revision < self._collection.oldest:
            raise gone(f"too old resource version: {revision} ({self._collection.oldest})")
        for change in self._collection.since(revision):
            self._on_change(change)

    def _on_change(self, change: Change) -> None:
        kind = self._selection.event_type(change)
        if kind is None or self.has_ended:
            return
        if len(self._lines) >= self._most:
            self.end()
            return
        self._lines.append(change.watch_line(kind, self._prefix))
        self._wake.set()

    def put(self, line: bytes) -> None:
        """Add a line to the buffer without filtering."""
        self._lines.append(line)
        self._wake.set()

    def bookmark(self, template: dict[str, object]) -> bytes:
        """Return a bookmark with the newest revision. The buffer has to be empty."""
        metadata = {"resourceVersion": str(self._store.revision)}
        return b'{"type":"BOOKMARK","object":' + encode({**template, "metadata": metadata}) + b"}\n"

    def end(self) -> None:
        """End the watch after the buffered lines."""
        self.has_ended = True
        self._wake.set()

    def close(self) -> None:
        """Unsubscribe from the collection."""
        self.end()
        if self._on_change in self._collection.listeners:
            self._collection.listeners.remove(self._on_change)

    def take(self, limit: int = 256) -> list[bytes]:
        """Return and remove up to `limit` lines, in order."""
        lines = [self._lines.popleft() for _ in range(min(limit, len(self._lines)))]
        if not self._lines and not self.has_ended:
            self._wake.clear()
        return lines

    async def ready(self, timeout_seconds: float) -> bool:
        """Wait until there is a line to send or the watch has ended. Returns False after a timeout."""
        try:
            async with asyncio.timeout(max(timeout_seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True


def error_line(error: ApiError) -> bytes:
    """Return the ERROR line of a watch that fails after its response has begun."""
    return b'{"type":"ERROR","object":' + encode(error.status()) + b"}\n"
