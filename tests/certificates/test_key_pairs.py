"""Created certificates can be served and trusted; unusable ones are errors."""

import asyncio
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from taintwarden.serving.key_pairs import (
    AUTHORITY_SECONDS,
    LIFETIME_SECONDS,
    UnusableKeyPair,
    is_contained,
    make_authority,
    make_key_pair,
    read_key_pair,
    trusts,
)

NAMES = ("webhook", "webhook.home", "webhook.home.svc")
NOW = 1_800_000_000.0


def test_a_key_pair_has_its_names_and_its_lifetime():
    pair = make_key_pair(NAMES, NOW)
    assert pair.names == NAMES
    assert pair.begins_at < NOW
    assert pair.ends_at == NOW + LIFETIME_SECONDS


def test_two_key_pairs_differ():
    assert make_key_pair(NAMES, NOW).certificate != make_key_pair(NAMES, NOW).certificate


def test_a_key_pair_that_is_read_equals_the_created_one():
    pair = make_key_pair(NAMES, NOW)
    assert read_key_pair(pair.certificate, pair.key) == pair


def test_a_long_name_still_makes_a_certificate():
    assert make_key_pair(("a" * 63 + ".b.svc",), NOW).names == ("a" * 63 + ".b.svc",)


@pytest.mark.parametrize(
    ("certificate", "key", "reason"),
    [
        (b"", b"x", "the certificate is missing"),
        (b"x", b"", "the key is missing"),
        (b"x", None, "the certificate cannot be read"),
        (None, b"x", "the key cannot be read"),
    ],
)
def test_an_invalid_key_pair_is_an_error_with_the_reason(certificate, key, reason):
    good = make_key_pair(NAMES, NOW)
    with pytest.raises(UnusableKeyPair, match=reason):
        read_key_pair(good.certificate if certificate is None else certificate, good.key if key is None else key)


def test_the_key_of_another_certificate_is_an_error():
    with pytest.raises(UnusableKeyPair, match="of another certificate"):
        read_key_pair(make_key_pair(NAMES, NOW).certificate, make_key_pair(NAMES, NOW).key)


async def test_a_client_that_trusts_a_certificate_and_its_successor_can_connect(tmp_path):
    """An API server may have both in its caBundle."""
    current, following = make_key_pair(NAMES, time.time()), make_key_pair(NAMES, time.time())
    for pair in (current, following):
        served = tmp_path / "served.pem"
        served.write_bytes(pair.certificate + pair.key)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(served)
        bundle = (current.certificate + following.certificate).decode()
        await shake_hands(serving, ssl.create_default_context(cadata=bundle))


async def test_a_client_that_trusts_the_authority_can_connect_to_each_server_it_signs(tmp_path):
    """The check is strict, as in Go."""
    authority = make_authority("webhook.home.svc", time.time())
    for _ in range(2):
        pair = make_key_pair(NAMES, time.time(), authority)
        served = tmp_path / "served.pem"
        served.write_bytes(pair.certificate + pair.key)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(served)
        trusting = ssl.create_default_context(cadata=authority.certificate.decode())
        trusting.verify_flags |= ssl.VERIFY_X509_STRICT
        await shake_hands(serving, trusting)


def test_an_authority_has_its_lifetime_and_its_certificates_end_with_it():
    authority = make_authority("webhook", NOW)
    assert authority.ends_at == NOW + AUTHORITY_SECONDS
    assert read_key_pair(authority.certificate, authority.key, is_authority=True) == authority
    assert make_key_pair(NAMES, authority.ends_at - 60, authority).ends_at == authority.ends_at


def test_an_authority_signs_no_authorities():
    made = x509.load_pem_x509_certificate(make_authority("webhook", NOW).certificate)
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


def test_a_certificate_of_a_server_is_no_authority():
    pair = make_key_pair(NAMES, NOW)
    with pytest.raises(UnusableKeyPair, match="not that of an authority"):
        read_key_pair(pair.certificate, pair.key, is_authority=True)


def test_a_bundle_trusts_its_certificates_and_those_that_they_signed():
    authority, other = make_authority("webhook", NOW), make_authority("webhook", NOW)
    signed, own = make_key_pair(NAMES, NOW, authority), make_key_pair(NAMES, NOW)
    assert trusts(other.certificate + authority.certificate, signed.certificate)
    assert trusts(own.certificate, own.certificate)
    assert not trusts(other.certificate, signed.certificate)
    assert not trusts(other.certificate, own.certificate)
    assert not any(trusts(bundle, signed.certificate) for bundle in (b"", b"nonsense", signed.key))


def test_a_chain_is_trusted_by_the_authority_of_its_last_certificate():
    authority = make_authority("webhook", NOW)
    signed = make_key_pair(NAMES, NOW, authority)
    chain = signed.certificate + authority.certificate
    assert trusts(authority.certificate, chain)


def test_a_certificate_is_found_in_a_bundle_with_comments_and_blank_lines():
    one, other = make_key_pair(NAMES, NOW), make_key_pair(NAMES, NOW)
    spaced = b"a comment\n" + other.certificate + b"\n\n" + one.certificate
    assert is_contained(one.certificate, spaced)
    assert not is_contained(one.certificate, other.certificate)
    assert not is_contained(b"", spaced)


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
def test_a_corrupt_certificate_is_an_error(spoiled):
    pair = make_key_pair(NAMES, NOW)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    der = certificate.public_bytes(serialization.Encoding.DER).replace(*spoiled(certificate), 1)
    with pytest.raises(UnusableKeyPair, match="the certificate cannot be read"):
        read_key_pair(ssl.DER_cert_to_PEM_cert(der).encode(), pair.key)
