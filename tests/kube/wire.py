"""Real clients on real connections, also by a proxy or by TLS."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import ClusterSource, PemSource
from taintwarden.kube.http.client import Client
from taintwarden.serving.key_pairs import make_key_pair


def connection(url: object, token: str | None = None) -> Connection:
    return Connection(ClusterSource(str(url).rstrip("/"), token=token or ""))


def proxied(url: object, token: str | None = None) -> Connection:
    """A connection to a server that only the proxy at `url` reaches, which answers for it."""
    return Connection(ClusterSource("http://192.0.2.1:6443", token=token or "", proxy=str(url)))


class Tls:
    """The TLS context of a server named localhost, and connections that trust it."""

    def __init__(self, folder: Path) -> None:
        pair = make_key_pair(["localhost"], time.time())
        (folder / "both").write_bytes(pair.certificate + pair.key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "both")
        self._authority = PemSource(content=pair.certificate)

    def connection(self, port: int, name: str | None = "localhost", proxy: str | None = None) -> Connection:
        server = f"https://127.0.0.1:{port}"
        return Connection(ClusterSource(server, authority=self._authority, tls_server_name=name, proxy=proxy))


@asynccontextmanager
async def tunnel() -> AsyncIterator[str]:
    """Serve a proxy that passes on bytes between a client and the server that it names; yield its address."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while part := await reader.read(65536):
                writer.write(part)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)
        assert method == b"CONNECT"
        host, port = target.decode().rsplit(":", 1)
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy(reader, back), copy(there, writer))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def client(url: object, token: str | None = None) -> AsyncIterator[Client]:
    async with Client(connection(url, token)) as made:
        yield made
