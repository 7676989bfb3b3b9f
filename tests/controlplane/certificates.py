"""A certificate authority of one test run: it signs the API server, the administrator and the controllers."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=2)
CLOCK_SLACK = datetime.timedelta(hours=2)
"""A client whose clock is an hour behind can still connect."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files, which is how all programs of Kubernetes take them."""

    certificate: Path
    key: Path


def subject(common_name: str, organization: str = "") -> x509.Name:
    """For Kubernetes the common name is the user and each organization a group."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def write_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, path: Path) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def service_account_keys(folder: Path) -> Pair:
    """The pair that signs and checks service account tokens (the public half is a plain key, not a certificate)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pair = Pair(folder / "service-account.pub", folder / "service-account.key")
    write_key(key, pair.key)
    pair.certificate.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return pair


class Authority:
    """Signs certificates into files of one folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = subject("taintwarden-e2e-ca")
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        write_key(self._key, self.pair.key)
        self.pair.certificate.write_bytes(self._signed(builder))

    def server(self, name: str, dns_names: tuple[str, ...], addresses: tuple[str, ...]) -> Pair:
        """A certificate for a server under these names."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(dns_name) for dns_name in dns_names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        return self._leaf(name, subject(name), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, group: str = "") -> Pair:
        """A certificate that makes its bearer this user in this group."""
        return self._leaf(user.replace(":", "-"), subject(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _leaf(
        self, file_name: str, name: x509.Name, usage: x509.ObjectIdentifier, alternatives: list[x509.GeneralName]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        pair = Pair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        write_key(key, pair.key)
        pair.certificate.write_bytes(self._signed(builder))
        return pair

    def _builder(self, name: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        # Python 3.13 checks certificates strictly: without both key identifiers it refuses the server.
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SLACK)
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(authority, critical=False)
            .add_extension(self._key_usage(is_authority=name == self._name), critical=True)
        )

    def _key_usage(self, *, is_authority: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
