"""One certificate with its key, in PEM: creating it, and reading one that another program may have created."""

import datetime
from collections.abc import Sequence

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME_SECONDS = 90 * 86400.0
SLACK_SECONDS = 3600.0
"""Valid since so long ago, for API servers whose clocks are behind."""
MAX_COMMON_NAME = 64
_UNREADABLE = (
    ValueError,
    TypeError,  # a key wants a password
    UnsupportedAlgorithm,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)

# RFC 5280, 4.2.1.3: an elliptic key signs, and does nothing else.
_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class UnusablePair(ValueError):  # noqa: N818 - reads as what it says
    """These bytes are no certificate with its key; the message says what is wrong with them."""


class Pair(msgspec.Struct, frozen=True):
    """A certificate (with its chain, if it has one) and its key. Times are seconds since the Unix epoch."""

    certificate: bytes
    key: bytes
    begins_at: float
    ends_at: float
    names: tuple[str, ...]

    @property
    def lifetime(self) -> float:
        """Seconds from its first moment to its last."""
        return self.ends_at - self.begins_at


def make_pair(names: Sequence[str], now: float, lifetime_seconds: float = LIFETIME_SECONDS) -> Pair:
    """A self-signed certificate for a server with these names. A client that trusts it trusts no other certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    # A subject of its own for each: OpenSSL looks for issuers by name.
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, names[0][:MAX_COMMON_NAME]),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"{x509.random_serial_number():x}"[:MAX_COMMON_NAME]),
        ]
    )
    begins, ends = (_moment(at) for at in (now - SLACK_SECONDS, now + lifetime_seconds))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(encoding, form, serialization.NoEncryption())
    return read_pair(certificate.public_bytes(encoding), private)


def read_pair(certificate: bytes, key: bytes) -> Pair:
    """What these bytes are, whatever their validity.

    Raises:
        UnusablePair: they are no certificate and key, or not of each other.

    """
    if not certificate or not key:
        msg = "the certificate is missing" if not certificate else "the key is missing"
        raise UnusablePair(msg)
    try:
        leaf = x509.load_pem_x509_certificates(certificate)[0]
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        begins_at, ends_at = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
        certified = leaf.public_key()
    except _UNREADABLE as error:
        msg = "the certificate cannot be read, or names no server"
        raise UnusablePair(msg) from error
    try:
        public = serialization.load_pem_private_key(key, password=None).public_key()
    except _UNREADABLE as error:
        msg = "the key cannot be read"
        raise UnusablePair(msg) from error
    if public != certified:
        msg = "the key is that of another certificate"
        raise UnusablePair(msg)
    return Pair(certificate, key, begins_at, ends_at, tuple(names.get_values_for_type(x509.DNSName)))


def _moment(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).replace(microsecond=0)
