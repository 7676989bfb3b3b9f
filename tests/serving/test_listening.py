"""Connections are bounded in number, rate and bytes, whatever clients send."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from patience import until
from serving.clients import Client, count_open
from taintwarden.controller.clock import system_clock
from taintwarden.kube.auth.pem import load_chain
from taintwarden.serving.key_pairs import make_key_pair
from taintwarden.serving.listening import ConnectionLimits, Listener

SENT = b"x" * 1_000_000


class Recorder(asyncio.Protocol):
    """A protocol that records the data that it receives, and the sizes of its pieces."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.data = b""
        self.ended = asyncio.Event()
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(len(data))
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def test_received_data_is_passed_on_in_small_pieces(port):
    """Data that the parser refuses stays in memory for a while: it must not be a quarter of a megabyte."""
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

    limits = ConnectionLimits(max_connections=5, accept_interval_seconds=0.02)
    listener = Listener(make, None, limits)
    listener.start("127.0.0.1", port)
    clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
    most = 0
    while len(accepted) < 30:
        await asyncio.sleep(0.005)
        most = max(most, len(listener))
    left = [count_open([one]) for one in clients[-5:]]
    for _, writer in clients:
        writer.close()
    await listener.stop()
    listener.close()
    assert (most, left) == (5, [1] * 5), "the oldest end"
    # Half of it: what is late on a busy machine is followed sooner.
    assert accepted[-1] - accepted[0] > 0.5 * (len(accepted) - 1) * limits.accept_interval_seconds


@pytest.mark.parametrize(("answers", "ends"), [((0, 1, 0), 1), ((1,), 0)], ids=["silent longest", "not answered yet"])
async def test_a_new_connection_ends_the_least_useful_one(port, answers, ends):
    made: list[Recorder] = []

    def make() -> asyncio.Protocol:
        made.append(Recorder())
        return made[-1]

    listener = Listener(make, None, ConnectionLimits(max_connections=2))
    listener.start("127.0.0.1", port)
    clients = []
    for number in range(3):
        clients.append(await asyncio.open_connection("127.0.0.1", port))
        await until(lambda: len(made) > number)  # noqa: B023 - it is asked at once
        if number == 1:
            for one in answers:
                listener.mark_answered(made[one].transport)
    await until(lambda: any(one.ended.is_set() for one in made))
    ended = [one.ended.is_set() for one in made]
    for _, writer in clients:
        writer.close()
    await listener.stop()
    listener.close()
    assert ended == [number == ends for number in range(3)]


# -- a port that takes no bodies ---------------------------------------------------------------------------------------

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SECOND = b"GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
Asked = tuple[Recorder, Listener, Client]


@pytest.fixture(params=["plain", "tls"])
async def asked(request: pytest.FixtureRequest, port: int) -> AsyncIterator[Asked]:
    """The protocol of a connection, its listener, and the client's streams."""
    recorder, server_tls, tls = Recorder(), None, None
    if request.param == "tls":
        pair = make_key_pair(["localhost"], system_clock().wall)
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_chain(server_tls, pair.certificate + pair.key)
        tls = ssl.create_default_context(cadata=pair.certificate.decode())
    listener = Listener(lambda: recorder, server_tls, ConnectionLimits(accepts_bodies=False))
    listener.start("127.0.0.1", port)
    name = {} if tls is None else {"server_hostname": "localhost"}
    client = await asyncio.open_connection("127.0.0.1", port, ssl=tls, **name)
    yield recorder, listener, client
    client[1].transport.abort()
    await listener.stop()
    listener.close()


async def say(asked: Asked, *said: bytes) -> None:
    """Send bytes piece by piece, and wait until each piece has arrived."""
    recorder, _, (_, writer) = asked
    for one in said:
        before = len(recorder.data)
        writer.write(one)
        await until(lambda: len(recorder.data) > before)  # noqa: B023 - it is asked at once
    await asyncio.sleep(0.05)  # for more than is to arrive


async def test_a_body_is_not_read(asked):
    """A body may be gigabytes, also once decompressed, and would be parsed by the loop that evicts."""
    await say(asked, HEAD + SENT)
    assert asked[0].data == HEAD


async def test_a_request_waits_until_the_one_before_it_is_answered(asked):
    recorder, listener, _ = asked
    await say(asked, HEAD + SECOND + HEAD)
    assert recorder.data == HEAD
    listener.mark_answered(recorder.transport)
    assert recorder.data == HEAD + SECOND
    listener.mark_answered(recorder.transport)
    assert recorder.data == HEAD + SECOND + HEAD
    listener.mark_answered(recorder.transport)
    await say(asked, SECOND)
    assert recorder.data == HEAD + SECOND + HEAD + SECOND


@pytest.mark.parametrize("cut", range(1, 5))
async def test_headers_that_arrive_in_pieces_are_passed_on_without_the_body(asked, cut):
    await say(asked, HEAD[:5], HEAD[5:-cut], HEAD[-cut:] + SENT)
    assert asked[0].data == HEAD


async def test_a_client_that_disconnects_meanwhile_causes_no_error(asked):
    recorder, listener, (_, writer) = asked
    await say(asked, HEAD + SECOND)
    listener.close()
    listener.mark_answered(recorder.transport)
    await until(lambda: not len(listener))
    writer.transport.abort()
    assert recorder.data == HEAD
