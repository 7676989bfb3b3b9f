"""A client for the cases: it sends requests unchanged and returns the complete answer."""

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

DEADLINE_SECONDS = 60.0
CRD_GROUP = "contract.taintwarden.io"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return self.body.get("reason", "")

    @property
    def message(self) -> str:
        return self.body.get("message", "")

    @property
    def causes(self) -> list[Json]:
        return self.body.get("details", {}).get("causes", [])

    def __str__(self) -> str:
        return f"{self.status} {json.dumps(self.body)[:2000]}"


class Watch:
    """An open watch, line by line."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._content = response.content

    async def next(self, timeout_seconds: float = DEADLINE_SECONDS) -> Json | None:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(timeout_seconds):
            line = await self._content.readline()
        return json.loads(line) if line.strip() else None

    async def expect(self, kind: str, name: str) -> Json:
        """The object of the next event, which must be of this type and object."""
        event = await self.next()
        assert event is not None, f"the watch ended before {kind} {name}"
        assert (event["type"], event["object"]["metadata"].get("name")) == (kind, name), event
        return event["object"]


@dataclass
class Api:
    """An API server. `compact` drops its history; None if the server does not offer that."""

    session: aiohttp.ClientSession
    url: str
    tls: ssl.SSLContext | bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    compact: Callable[[], Awaitable[None]] | None = None
    comparison_operators: bool = False
    namespace: str = ""

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: Any,
    ) -> Answer:
        headers = {"Accept": accept, "User-Agent": "contract/1", **self.headers}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        given = {name.rstrip("_"): str(value) for name, value in query.items()}
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, params=given, ssl=self.tls
        ) as response:
            text = await response.text()
            try:
                decoded = json.loads(text)
            except ValueError:
                decoded = {"text": text}
            return Answer(response.status, decoded, response.headers)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[Watch]:
        given = {"watch": "1", **{name: str(value) for name, value in query.items()}}
        headers = {"Accept": "application/json", **self.headers}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            self.url + path, params=given, headers=headers, ssl=self.tls, timeout=timeout
        ) as response:
            yield Watch(response)

    # Shorthands

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        answer = await self.request(method, path, body, **options)
        assert answer.status in {200, 201}, f"{method} {path}: {answer}"
        return answer.body

    async def get(self, path: str, **query: Any) -> Any:
        return await self.ok("GET", path, **query)

    async def create(self, path: str, body: Json, **query: Any) -> Any:
        return await self.ok("POST", path, body, **query)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def budgets(self) -> str:
        return f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"

    @property
    def leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    async def new_namespace(self) -> None:
        self.namespace = unique("contract")
        await self.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = {"metadata": {"name": "default"}}
        await self.request("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", account)

    async def new_node(self, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
        node: Json = {"metadata": {"name": unique("node"), "labels": dict(labels or {})}, "spec": spec}
        return await self.create("/api/v1/nodes", node)

    async def new_pod(
        self, name: str = "", *, node: str = "", labels: Mapping[str, str] | None = None, **spec: Any
    ) -> Json:
        body = pod(name or unique("pod"), labels=labels, **({"nodeName": node} if node else {}), **spec)
        return await self.create(self.pods, body)

    async def run(self, name: str, *, ready: bool = True) -> Json:
        """Report a pod as running, as a kubelet would."""
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"status": {"phase": "Running", "conditions": [condition]}}
        return await self.ok("PATCH", f"{self.pods}/{name}/status", status, content_type=MERGE)

    async def eventually(
        self, check: Callable[[], Awaitable[bool]], what: str, timeout_seconds: float = DEADLINE_SECONDS
    ) -> None:
        """Poll until it holds."""
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while not await check():
            assert asyncio.get_running_loop().time() < deadline, f"never: {what}"
            await asyncio.sleep(0.02)


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def pod(name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]
    return {"metadata": metadata, "spec": {"containers": containers, "automountServiceAccountToken": False, **spec}}


def condition_of(value: Json, kind: str) -> Json:
    found = [one for one in value.get("status", {}).get("conditions", ()) if one["type"] == kind]
    assert found, f"no condition {kind} in {value.get('status')}"
    return found[0]
