"""A proxy in front of the API server whose node watches lag."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from controlplane.api_server import LOOPBACK
from controlplane.certificates import Pair

CHUNK_BYTES = 2**16


class LaggingProxy:
    """Passes everything to the API server, and holds back what node watches answer while asked to.

    Reads of nodes and all other watches stay fast: that is the gap in which a pod is bound to a node
    whose taint has just gone.
    """

    def __init__(self, server: str, ca: Path, serving: Pair):
        upstream = urlsplit(server)
        self._upstream = (upstream.hostname, upstream.port)
        self._client_tls = ssl.create_default_context(cafile=str(ca))
        self._server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_tls.load_cert_chain(serving.certificate, serving.key)
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._passed = bytearray()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lagging-proxy", daemon=True)
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        listen = asyncio.start_server(self._serve, LOOPBACK, 0, ssl=self._server_tls)
        self._server = asyncio.run_coroutine_threadsafe(listen, self._loop).result(10)
        self.url = f"https://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def hold_node_watches(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.clear)

    def release_node_watches(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.set)

    def has_passed(self, text: str) -> bool:
        """Whether node watches have lately delivered this text, for example a resourceVersion."""
        return text.encode() in bytes(self._passed)

    async def _close(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(*self._upstream, ssl=self._client_tls)
        connection = Connection(self._flows, self._passed)
        pumps = [
            asyncio.create_task(connection.pass_requests(reader, requests)),
            asyncio.create_task(connection.pass_answers(answers, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for end in (writer, requests):
                end.transport.abort()


class Connection:
    """One client's connection: HTTP/1.1, so a watch has it for itself."""

    def __init__(self, flows: asyncio.Event, passed: bytearray):
        self._flows = flows
        self._passed = passed
        self._watches_nodes = False

    async def pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            line = chunk.split(b"\r\n", 1)[0]
            if line.endswith(b"HTTP/1.1"):
                self._watches_nodes = b" /api/v1/nodes?" in line and b"watch=" in line
            writer.write(chunk)
            await writer.drain()

    async def pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            if self._watches_nodes:
                await self._flows.wait()
                self._passed += chunk
                del self._passed[:-CHUNK_BYTES]
            writer.write(chunk)
            await writer.drain()
