"""A client that demands new keys of TLS 1.3 (RFC 8446, 4.6.3): no library does that more often than it has to."""

import hashlib
import hmac
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

APPLICATION, HANDSHAKE = 23, 22
KEY_UPDATE = bytes([24, 0, 0, 1, 1])
"""KeyUpdate that also demands new keys of the server."""
CIPHER = "TLS_AES_256_GCM_SHA384"


def expanded(secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, 7.1, without context; up to 48 bytes."""
    full = b"tls13 " + label
    info = struct.pack("!HB", length, len(full)) + full + b"\0"
    return hmac.new(secret, info + b"\1", hashlib.sha384).digest()[:length]


class Rekeying:
    """The records of one connection, after the handshake that the library makes.

    Args:
        keylog: where to write the secrets of the connection.

    """

    def __init__(self, keylog: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(keylog)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self._keylog = keylog
        self._secret = b""

    def shake(self, answer: bytes) -> tuple[bytes, bool]:
        """Continue the handshake: the bytes to send after this answer, and True if it is done."""
        self.incoming.write(answer)
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read(), False
        assert self.tls.cipher()[0] == CIPHER
        lines = [line.split() for line in self._keylog.read_text().splitlines()]
        self._use(bytes.fromhex([words[2] for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0"][-1]))
        return self.outgoing.read(), True

    def record(self, kind: int, data: bytes) -> bytes:
        """An encrypted record with this data."""
        inner = data + bytes([kind])
        header = struct.pack("!BHH", APPLICATION, 0x0303, len(inner) + 16)
        number = self._number.to_bytes(12, "big")
        self._number += 1
        nonce = bytes(a ^ b for a, b in zip(self._iv, number, strict=True))
        return header + self._key.encrypt(nonce, inner, header)

    def updates(self, number: int) -> Iterator[bytes]:
        """Yield `number` demands for new keys, each a record of 27 bytes."""
        for _ in range(number):
            yield self.record(HANDSHAKE, KEY_UPDATE)
            self._use(expanded(self._secret, b"traffic upd", 48))

    def _use(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._key, self._iv = AESGCM(expanded(secret, b"key", 32)), expanded(secret, b"iv", 12)
