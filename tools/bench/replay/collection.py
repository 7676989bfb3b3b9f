"""The objects of one resource: pages of lists, versions, and watches with bookmarks and history."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Any

from bench.replay import wire
from taintwarden.kube.wire.protobuf_kinds import MESSAGES
from taintwarden.kube.wire.resources import Resource

FIRST_VERSION = 1_000_000
MAX_HISTORY = 50_000
MAX_LISTS = 4
"""How many lists can be continued."""
BOOKMARK_BEFORE_END_SECONDS = 2.0
BOOKMARK_SECONDS = 60.0
EXPIRED = wire.field(3, b"too old resource version") + wire.field(4, b"Expired") + b"\x30\x9a\x03"
"""A Status with code 410."""


class Versions:
    """The resourceVersions of the whole store."""

    def __init__(self) -> None:
        self.newest = FIRST_VERSION

    def next(self) -> int:
        self.newest += 1
        return self.newest


class Collection:
    """Encoded objects by their keys (``namespace/name``, or the name)."""

    def __init__(self, resource: Resource[Any], versions: Versions, messages: Iterable[Any] = ()):
        group, version, self._kind = resource.message.split(".")
        self._api_version = version if group == "core" else f"{group}/{version}"
        self._message = MESSAGES[resource.message]
        self._versions = versions
        self._history: deque[tuple[int, bytes]] = deque(maxlen=MAX_HISTORY)
        self._forgotten = FIRST_VERSION
        """The newest version whose event is not in the history any more."""
        self._watches: set[_Watch] = set()
        self._lists: OrderedDict[int, tuple[int, list[bytes]]] = OrderedDict()
        self.items: dict[str, bytes] = {}
        self.watches_opened = 0
        for message in messages:
            message.metadata.resourceVersion = str(FIRST_VERSION)
            self.items[key_of(message)] = message.SerializeToString()

    # -- reading and writing objects ------------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """The object's message. Raises KeyError."""
        return self._message.FromString(self.items[key])

    def put(self, message: Any) -> None:
        """Store an object that is new or has changed, and send it to the watches."""
        key = key_of(message)
        self._publish("MODIFIED" if key in self.items else "ADDED", message)
        self.items[key] = message.SerializeToString()

    def remove(self, key: str) -> None:
        """Raises KeyError."""
        message = self.get(key)
        del self.items[key]
        self._publish("DELETED", message)

    def _publish(self, event: str, message: Any) -> None:
        version = self._versions.next()
        message.metadata.resourceVersion = str(version)
        frame = self._frame(event, message.SerializeToString())
        if len(self._history) == MAX_HISTORY:
            self._forgotten = self._history[0][0]
        self._history.append((version, frame))
        for watch in self._watches:
            watch.send(frame)

    def _frame(self, event: str, raw: bytes) -> bytes:
        return wire.frame(event, wire.wrapped(self._api_version, self._kind, raw))

    # -- lists ----------------------------------------------------------------------------------------------------

    def page(self, limit: int, token: str) -> bytes:
        """A page of the list that the token continues, or of a new one. Raises KeyError for one of long ago."""
        if token:
            number, begin = map(int, token.split("."))
            version, items = self._lists[number]
        else:
            number, begin = max(self._lists, default=0) + 1, 0
            version, items = self._lists[number] = self._versions.newest, list(self.items.values())
            if len(self._lists) > MAX_LISTS:
                self._lists.popitem(last=False)
        end = begin + limit if limit else len(items)
        following = f"{number}.{end}" if end < len(items) else ""
        content = wire.listed(version, following, islice(items, begin, end))
        return wire.wrapped(self._api_version, f"{self._kind}List", content)

    # -- watches --------------------------------------------------------------------------------------------------

    async def watch(self, version: int, seconds: float) -> AsyncIterator[bytes]:
        """Frames of all events after this version, for so long."""
        if version < self._forgotten:
            yield self._expired()
            return
        self.watches_opened += 1
        watch = _Watch()
        for at, frame in self._history:
            if at > version:
                watch.send(frame)
        self._watches.add(watch)
        now = asyncio.get_running_loop().time
        end = now() + seconds
        bookmark = min(now() + BOOKMARK_SECONDS, end - BOOKMARK_BEFORE_END_SECONDS)
        try:
            while now() < end:
                if frames := await watch.receive(min(bookmark, end) - now()):
                    yield frames
                if watch.is_expired:
                    yield self._expired()
                    return
                if now() >= bookmark:
                    yield watch.take() + self._bookmark()
                    last = end - BOOKMARK_BEFORE_END_SECONDS
                    bookmark = min(bookmark + BOOKMARK_SECONDS, last) if bookmark < last else end
        finally:
            self._watches.discard(watch)

    def expire(self) -> None:
        """Forget the history, and end the watches as when etcd was compacted."""
        self._history.clear()
        self._forgotten = self._versions.next()
        for watch in self._watches:
            watch.expire()

    def _bookmark(self) -> bytes:
        message = self._message()
        message.metadata.resourceVersion = str(self._versions.newest)
        return self._frame("BOOKMARK", message.SerializeToString())

    def _expired(self) -> bytes:
        return wire.frame("ERROR", wire.wrapped("v1", "Status", EXPIRED))


class _Watch:
    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._waiting = asyncio.Event()
        self.is_expired = False

    def send(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._waiting.set()

    def expire(self) -> None:
        self.is_expired = True
        self._waiting.set()

    async def receive(self, seconds: float) -> bytes:
        """What was sent since the last call, when something was, or after some seconds."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._waiting.wait()
        except TimeoutError:
            return b""
        return self.take()

    def take(self) -> bytes:
        """What was sent since the last call."""
        self._waiting.clear()
        frames, self._frames = self._frames, []
        return b"".join(frames)


def key_of(message: Any) -> str:
    meta = message.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)
