"""Certificates that are made can be served and trusted; what cannot be used is told."""

import asyncio
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from taintwarden.certificates.pairs import LIFETIME_SECONDS, UnusablePair, make_pair, read_pair

NAMES = ("webhook", "webhook.home", "webhook.home.svc")
NOW = 1_800_000_000.0


def test_it_is_for_its_names_and_as_long_as_asked():
    pair = make_pair(NAMES, NOW)
    assert pair.names == NAMES
    assert pair.begins_at < NOW
    assert pair.ends_at == NOW + LIFETIME_SECONDS


def test_no_two_are_the_same():
    assert make_pair(NAMES, NOW).certificate != make_pair(NAMES, NOW).certificate


def test_reading_gives_what_was_made():
    pair = make_pair(NAMES, NOW)
    assert read_pair(pair.certificate, pair.key) == pair


def test_a_long_name_still_makes_a_certificate():
    assert make_pair(("a" * 63 + ".b.svc",), NOW).names == ("a" * 63 + ".b.svc",)


@pytest.mark.parametrize(
    ("certificate", "key", "told"),
    [
        (b"", b"x", "the certificate is missing"),
        (b"x", b"", "the key is missing"),
        (b"x", None, "the certificate cannot be read"),
        (None, b"x", "the key cannot be read"),
    ],
)
def test_what_is_no_pair_is_told(certificate, key, told):
    good = make_pair(NAMES, NOW)
    with pytest.raises(UnusablePair, match=told):
        read_pair(good.certificate if certificate is None else certificate, good.key if key is None else key)


def test_the_key_of_another_is_told():
    with pytest.raises(UnusablePair, match="of another certificate"):
        read_pair(make_pair(NAMES, NOW).certificate, make_pair(NAMES, NOW).key)


async def test_a_client_that_trusts_it_alone_and_its_successor_can_connect(tmp_path):
    """As an API server with both in its caBundle does."""
    current, following = make_pair(NAMES, time.time()), make_pair(NAMES, time.time())
    for pair in (current, following):
        served = tmp_path / "served.pem"
        served.write_bytes(pair.certificate + pair.key)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(served)
        bundle = (current.certificate + following.certificate).decode()
        await shake_hands(serving, ssl.create_default_context(cadata=bundle))


async def shake_hands(serving: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=serving)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=NAMES[-1])
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


def spoiled_point(certificate: x509.Certificate) -> tuple[bytes, bytes]:
    encoding, form = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    point = certificate.public_key().public_bytes(encoding, form)
    return point, point[:-1] + bytes([point[-1] ^ 1])


@pytest.mark.parametrize(
    "spoiled",
    [
        spoiled_point,
        lambda _: (b"\x06\x07*\x86H\xce=\x02\x01", b"\x06\x07*\x86H\xce=\x02\x77"),
        lambda _: (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x38"),
    ],
    ids=["point", "algorithm", "version"],
)
def test_a_certificate_that_is_spoiled_is_named(spoiled):
    pair = make_pair(NAMES, NOW)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    der = certificate.public_bytes(serialization.Encoding.DER).replace(*spoiled(certificate), 1)
    with pytest.raises(UnusablePair, match="the certificate cannot be read"):
        read_pair(ssl.DER_cert_to_PEM_cert(der).encode(), pair.key)
