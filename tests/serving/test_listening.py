"""Connections, whatever is said on them."""

import asyncio

from taintwarden.serving.listening import Listener

SENT = b"x" * 1_000_000


class Recorder(asyncio.Protocol):
    """How much it was given at once."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.pieces.append(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def test_what_is_said_is_passed_on_in_small_pieces():
    """What the parser refuses stays in memory for a while: it must not be a quarter of a megabyte."""
    recorder = Recorder()
    listener = Listener(lambda: recorder, tls=None)
    listener.start("127.0.0.1", 0)
    port = listener._sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(SENT)
    writer.close()
    async with asyncio.timeout(60):
        await recorder.ended.wait()
    assert sum(recorder.pieces) == len(SENT)
    assert max(recorder.pieces) < 2**16
    await listener.stop()
