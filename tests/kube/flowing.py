"""A server of one resource whose watches a test controls, on the event loop's clock."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kube.scripted import refusal
from taintwarden.kube.errors import TooLong, Unreachable
from taintwarden.kube.http.messages import MAX_ANSWER_BYTES

Json = dict[str, Any]
OPEN_SECONDS = 1_000.0


async def at_once() -> None:
    """Answer without delay."""


async def unanswered() -> None:
    """Answer nothing until the client gives up."""
    await asyncio.sleep(OPEN_SECONDS)
    raise Unreachable("timed out")


async def refused() -> None:
    """The connection is refused."""
    raise Unreachable("connection refused")


async def expired() -> None:
    """The version is too old."""
    raise refusal(410)


def after(seconds: float) -> Callable[[], Awaitable[None]]:
    """Return a function that answers after `seconds` seconds."""

    async def wait() -> None:
        await asyncio.sleep(seconds)

    return wait


class Watch:
    """One open watch."""

    def __init__(self, params: Mapping[str, str], overrun: float) -> None:
        self.since = params["resourceVersion"]
        self.seconds = int(params["timeoutSeconds"])
        self._overrun = overrun
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def send(self, version: int, name: str = "a", kind: str = "MODIFIED") -> None:
        meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": str(version)}
        self.send_raw({"type": kind, "object": {"metadata": meta}})

    def bookmark(self, version: int) -> None:
        self.send_raw({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}})

    def send_raw(self, frame: Json) -> None:
        self._chunks.put_nowait(json.dumps(frame).encode() + b"\n")

    def send_part(self) -> None:
        """Some bytes of a frame."""
        self._chunks.put_nowait(b" ")

    def end(self) -> None:
        """End the watch as a server does, after all frames."""
        self._chunks.put_nowait(None)

    def cut(self) -> None:
        self._chunks.put_nowait(Unreachable("connection reset"))

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async with asyncio.timeout(self.seconds + self._overrun):
                while (chunk := await self._chunks.get()) is not None:
                    if isinstance(chunk, Exception):
                        raise chunk
                    yield chunk
        except TimeoutError:
            return


class Server:
    """Answers lists and watches. ``listing``, ``asking`` and ``opening`` delay or refuse the requests of their kind."""

    def __init__(self, version: int = 10) -> None:
        self.version = version
        self.listing: Callable[[], Awaitable[None]] = at_once
        self.asking: Callable[[], Awaitable[None]] = at_once
        self.opening: Callable[[], Awaitable[None]] = at_once
        self.watches: list[Watch] = []
        self.pages: list[Callable[[], Awaitable[None]]] = []
        """Functions that delay or refuse further pages of a list. Without any, a list has one page."""
        self.lists = 0
        self.asked = 0
        self.object_bytes = 0
        """Size of its first object."""
        self.overrun = 0.0
        """Seconds by which watches end later than requested."""

    @property
    def watch(self) -> Watch:
        """The watch that was opened last."""
        return self.watches[-1]

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str], max_bytes: int = MAX_ANSWER_BYTES, **_: Any
    ) -> bytes:
        del method, path
        page, version = 0, self.version
        if params["limit"] == "1":
            self.asked += 1
            await self.asking()
            if self.object_bytes > max_bytes:
                raise TooLong("the answer is too long")
        elif "continue" in params:
            page, version = map(int, params["continue"].split("-"))
            await self.pages[page - 1]()
        else:
            self.lists += 1
            await self.listing()
        more = f"{page + 1}-{version}" if page < len(self.pages) else ""
        return json.dumps({"metadata": {"resourceVersion": str(version), "continue": more}, "items": []}).encode()

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle: float, *, accept: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        del path, idle, accept
        await self.opening()
        watch = Watch(params, self.overrun)
        self.watches.append(watch)
        yield watch.chunks()
