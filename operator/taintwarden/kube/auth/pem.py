"""Certificates with their keys into a TLS context, from memory."""

import os
import ssl
import tempfile


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate (with its chain) and its key. If they are unusable, what was loaded before stays.

    Raises:
        ssl.SSLError: they are none, or not of each other.

    """
    # OpenSSL notices that a key is another's only after it has replaced the certificate.
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pem)
    _load(context, pem)


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """OpenSSL reads files only; in a pod those would be on a disk."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)
