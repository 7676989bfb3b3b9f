"""Creation of many pods in etcd, as copies of few pods that the API server stored.

The API server would need seven CPU minutes to create 50,000 pods with their status. One pod of each workload is
created that way. Its stored bytes are copied with another name, UID and node of the same length, so that the lengths
inside the encoding stay correct.
"""

import asyncio
import base64
from collections.abc import Iterator
from uuid import UUID

import aiohttp

from bench import population
from bench.bulk import for_each
from bench.population import Json, Shape

CONCURRENCY = 16


class Etcd:
    """A client of etcd's JSON gateway."""

    def __init__(self, session: aiohttp.ClientSession, url: str):
        self._session = session
        self._url = url

    async def get(self, key: str) -> bytes:
        return base64.b64decode((await self._call("range", {"key": _text(key)}))["kvs"][0]["value"])

    async def put(self, key: str, value: bytes) -> None:
        await self._call("put", {"key": _text(key), "value": base64.b64encode(value).decode()})

    async def _call(self, verb: str, body: Json) -> Json:
        async with self._session.post(f"{self._url}/v3/kv/{verb}", json=body) as response:
            response.raise_for_status()
            return await response.json()


async def multiply(url: str, originals: list[Json], shape: Shape) -> None:
    """Write all pods, given the first pod of each workload as created."""
    async with aiohttp.ClientSession() as session:
        etcd = Etcd(session, url)
        values = await asyncio.gather(*(etcd.get(key(original)) for original in originals))

        async def write(index: int) -> None:
            workload = population.workload_of(index)
            original = originals[workload]
            await etcd.put(*copy(original, values[workload], index, population.node_name(index % shape.nodes)))

        await for_each(range(shape.pods), write, CONCURRENCY)
        taken = {key(original) for original in originals}
        assert not taken - set(keys(shape)), "an original is not among the shape's pods, so it was not overwritten"


def keys(shape: Shape) -> Iterator[str]:
    for index in range(shape.pods):
        workload = population.workload_of(index)
        namespace = population.namespace_name(workload % population.NAMESPACES)
        yield f"/registry/pods/{namespace}/{population.pod_name(workload, index)}"


def key(pod: Json) -> str:
    return f"/registry/pods/{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def copy(original: Json, value: bytes, index: int, node: str) -> tuple[str, bytes]:
    """Return key and value of the pod with this index."""
    old = original["metadata"]
    workload = population.workload_of(index)
    name = population.pod_name(workload, index)
    uid = str(UUID(int=UUID(old["uid"]).int ^ index))
    for before, after in ((old["name"], name), (old["uid"], uid), (original["spec"]["nodeName"], node)):
        assert len(before) == len(after), f"{before} and {after} differ in length"
        value = value.replace(before.encode(), after.encode())
    return key(original).replace(old["name"], name), value


def _text(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
