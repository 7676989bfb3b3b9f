"""Connections, whatever is said on them."""

import asyncio
from itertools import pairwise

from serving.clients import open_ones
from taintwarden.serving.listening import ConnectionLimits, Listener

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


async def test_what_is_said_is_passed_on_in_small_pieces(port):
    """What the parser refuses stays in memory for a while: it must not be a quarter of a megabyte."""
    recorder = Recorder()
    listener = Listener(lambda: recorder, tls=None)
    listener.start("127.0.0.1", port)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(SENT)
    writer.close()
    async with asyncio.timeout(60):
        await recorder.ended.wait()
    assert sum(recorder.pieces) == len(SENT)
    assert max(recorder.pieces) < 2**16
    await listener.stop()


async def test_a_flood_is_bounded_and_paced(port):
    accepted, now = [], asyncio.get_running_loop().time

    def make() -> asyncio.Protocol:
        accepted.append(now())
        return asyncio.Protocol()

    limits = ConnectionLimits(most=5, accept_interval_seconds=0.02)
    listener = Listener(make, None, limits)
    listener.start("127.0.0.1", port)
    clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
    most = 0
    while len(accepted) < 30:
        await asyncio.sleep(0.005)
        most = max(most, len(listener))
    left = [open_ones([one]) for one in clients[-5:]]
    for _, writer in clients:
        writer.close()
    await listener.stop()
    listener.close()
    assert (most, left) == (5, [1] * 5), "the oldest end"
    assert min(late - early for early, late in pairwise(accepted)) > 0.9 * limits.accept_interval_seconds
