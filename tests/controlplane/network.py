"""The way from a program to the API server: a proxy that can be late, and break in the ways in which networks break."""

import asyncio
import json
import random
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from controlplane.api_server import LOOPBACK
from controlplane.certificates import Pair

CHUNK_BYTES = 2**16
HEAD_BYTES = 2**18
THROTTLED_BYTES = 8_192
"""Maximum bytes at once where bytes per second are limited."""
Answer = tuple[str, dict[str, str], str]
"""Status line, headers, message."""
ERRORS: tuple[Answer, ...] = (
    ("500 Internal Server Error", {}, "the proxy failed"),
    ("429 Too Many Requests", {"Retry-After": "1"}, "the proxy has too much to do"),
    ("504 Gateway Timeout", {}, "the proxy waited too long"),
)


@dataclass
class Conditions:
    """How the network is now. Read for each request and each piece of an answer; set from other threads."""

    is_silent: bool = False
    """Nothing passes, without FIN or RST."""
    delay_seconds: float = 0.0
    bytes_per_second: float = 0.0
    """Limit of all answers together; 0 for no limit."""
    error_share: float = 0.0
    before: Callable[[str], None] | None = None
    """Called, in a thread, with each request line before it passes."""


class Network:
    """One thread with the event loop of all links."""

    def __init__(self, server: str, ca: Path, serving: Pair) -> None:
        upstream = urlsplit(server)
        self.upstream = (upstream.hostname, upstream.port)
        self.client_tls = ssl.create_default_context(cafile=str(ca))
        self.server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_tls.load_cert_chain(serving.certificate, serving.key)
        self.loop = asyncio.new_event_loop()
        self.links: list[Link] = []
        self._thread = threading.Thread(target=self.loop.run_forever, name="network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    async def _close(self) -> None:
        for link in self.links:
            link.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)


class Link:
    """A program's proxy. Its address stays the same over everything that happens to it."""

    def __init__(self, network: Network, seed: int = 0) -> None:
        self.conditions = Conditions()
        self.requests: list[float] = []
        """Times of all requests, of every kind and with every outcome (seconds since 1970)."""
        self._network = network
        self._random = random.Random(seed)
        self._connections: set[Connection] = set()
        self._throttle = asyncio.Lock()
        listen = asyncio.start_server(self._serve, LOOPBACK, 0, ssl=network.server_tls, limit=HEAD_BYTES)
        self._server = asyncio.run_coroutine_threadsafe(listen, network.loop).result(10)
        self.url = f"https://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"
        network.links.append(self)

    def close(self) -> None:
        """Stop serving connections; called in the thread of the network."""
        self._server.close()
        self._each(Connection.abort)

    def cut(self) -> None:
        """Reset every connection."""
        self._network.loop.call_soon_threadsafe(self._each, Connection.abort)

    def lose(self) -> None:
        """Drop all data of open connections, without closing them; new ones work."""
        self._network.loop.call_soon_threadsafe(self._each, Connection.lose)

    def _each(self, do: "Callable[[Connection], None]") -> None:
        for connection in list(self._connections):
            do(connection)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        self._connections.add(connection)
        try:
            await connection.run(self._network)
        finally:
            self._connections.discard(connection)

    def error(self) -> Answer | None:
        """The proxy's own answer in place of the server's, for a share of the requests at random."""
        if self._random.random() >= self.conditions.error_share:
            return None
        return self._random.choice(ERRORS)

    async def throttle(self, size: int) -> None:
        if self.conditions.bytes_per_second:
            async with self._throttle:
                await asyncio.sleep(size / (self.conditions.bytes_per_second or float("inf")))


class Connection:
    """One connection of a client with its own to the server. A client sends a request when it has the last answer."""

    def __init__(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link = link
        self._reader = reader
        self._writer = writer
        self._upstream: asyncio.StreamWriter | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._ended = asyncio.Event()

    def abort(self) -> None:
        self._ended.set()
        self._writer.transport.abort()
        if self._upstream:
            self._upstream.transport.abort()

    def lose(self) -> None:
        self._passes.clear()

    async def run(self, network: Network) -> None:
        pumps: list[asyncio.Task[object]] = []
        with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            try:
                host, port = network.upstream
                answers, self._upstream = await asyncio.open_connection(host, port, ssl=network.client_tls)
                coming: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(256)
                work = (
                    self._requests(self._upstream),
                    self._take(answers, coming),
                    self._deliver(coming),
                    self._ended.wait(),
                )
                pumps = [asyncio.create_task(each) for each in work]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
                self.abort()

    async def _open(self) -> None:
        """Wait until this connection carries something."""
        await self._passes.wait()
        while self._link.conditions.is_silent:
            await asyncio.sleep(0.05)
        await self._passes.wait()

    async def _requests(self, upstream: asyncio.StreamWriter) -> None:
        while True:
            head = await self._reader.readuntil(b"\r\n\r\n")
            body = await self._reader.readexactly(_length(head))
            self._link.requests.append(time.time())
            await self._open()
            if error := self._link.error():
                self._writer.write(_written(error))
                await self._writer.drain()
                continue
            if before := self._link.conditions.before:
                await asyncio.to_thread(before, head.split(b"\r\n", 1)[0].decode())
            await asyncio.sleep(self._link.conditions.delay_seconds)
            upstream.write(head + body)
            await upstream.drain()

    async def _take(self, source: asyncio.StreamReader, coming: "asyncio.Queue[tuple[float, bytes]]") -> None:
        at = 0.0
        while chunk := await source.read(CHUNK_BYTES):
            conditions = self._link.conditions
            at = max(at, time.monotonic() + conditions.delay_seconds)
            await coming.put((at, chunk))
        await coming.put((0.0, b""))
        await asyncio.Event().wait()

    async def _deliver(self, coming: "asyncio.Queue[tuple[float, bytes]]") -> None:
        while True:
            at, chunk = await coming.get()
            if not chunk:
                return
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            is_limited = self._link.conditions.bytes_per_second
            size = THROTTLED_BYTES if is_limited else len(chunk)
            for begin in range(0, len(chunk), size):
                piece = chunk[begin : begin + size]
                if is_limited:
                    await self._link.throttle(len(piece))
                await self._open()
                self._writer.write(piece)
                await self._writer.drain()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":", 1)[1])
    return 0


def _written(answer: Answer) -> bytes:
    line, headers, message = answer
    code = int(line.split(" ", 1)[0])
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
    lines = [f"HTTP/1.1 {line}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def most_per_second(times: list[float], begin: float, end: float) -> int:
    """The most requests within any second between two moments."""
    within = sorted(time for time in times if begin <= time <= end)
    most, first = 0, 0
    for index, moment in enumerate(within):
        while within[first] <= moment - 1:
            first += 1
        most = max(most, index - first + 1)
    return most
