"""Pairs of a certificate and its key in PEM: creation of new pairs, and validation of pairs from other programs.

The certificate is a server certificate, or that of an authority (CA) that signs server certificates.
"""

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME_SECONDS = 90 * 86400.0
AUTHORITY_SECONDS = 10 * 365 * 86400.0
"""Seconds for which the certificate of a server, and that of an authority, is valid."""
SLACK_SECONDS = 3600.0
"""Seconds before its creation at which a certificate becomes valid, for API servers whose clocks are behind."""
MAX_COMMON_NAME = 64
"""Maximum characters of a common name (RFC 5280, A.1)."""
_WITHOUT_HASH = (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
"""Types of keys that sign without another hash."""
_UNREADABLE = (
    ValueError,
    TypeError,  # the key is encrypted
    UnsupportedAlgorithm,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


class UnusableKeyPair(ValueError):  # noqa: N818 - clear without the suffix
    """A certificate or its key is unusable; the message says why."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate, with or without its chain, and its key. Times are seconds since 1970. A CA has no ``names``."""

    certificate: bytes
    key: bytes
    begins_at: float
    ends_at: float
    names: tuple[str, ...]

    @property
    def lifetime(self) -> float:
        """Seconds for which the certificate is valid."""
        return self.ends_at - self.begins_at


def make_key_pair(
    names: Sequence[str], now: float, authority: KeyPair | None = None, lifetime_seconds: float = LIFETIME_SECONDS
) -> KeyPair:
    """Create a server certificate for these DNS names, signed by ``authority`` and valid no longer than it.

    Without an authority it is self-signed: a client that trusts it trusts no other certificate.
    """
    ends_at = now + lifetime_seconds if authority is None else min(now + lifetime_seconds, authority.ends_at)
    builder = (
        _builder(now, ends_at, is_authority=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    return read_key_pair(*_signed(builder, names[0], authority))


def make_authority(name: str, now: float, lifetime_seconds: float = AUTHORITY_SECONDS) -> KeyPair:
    """Create the authority ``<name>-ca``. It can sign server certificates, but no other authorities."""
    builder = _builder(now, now + lifetime_seconds, is_authority=True)
    return read_key_pair(*_signed(builder, f"{name[: MAX_COMMON_NAME - 3]}-ca", None), is_authority=True)


def read_key_pair(certificate: bytes, key: bytes, *, is_authority: bool = False) -> KeyPair:
    """Read the pair of a server or of an authority, which may have expired.

    Raises:
        UnusableKeyPair: the certificate or the key is invalid or of another kind, or they do not match.

    """
    if not certificate or not key:
        msg = "the certificate is missing" if not certificate else "the key is missing"
        raise UnusableKeyPair(msg)
    try:
        leaf = x509.load_pem_x509_certificates(certificate)[0]
        certified, extensions = leaf.public_key(), leaf.extensions
        begins_at, ends_at = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
        if is_authority:
            names, is_usable = [], extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        else:
            alternative = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names, is_usable = alternative.get_values_for_type(x509.DNSName), True
    except _UNREADABLE:
        is_usable = False
    if not is_usable:
        other = "is not that of an authority" if is_authority else "names no server"
        msg = f"the certificate cannot be read, or {other}"
        raise UnusableKeyPair(msg)
    try:
        public = serialization.load_pem_private_key(key, password=None).public_key()
    except _UNREADABLE as error:
        msg = "the key cannot be read"
        raise UnusableKeyPair(msg) from error
    if public != certified:
        msg = "the key is that of another certificate"
        raise UnusableKeyPair(msg)
    return KeyPair(certificate, key, begins_at, ends_at, tuple(names))


def trusts(bundle: bytes, certificate: bytes) -> bool:
    """Return True if a client with only ``bundle`` trusts a server with this valid ``certificate`` and its chain."""
    roots = _certificates(bundle)
    chain = _certificates(certificate)
    return any(one == root or _is_issued_by(one, root) for one in chain for root in roots)


def is_contained(certificate: bytes, bundle: bytes) -> bool:
    """Return True if ``bundle`` contains the first certificate of ``certificate``. Their PEM texts may differ."""
    return any(one in _certificates(bundle) for one in _certificates(certificate)[:1])


def _certificates(text: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text) if text else []
    except _UNREADABLE:
        return []


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def _builder(now: float, ends_at: float, *, is_authority: bool) -> x509.CertificateBuilder:
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(now - SLACK_SECONDS))
        .not_valid_after(_moment(ends_at))
        .add_extension(constraints, critical=True)
        .add_extension(_usage(is_authority=is_authority), critical=True)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    """Return the key usage (RFC 5280, 4.2.1.3): a server signs data, an authority signs certificates."""
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder, common_name: str, authority: KeyPair | None) -> tuple[bytes, bytes]:
    """Return certificate and key in PEM, signed by the authority, or self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number makes subjects unique, since OpenSSL looks up issuers by name.
    issuer = subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common_name[:MAX_COMMON_NAME]),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"{x509.random_serial_number():x}"[:MAX_COMMON_NAME]),
        ]
    )
    signing: Any = key
    if authority is not None:
        signing = serialization.load_pem_private_key(authority.key, password=None)
        issuer = x509.load_pem_x509_certificate(authority.certificate).subject
    certificate = (
        builder.subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .sign(signing, None if isinstance(signing, _WITHOUT_HASH) else hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return certificate.public_bytes(encoding), key.private_bytes(encoding, form, serialization.NoEncryption())


def _moment(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).replace(microsecond=0)
