"""Compaction of a real API server's history, as its own compactor would do every five minutes."""

import base64
from typing import Any

import aiohttp


async def compact(session: aiohttp.ClientSession, url: str) -> None:
    """Compact etcd at its newest revision, and tell the API server through the key that it watches.

    Its watch caches notice within 15 seconds.
    """

    async def call(path: str, body: dict[str, Any]) -> Any:
        async with session.post(f"{url}/v3/{path}", json=body) as response:
            return await response.json()

    revision = (await call("maintenance/status", {}))["header"]["revision"]
    key, value = (base64.b64encode(text.encode()).decode() for text in ("compact_rev_key", revision))
    await call("kv/put", {"key": key, "value": value})
    await call("kv/compaction", {"revision": revision, "physical": True})
