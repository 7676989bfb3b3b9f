"""Servers that send the bytes of a test, and a client of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kube import wire
from taintwarden.kube.http.http_session import HttpSession
from taintwarden.kube.http.messages import Answer, Request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRETRY-AFTER: 7\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Answers each request with the next of these bytes; empty ones end the connection instead."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = asyncio.Event()
        """Set once a client has ended a connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while answer := await self.answer(reader):
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()
        finally:
            writer.close()

    async def answer(self, reader: asyncio.StreamReader) -> bytes:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        return self._answers.pop(0)


@asynccontextmanager
async def serving(serve: Callable[..., Awaitable[None]], path: str = "", most: int = 8) -> AsyncIterator[HttpSession]:
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with asyncio.timeout(60), listening:
        made = HttpSession(wire.connection(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}{path}"), most)
        yield made
        await made.close()


async def send(made: HttpSession, method: str = "GET", path: str = "/a", seconds: float = 5.0) -> Answer:
    return await made.send(Request(method, path, {}, {}), seconds)
