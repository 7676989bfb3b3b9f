"""A client that sends thousands of requests as fast as the server answers, with little CPU of its own."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import yaml

T = TypeVar("T")
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
PAGE_SIZE = 500


class RefusedError(Exception):
    """The server refused a request that has to succeed."""


class Bulk:
    """An asynchronous client of the server that a kubeconfig names."""

    def __init__(self, kubeconfig: Path, connections: int = 64):
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._ssl = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            self._ssl.load_cert_chain(user["client-certificate"], user["client-key"])
        self._connections = connections

    @classmethod
    @asynccontextmanager
    async def open(cls, kubeconfig: Path, connections: int = 64) -> AsyncIterator[Self]:
        bulk = cls(kubeconfig, connections)
        connector = aiohttp.TCPConnector(limit=connections, ssl=bulk._ssl)
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(connector=connector, headers=bulk._headers, timeout=timeout) as session:
            bulk._session = session
            yield bulk

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> int:
        """Send one request and return its status."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type}
        async with self._session.request(method, self._server + path, data=data, headers=headers) as response:
            await response.read()
            return response.status

    async def must(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> None:
        """Send one request that has to succeed. Raises RefusedError."""
        status = await self.send(method, path, body, content_type)
        if status >= 300:
            raise RefusedError(f"{method} {path}: {status}")

    async def get(self, path: str) -> Any:
        """Return the decoded answer. Raises RefusedError."""
        return json.loads(await self.read(path, "application/json"))

    async def read(self, path: str, accept: str) -> bytes:
        """Return the answer in the encoding of an Accept header. Raises RefusedError."""
        async with self._session.get(self._server + path, headers={"Accept": accept}) as response:
            if response.status >= 300:
                raise RefusedError(f"GET {path}: {response.status}")
            return await response.read()

    async def items(self, path: str) -> AsyncIterator[Any]:
        """Yield every object of a collection, page by page. Raises RefusedError."""
        token = ""
        while True:
            page = await self.get(f"{path}?limit={PAGE_SIZE}&continue={token}")
            for item in page["items"]:
                yield item
            token = page["metadata"].get("continue", "")
            if not token:
                return


async def for_each(items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, None]], concurrency: int) -> None:
    """Do the work on every item, in order, with this concurrency. The first failure ends all work."""
    source = iter(items)

    async def worker() -> None:
        for item in source:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
