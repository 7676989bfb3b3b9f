"""A real client on a real connection, to whatever listens at an address."""

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from taintwarden.certificates.pairs import make_pair
from taintwarden.kube.client import Client
from taintwarden.kube.connection import Connection
from taintwarden.kube.kubeconfig import Material, Source


def connection(url: object, token: str | None = None) -> Connection:
    return Connection(Source(str(url).rstrip("/"), token=token or ""))


def proxied(url: object, token: str | None = None) -> Connection:
    """To a server that is reached only through the proxy at this address, which answers for it."""
    return Connection(Source("http://192.0.2.1:6443", token=token or "", proxy=str(url)))


class Tls:
    """The certificate of a server named localhost."""

    def __init__(self, folder: Path) -> None:
        pair = make_pair(["localhost"], time.time())
        (folder / "both").write_bytes(pair.certificate + pair.key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "both")
        self._authority = Material(content=pair.certificate)

    def connection(self, port: int, name: str | None = "localhost") -> Connection:
        return Connection(Source(f"https://127.0.0.1:{port}", authority=self._authority, tls_server_name=name))


@asynccontextmanager
async def client(url: object, token: str | None = None) -> AsyncIterator[Client]:
    async with Client(connection(url, token)) as made:
        yield made
