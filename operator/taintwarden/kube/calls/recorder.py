"""Events (events.k8s.io/v1), deduplicated, and limited so that they never delay evictions.

An Event's name is derived from its content. If any process writes the same Event again, its count increases.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
import structlog

from taintwarden.api.types import POLICY_KIND
from taintwarden.engine.model import Int64
from taintwarden.engine.rfc3339 import exactly
from taintwarden.fields.text import shortened
from taintwarden.kube.calls.event_queue import MAX_QUEUED, EventQueue
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.http.client import JSON, MERGE_PATCH, Client
from taintwarden.kube.wire.answers import decoded

MAX_REMEMBERED = 20_000
MAX_NOTE_BYTES = 1_024
REPEAT_SECONDS = 300.0
"""Minimum seconds between two writes of the same Event."""
TIMEOUT_SECONDS = 5.0
"""Maximum seconds for a request. All other Events wait for it."""
SLOW_SECONDS, SILENT_SECONDS = 2.0, 30.0
"""Seconds of a write after which the Events of its namespace are dropped, and for how long. A webhook may be slow."""
LOG_SECONDS = 60.0
"""Minimum seconds between two log lines about Events that were not written."""
BUSY_FACTOR = 10
"""Factor by which Events are written more slowly during many evictions."""
NORMAL, WARNING = "Normal", "Warning"


MAX_COUNT = 2**31 - 2
"""Maximum count that is increased. The API server stores an int32."""

log = structlog.get_logger()


class _Series(msgspec.Struct):
    count: Int64 = 1


class _Event(msgspec.Struct):
    series: _Series | None = None


class EventSubject(msgspec.Struct, frozen=True):
    """The object that an Event is about."""

    kind: str
    name: str
    uid: str
    namespace: str = ""
    api_version: str = "v1"

    def reference(self) -> dict[str, str]:
        """Return the value of ``regarding``."""
        reference = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return reference | {"namespace": self.namespace} if self.namespace else reference


class Message(msgspec.Struct, frozen=True):
    """An Event to write. ``action`` is what was done, ``note`` the text for people.

    A note that is a function is called when the Event is written, since most Events of a wave are dropped before that.
    While such a message waits, a later one with the same object, ``reason`` and ``policy`` replaces it.
    """

    subject: EventSubject
    type: str
    reason: str
    action: str
    note: str | Callable[[], str]
    policy: str = ""

    def text(self) -> str:
        """Return the shortened text of the note."""
        return shortened(self.note if isinstance(self.note, str) else self.note(), MAX_NOTE_BYTES)

    def with_text(self) -> "Message":
        """Return the message with the text of its note."""
        return msgspec.structs.replace(self, note=self.text())


class Recorder:
    """Writes Events from a bounded queue at a bounded rate.

    Args:
        instance: the reporting instance, for example the pod's name.
        per_second: maximum number of Events that are written in a second.
        is_busy: returns True while evictions need the API server more than Events do.
        max_queued: maximum number of queued alarms, and of other queued Events.
        max_remembered: maximum number of written Events whose times are kept.

    """

    def __init__(
        self,
        client: Client,
        instance: str,
        per_second: float,
        is_busy: Callable[[], bool] = lambda: False,
        *,
        max_queued: int = MAX_QUEUED,
        max_remembered: int = MAX_REMEMBERED,
    ) -> None:
        self._client = client
        self._instance = instance
        self._pause_seconds = 1.0 / per_second
        self._is_busy = is_busy
        self._queue = EventQueue[Message](max_queued)
        self._max_remembered = max_remembered
        self._written: OrderedDict[str, float] = OrderedDict()
        self._waiting = asyncio.Event()
        self._silent: dict[str, float] = {}
        """Namespace -> time until which its Events are dropped."""
        self._failed = 0
        self._logged_at = float("-inf")

    @property
    def dropped(self) -> int:
        """Number of Events that were not written: the queue was full, the write failed, or the process ended before."""
        return self._queue.dropped + self._failed

    def record(self, message: Message) -> None:
        """Queue one Event, unless it was written a short time ago. Never waits, never raises."""
        if isinstance(message.note, str):
            message = message.with_text()  # shortened, so that the queue is bounded in bytes, too
            key = event_name(message)
            if self._is_written(key):
                return
        else:
            key = f"{message.subject.uid}/{message.reason}/{message.policy}"
        subject = message.subject
        self._queue.put(subject.namespace, key, message, is_alarm=subject.kind == POLICY_KIND)
        self._waiting.set()

    async def run(self) -> None:
        """Write queued Events, without end."""
        while True:
            await self._waiting.wait()
            while self._queue:
                if await self._write_next():
                    await self._pause()
                else:
                    await asyncio.sleep(0)  # let other tasks run among thousands of repetitions
            self._waiting.clear()

    async def _write_next(self) -> bool:
        """Write the next Event of the queue. Return False if it was written a short time ago."""
        message = self._queue.pop().with_text()
        name = event_name(message)
        if self._is_written(name):
            return False
        namespace, began = message.subject.namespace, asyncio.get_running_loop().time()
        if self._silent.get(namespace, 0.0) > began:
            self._failed += 1
            return False
        is_written, now = await self._try_to_write(name, message), asyncio.get_running_loop().time()
        if namespace and now - began >= SLOW_SECONDS:
            silent = {name: until for name, until in self._silent.items() if until > now}
            self._silent = silent | {namespace: now + SILENT_SECONDS}
        if is_written:
            self._written[name] = now
            self._written.move_to_end(name)
            oldest = self._written.values()
            while len(self._written) > self._max_remembered or now - next(iter(oldest)) >= REPEAT_SECONDS:
                self._written.popitem(last=False)
        return True

    async def _pause(self) -> None:
        """Wait as the rate requires. An alarm does not wait for the longer pauses of a wave."""
        for _ in range(BUSY_FACTOR if self._is_busy() else 1):
            await asyncio.sleep(self._pause_seconds)
            if self._queue.has_alarms:
                return

    async def flush(self, timeout_seconds: float) -> None:
        """Write queued Events at the end of the process, as far as the time allows."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._queue:
                    await self._write_next()
        except TimeoutError:
            self._queue.clear()

    def _is_written(self, name: str) -> bool:
        """Return True if this process wrote the same Event a short time ago."""
        return asyncio.get_running_loop().time() - self._written.get(name, float("-inf")) < REPEAT_SECONDS

    async def _try_to_write(self, name: str, message: Message) -> bool:
        """Write an Event. Return True on success. Failures are not retried: log and metrics contain the same."""
        try:
            await self._write(name, message)
        except KubeError as error:
            if isinstance(error, ApiError) and error.is_namespace_gone:
                return False
            self._failed += 1
            now = asyncio.get_running_loop().time()
            if now - self._logged_at >= LOG_SECONDS:
                self._logged_at = now
                log.warning("event-not-written", reason=str(error), of=message.reason)
            return False
        return True

    async def _write(self, name: str, message: Message) -> None:
        namespace = message.subject.namespace or "default"
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        try:
            await self._request("POST", path, self._body(name, namespace, message))
        except ApiError as error:
            if error.code != 409:
                raise
            count = await self._count(f"{path}/{name}") + 1
            series = {"series": {"count": count, "lastObservedTime": exactly(time.time())}}
            await self._request("PATCH", f"{path}/{name}", series, MERGE_PATCH)

    async def _request(self, method: str, path: str, body: Mapping[str, Any], content_type: str = JSON) -> bytes:
        return await self._client.request(
            method, path, body=body, content_type=content_type, timeout_seconds=TIMEOUT_SECONDS
        )

    async def _count(self, path: str) -> int:
        """Return how often an Event was written. An empty patch returns the Event without the permission to get it."""
        body = await self._request("PATCH", path, {}, MERGE_PATCH)
        series = decoded(body, _Event, "Event").series
        return 1 if series is None else max(1, min(series.count, MAX_COUNT))

    def _body(self, name: str, namespace: str, message: Message) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": exactly(time.time()),
            "reportingController": "taintwarden.io/taintwarden",
            "reportingInstance": self._instance[:128],
            "action": message.action,
            "reason": message.reason,
            "regarding": message.subject.reference(),
            "note": message.text().encode("utf-8", "replace")[:MAX_NOTE_BYTES].decode("utf-8", "ignore"),
            "type": message.type,
        }


def event_name(message: Message) -> str:
    """Return a valid name that depends on the object, the reason and the note."""
    content = f"{message.subject.uid}\0{message.reason}\0{message.text()}".encode("utf-8", "replace")
    return f"{message.subject.name[:200].rstrip('-.')}.{blake2b(content, digest_size=8).hexdigest()}"
