"""TLS without a network: data that is passed on, and bounds on records that carry no data."""

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path

import pytest

from serving.rekeying import APPLICATION, Rekeying
from taintwarden.controller.clock import system_clock
from taintwarden.kube.auth.pem import load_chain
from taintwarden.serving.key_pairs import make_key_pair
from taintwarden.serving.tls_stream import TlsLimits, TlsStream, server_context

SPARE = 32
UPDATE_BYTES = 27
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Below(asyncio.Transport):
    """A plain transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_aborted = self.is_ended = False
        self.is_reading_now = True

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.is_ended = True

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading_now = False

    def resume_reading(self) -> None:
        self.is_reading_now = True

    def taken(self) -> bytes:
        written, self.written = self.written, b""
        return written


class Above(asyncio.Protocol):
    """A protocol above TLS that records its data and its end."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.data = b""
        self.pauses = self.is_lost = self.is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.pauses and self.transport is not None:
            self.transport.pause_reading()

    def eof_received(self) -> bool | None:
        self.is_over = True
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class Connected:
    """The server's stream and the client of one connection."""

    def __init__(self, folder: Path, tls: ssl.SSLContext, limits: TlsLimits) -> None:
        self.above, self.below = Above(), Below()
        self.stream = TlsStream(self.above, tls, limits)
        self.client = Rekeying(folder / "keylog")
        self.stream.connection_made(self.below)

    def shake(self) -> "Connected":
        said, done = self.client.shake(b"")
        while not done:
            self.send(said)
            said, done = self.client.shake(self.below.taken())
        self.send(said)
        self.client.incoming.write(self.below.taken())  # tickets
        return self

    def send(self, data: bytes, at_once: int = 2**14) -> None:
        """Pass bytes to the server, until it has ended the connection."""
        while data and not self.below.is_aborted:
            buffer = self.stream.get_buffer(-1)
            size = min(len(data), at_once, len(buffer))
            buffer[:size] = data[:size]
            self.stream.buffer_updated(size)
            data = data[size:]

    def demand(self, number: int) -> None:
        self.send(b"".join(self.client.updates(number)))

    def say(self, *texts: bytes) -> None:
        self.send(b"".join(self.client.record(APPLICATION, text) for text in texts))


@pytest.fixture(scope="module")
def tls() -> ssl.SSLContext:
    pair = make_key_pair(["localhost"], system_clock().wall)
    made = server_context()
    load_chain(made, pair.certificate + pair.key)
    return made


@pytest.fixture
async def one(tmp_path: Path, tls: ssl.SSLContext) -> Connected:
    return Connected(tmp_path, tls, TlsLimits(max_empty_records=SPARE)).shake()


def test_versions_before_1_2_are_refused(tls):
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_a_client_that_demands_too_many_new_keys_is_disconnected(one):
    """Each demand is answered by a record, and only up to the limit, even if many arrive at once."""
    one.demand(2_000)
    assert one.below.is_aborted
    assert len(one.below.written) <= SPARE * UPDATE_BYTES


@pytest.mark.parametrize(
    ("times", "is_answered", "is_aborted"), [(1, False, False), (10, True, False), (10, False, True)]
)
async def test_some_new_keys_are_allowed_and_after_an_answer_again(one, times, is_answered, is_aborted):
    for _ in range(times):
        one.demand(10)
        one.say(HEAD)
        if is_answered:
            one.stream.mark_answered()
    assert one.below.is_aborted is is_aborted
    assert is_aborted or one.above.data == times * HEAD


async def test_a_body_of_many_records_is_passed_on(one):
    one.say(*[b"x" * 1_000] * 3_000)
    assert len(one.above.data) == 3_000_000
    assert not one.below.is_aborted


@pytest.mark.parametrize("at_once", [1, 3, 5, 7, 26, 28])
async def test_records_may_come_in_pieces(tmp_path, tls, at_once):
    one = Connected(tmp_path, tls, TlsLimits())
    said, done = one.client.shake(b"")
    while not done:
        one.send(said, at_once)
        said, done = one.client.shake(one.below.taken())
    one.send(said, at_once)
    one.send(b"".join([*one.client.updates(3), one.client.record(APPLICATION, HEAD)]), at_once)
    assert one.above.data == HEAD


async def test_data_behind_a_pause_is_not_decrypted(one):
    one.above.pauses = True
    one.say(HEAD, HEAD)
    assert one.above.data == HEAD
    assert not one.below.is_reading_now
    one.stream.resume_reading()
    await asyncio.sleep(0)
    assert one.above.data == 2 * HEAD


async def test_new_keys_behind_a_pause_are_not_processed(one):
    one.above.pauses = True
    one.send(b"".join([one.client.record(APPLICATION, HEAD), *one.client.updates(500)]))
    assert one.below.is_aborted
    assert one.below.written == b""


async def test_an_answer_of_many_records_arrives(one):
    one.stream.write(b"y" * 100_000)
    one.client.incoming.write(one.below.taken())
    assert b"".join(read(one.client.tls)) == b"y" * 100_000


def read(tls: ssl.SSLObject) -> Iterable[bytes]:
    while True:
        try:
            yield tls.read(2**14)
        except ssl.SSLWantReadError:
            return


async def test_a_closed_stream_sends_close_notify(one):
    one.stream.close()
    assert one.below.is_ended
    assert one.stream.is_closing()
    one.client.incoming.write(one.below.taken())
    assert one.client.tls.read(1) == b""


async def test_a_client_without_close_notify_is_disconnected_after_a_time(tmp_path, tls):
    one = Connected(tmp_path, tls, TlsLimits(closing_seconds=0.0)).shake()
    one.stream.close()
    await asyncio.sleep(0.01)
    assert one.below.is_aborted


async def test_data_after_the_end_is_dropped(one):
    one.stream.close()
    one.say(HEAD)
    one.stream.write(b"more")
    assert one.above.data == b""
    assert not one.below.is_aborted


async def test_close_notify_of_the_client_ends_the_stream(one):
    with pytest.raises(ssl.SSLWantReadError):
        one.client.tls.unwrap()
    one.send(one.client.outgoing.read())
    assert one.above.is_over
    assert one.stream.is_closing()


async def test_a_lost_connection_without_close_notify_ends_the_stream(one):
    assert not one.stream.eof_received()
    assert one.above.is_over
    one.stream.connection_lost(None)
    assert one.above.is_lost


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 100, b"\x17\x03\x03\0\0"])
async def test_bytes_that_are_no_tls_end_the_stream_at_once(tmp_path, tls, said):
    one = Connected(tmp_path, tls, TlsLimits())
    one.send(said)
    assert one.stream.is_closing()
    assert one.above.transport is None


async def test_a_modified_record_ends_the_stream(one):
    record = bytearray(one.client.record(APPLICATION, HEAD))
    record[-1] ^= 1
    one.send(bytes(record))
    assert one.stream.is_closing()
    assert one.above.data == b""


async def test_a_handshake_that_does_not_begin_ends_the_connection(tmp_path, tls):
    one = Connected(tmp_path, tls, TlsLimits(handshake_seconds=0.0))
    await asyncio.sleep(0.01)
    assert one.below.is_aborted


async def test_a_stream_that_was_aborted_before_it_began_aborts_its_connection(tls):
    stream, below = TlsStream(Above(), tls, TlsLimits()), Below()
    stream.abort()
    stream.connection_made(below)
    assert below.is_aborted
