"""TLS as every port of ours speaks it."""

import ssl


def server_context() -> ssl.SSLContext:
    """A context without a certificate yet: TLS 1.2 and 1.3.

    In 1.3 a client may demand new keys without an end: :mod:`~taintwarden.serving.tls_stream` cuts it. In 1.2 it
    cannot begin another handshake.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    return made
