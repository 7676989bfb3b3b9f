"""List and watch, forever: a stream of changes which survives every way a watch can end.

Not kopf's, because a relist after 410 must report what vanished in the gap, and because objects which are never built
cost nothing: see the measurements in ``docs/architecture.md``.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from taintwarden.kube.client import Client
from taintwarden.kube.errors import NOT_JSON, ApiError, KubeError, Status, Unreachable, decoded
from taintwarden.kube.objects import (
    AnyMeta,
    AnyObject,
    BudgetObject,
    Followed,
    ListMeta,
    NamespaceObject,
    NodeObject,
    Object,
    Page,
    PodObject,
    RawPage,
    WatchFrame,
    WorkloadObject,
)

PAGE_SIZE = 500
WATCH_SECONDS = (290, 350)
"""The server ends a watch after a random time in this range, so that watches spread over its replicas."""
IDLE_SECONDS = 90.0
"""Bookmarks come about every minute; a connection silent for longer is dead."""
BACKOFF_SECONDS = (0.25, 5.0)
"""First and longest pause. Not longer, since nobody is evicted while we are blind."""
CAUGHT_UP_SECONDS = 1.0
"""A resumed watch that brings nothing for so long has nothing to bring."""
SHORT_WATCH_SECONDS = 1.0
"""A watch that ends sooner without a frame counts as a failure, or a broken server would be hammered."""
FORGIVEN_SECONDS = 5.0
"""A watch that has worked for so long clears the record of failures before it."""


class Resource(msgspec.Struct, Generic[Object], frozen=True):
    """What to follow: a collection's path, a server-side field selector, and the type of its objects."""

    name: str
    path: str
    type: type[Object]
    field_selector: str = ""


# Finished pods and pods without a node are none of our business: the server keeps them to itself.
PODS = Resource("pods", "/api/v1/pods", PodObject, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
NODES = Resource("nodes", "/api/v1/nodes", NodeObject)
NAMESPACES = Resource("namespaces", "/api/v1/namespaces", NamespaceObject)
REPLICA_SETS = Resource("replicasets", "/apis/apps/v1/replicasets", WorkloadObject)
STATEFUL_SETS = Resource("statefulsets", "/apis/apps/v1/statefulsets", WorkloadObject)
DAEMON_SETS = Resource("daemonsets", "/apis/apps/v1/daemonsets", WorkloadObject)
REPLICATION_CONTROLLERS = Resource("replicationcontrollers", "/api/v1/replicationcontrollers", WorkloadObject)
JOBS = Resource("jobs", "/apis/batch/v1/jobs", WorkloadObject)
BUDGETS = Resource("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", BudgetObject)


Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


class Sink(Protocol[Received_contra]):
    """Who receives a stream. Calls come in order and never overlap; none may raise."""

    def changed(self, changes: Sequence[tuple[str, Received_contra]]) -> None:
        """Watch frames: ``ADDED``, ``MODIFIED`` or ``DELETED``, each with the object."""

    def listed(self, objects: Sequence[Received_contra]) -> None:
        """One page of a list."""

    def list_ended(self, resource_version: str) -> None:
        """The list is complete: what it did not name does not exist (any more)."""

    def list_began(self) -> None:
        """A list begins, from its first page; a list that had begun before does not count."""

    def reached(self, resource_version: str) -> None:
        """All changes up to here have been delivered."""

    def live(self, *, live: bool) -> None:
        """Whether what we know is up to date, or the stream is cut off from the server."""

    def undecodable(self, what: AnyMeta, reason: str, *, deleted: bool) -> None:
        """An object of a list or a watch is not what it should be; the stream goes on without it."""

    def restarted(self, reason: str, detail: str) -> None:
        """The watch ended and is taken up again, or the list is begun again."""


class Stream(Generic[Object]):
    """Follows one resource. ``run`` never returns.

    Args:
        client: the session to use.
        resource: what to follow.
        sink: who receives it.
        sleep: waits for some seconds; replaced in tests.
        jitter: a number in [0, 1); replaced in tests.

    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        sink: Sink[Object],
        *,
        sleep: Callable[[float], Any] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._sleep = sleep
        self._jitter = jitter
        self._version = ""
        self._failures = 0
        self._listed_at = float("-inf")
        kind: Any = resource.type
        self._pages: msgspec.json.Decoder[Page[Object]] = msgspec.json.Decoder(Page[kind])
        self._frames: msgspec.json.Decoder[WatchFrame[Object]] = msgspec.json.Decoder(WatchFrame[kind])
        self._objects: msgspec.json.Decoder[Object] = msgspec.json.Decoder(kind)

    async def run(self) -> None:
        """List, then watch; resume where a watch ended, list again where that is not possible."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ExpiredError as error:
                self._version = ""
                if asyncio.get_running_loop().time() - self._listed_at > FORGIVEN_SECONDS:
                    # Everyday life, and the answer of a healthy server: list again at once.
                    self._sink.live(live=False)
                    self._sink.restarted("expired", str(error))
                else:
                    await self._back_off("expired", str(error))
            except ApiError as error:
                await self._back_off("refused", str(error), error.retry_after)
            except Unreachable as error:
                await self._back_off("unreachable", str(error))

    async def _back_off(self, reason: str, detail: str, at_least: float | None = None) -> None:
        self._sink.live(live=False)
        self._sink.restarted(reason, detail)
        first, longest = BACKOFF_SECONDS
        delay = min(longest, first * 2.0 ** min(self._failures, 10)) * (0.5 + self._jitter())
        self._failures += 1
        await self._sleep(max(delay, at_least or 0.0))

    # -- list ---------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        params = {"limit": str(PAGE_SIZE)}
        if self._resource.field_selector:
            params["fieldSelector"] = self._resource.field_selector
        self._listed_at = asyncio.get_running_loop().time()
        self._sink.list_began()
        coming = asyncio.create_task(self._request_page(params))
        try:
            while True:
                body = await coming
                head = _decode_head(body)
                if head.continue_:
                    # The server makes the next page while we work on this one.
                    coming = asyncio.create_task(self._request_page(params | {"continue": head.continue_}))
                    await asyncio.sleep(0)
                self._sink.listed(self._decode_items(body))
                if not head.continue_:
                    break
        finally:
            coming.cancel()
        self._version = head.resource_version
        self._sink.list_ended(self._version)
        self._sink.live(live=True)

    async def _request_page(self, params: Mapping[str, str]) -> bytes:
        try:
            return await self._client.request("GET", self._resource.path, params=params)
        except ApiError as error:
            raise _expired_or(error) from error  # the continue token may grow too old: begin again

    def _decode_items(self, body: bytes) -> list[Object]:
        try:
            return self._pages.decode(body).items
        except NOT_JSON:
            pass
        raw = decoded(body, RawPage, "list")
        return [item for item in map(self._decode_object, raw.items or ()) if item is not None]

    def _decode_object(self, raw: msgspec.Raw) -> Object | None:
        try:
            return self._objects.decode(raw)
        except NOT_JSON as error:
            self._report_undecodable(raw, str(error))
            return None

    def _report_undecodable(self, raw: bytes | msgspec.Raw, reason: str, *, deleted: bool = False) -> str:
        """Tell of it once, and return its version, so that a resumed watch does not stumble over it again."""
        try:
            meta = msgspec.json.decode(raw, type=AnyObject).metadata
        except NOT_JSON:
            meta = AnyMeta()
        self._sink.undecodable(meta, reason, deleted=deleted)
        return meta.resource_version

    # -- watch --------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        low, high = WATCH_SECONDS
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(low + (high - low) * self._jitter())),
        }
        if self._resource.field_selector:
            params["fieldSelector"] = self._resource.field_selector
        loop = asyncio.get_running_loop()
        began, frames = loop.time(), 0
        buffer = b""
        async with self._open(params) as chunks:
            caught_up = loop.call_later(CAUGHT_UP_SECONDS, lambda: self._sink.live(live=True))
            try:
                async for chunk in chunks:
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    if lines:
                        frames += len(lines)
                        self._deliver(lines)
                        self._sink.live(live=True)
                        if loop.time() - began > FORGIVEN_SECONDS:
                            self._failures = 0
            finally:
                caught_up.cancel()
        # What is left in the buffer is half a line: the connection was cut, and the resumed watch sends it again.
        if not frames and loop.time() - began < SHORT_WATCH_SECONDS:
            await self._back_off("empty", "the watch ended at once")
        else:
            self._sink.restarted("ended", "the watch ended")

    @asynccontextmanager
    async def _open(self, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            async with self._client.stream(self._resource.path, params, IDLE_SECONDS) as chunks:
                yield chunks
        except ApiError as error:
            raise _expired_or(error) from error

    def _deliver(self, lines: Sequence[bytes]) -> None:
        changes: list[tuple[str, Object]] = []
        version = self._version
        expired: ExpiredError | None = None
        for line in lines:
            if not line.strip():
                continue
            try:
                frame = self._frames.decode(line)
            except NOT_JSON as error:
                raw = decoded(line, _RawFrame, "frame of a watch")
                if raw.type == "ERROR":  # its object is a Status, in which ``status`` is no struct but "Failure"
                    expired = _error_of(line)
                    break
                if changes:  # what came before it is told before it: it may be the same object
                    self._sink.changed(changes)
                    changes = []
                deleted = raw.type == "DELETED"
                version = self._report_undecodable(raw.object, str(error), deleted=deleted) or version
                continue
            if frame.type == "ERROR":
                expired = _error_of(line)
                break
            version = frame.object.metadata.resource_version or version
            if frame.type != "BOOKMARK":
                changes.append((frame.type, frame.object))
        if changes:
            self._sink.changed(changes)
        self._version = version
        self._sink.reached(version)
        if expired is not None:
            raise expired


class ExpiredError(KubeError):
    """Where the stream was cannot be resumed: it must list again."""


class _Head(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


def _decode_head(body: bytes) -> ListMeta:
    """What a list says of itself, with a hundredth of the work of decoding its items."""
    head = decoded(body, _Head, "list").metadata
    if not head.resource_version:  # somebody else answered; taken for an empty list it would empty our memory
        msg = "the answer is no list: it has no resourceVersion"
        raise Unreachable(msg)
    return head


def _expired_or(error: ApiError) -> KubeError:
    return ExpiredError(str(error)) if error.code == 410 else error


class _RawFrame(msgspec.Struct):
    object: msgspec.Raw
    type: str = ""


class _ErrorFrame(msgspec.Struct):
    object: Status = msgspec.field(default_factory=Status)


def _error_of(line: bytes) -> ExpiredError:
    """An ERROR frame is mostly 410; whatever it is, the watch is of no more use."""
    status = msgspec.json.decode(line, type=_ErrorFrame).object
    return ExpiredError(f"{status.code} {status.reason}: {status.message[:200]}")
