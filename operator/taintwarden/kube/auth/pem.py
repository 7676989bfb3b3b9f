"""Loading of certificates with their keys from memory into a TLS context."""

import os
import ssl
import tempfile


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate (with its chain) and its key. After an error the context keeps what it had.

    Raises:
        ssl.SSLError: they are invalid, or the key is not that of the certificate.

    """
    # OpenSSL replaces the certificate before it compares the key, so both are first loaded into another context.
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pem)
    _load(context, pem)


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load from a file in memory if the system has them: ``ssl`` reads only files, and keys do not belong on a disk."""
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
