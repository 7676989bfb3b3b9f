"""A real client on a real connection, to whatever listens at an address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubernetes.client import Configuration

from taintwarden.kube.client import Client
from taintwarden.kube.connection import Connection


def connection(url: object, token: str | None = None) -> Connection:
    configuration = Configuration()
    configuration.host = str(url).rstrip("/")
    if token:
        configuration.api_key = {"authorization": token}
        configuration.api_key_prefix = {"authorization": "Bearer"}
    return Connection(configuration)


@asynccontextmanager
async def client(url: object, token: str | None = None) -> AsyncIterator[Client]:
    async with Client(connection(url, token)) as made:
        yield made
