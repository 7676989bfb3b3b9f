"""TLS as every port of ours speaks it."""

import ssl


def server_context() -> ssl.SSLContext:
    """A context without a certificate yet.

    Not TLS 1.3: there a client may demand new keys as often as it likes, before it has asked for anything. Two
    hundred kilobytes of such demands cost tenths of a second of the event loop, and OpenSSL has no limit for them.
    In TLS 1.2 a client cannot begin another handshake.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    return made
