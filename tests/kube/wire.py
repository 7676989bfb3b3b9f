"""A real client on a real connection, to whatever listens at an address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from taintwarden.kube.client import Client
from taintwarden.kube.connection import Connection
from taintwarden.kube.kubeconfig import Source


def connection(url: object, token: str | None = None) -> Connection:
    return Connection(Source(str(url).rstrip("/"), token=token or ""))


@asynccontextmanager
async def client(url: object, token: str | None = None) -> AsyncIterator[Client]:
    async with Client(connection(url, token)) as made:
        yield made
