"""Faults on demand, and a log of requests: tests inject errors into this API server.

Each fault has a number of occurrences; no fault occurs by itself. Forbidden here: randomness, and the store.
"""

import asyncio
import re
import time
from collections import deque
from dataclasses import dataclass, field

from localcluster.errors import ApiError

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass
class Request:
    """One request of the log. `status` is 0 until it is answered, and if the connection was cut.

    `token` is what the client showed; `received` and `completed` are seconds since 1970.
    """

    method: str
    path: str
    query: str = ""
    status: int = 0
    token: str = ""
    received: float = field(default_factory=time.time)
    completed: float = 0.0


@dataclass
class Fault:
    """What happens to the requests that match, `times` times. `error`, `cut` and `hang` exclude one another."""

    method: str
    path: str
    times: int
    seconds: float = 0.0
    error: ApiError | None = None
    cut: bool = False
    hang: bool = False
    struck: int = 0
    lifted: asyncio.Event = field(default_factory=asyncio.Event)

    def matches(self, method: str, path: str) -> bool:
        """Whether it applies to this request."""
        return self.times > 0 and self.method in {"*", method} and re.search(self.path, path) is not None


@dataclass
class WatchFault:
    """What happens to the next lines of watches of a resource (`*`: of any)."""

    resource: str
    times: int
    kind: str  # cut, cut-line, garble
    error: ApiError | None = None


class Faults:
    """The faults of one cluster. Paths are regular expressions, searched in the path without the query."""

    def __init__(self, *, log_limit: int = 10_000) -> None:
        self.requests: deque[Request] = deque(maxlen=log_limit)
        self._faults: list[Fault] = []
        self._watch_faults: list[WatchFault] = []
        self._delays: dict[str, float] = {}

    # Called by tests

    def answer(
        self,
        status: int,
        *,
        method: str = "*",
        path: str = ".*",
        times: int = 1,
        retry_after_seconds: int = 0,
        message: str = "made to fail",
    ) -> Fault:
        """The next requests that match get this status and change nothing."""
        error = ApiError(status, _REASONS.get(status, ""), message, retry_after_seconds=retry_after_seconds)
        return self._add(Fault(method, path, times, error=error))

    def slow(self, seconds: float, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """The next requests that match are handled after a delay."""
        return self._add(Fault(method, path, times, seconds=seconds))

    def hang(self, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """The next requests that match are not handled until `fault.lifted` is set."""
        return self._add(Fault(method, path, times, hang=True))

    def cut(self, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """The connections of the next requests that match are closed without a response; nothing changes."""
        return self._add(Fault(method, path, times, cut=True))

    def cut_watch(self, resource: str = "*", *, mid_line: bool = True, times: int = 1) -> None:
        """The next watch line ends the connection: in its middle, or before it."""
        self._watch_faults.append(WatchFault(resource, times, "cut-line" if mid_line else "cut"))

    def fail_watch(self, status: int, resource: str = "*", *, times: int = 1, message: str = "made to fail") -> None:
        """The next watch line is an ERROR with this code, and the watch ends."""
        error = ApiError(status, _REASONS.get(status, ""), message)
        self._watch_faults.append(WatchFault(resource, times, "error", error))

    def garble_watch(self, resource: str = "*", *, times: int = 1) -> None:
        """The object of the next watch line is valid JSON that no client can decode as its kind."""
        self._watch_faults.append(WatchFault(resource, times, "garble"))

    def delay_watch(self, resource: str, seconds: float) -> None:
        """From now on watch lines of a resource are sent late; 0 ends it."""
        self._delays[resource] = seconds

    def clear(self) -> None:
        """Remove all faults; requests that hang continue."""
        for fault in self._faults:
            fault.lifted.set()
        self._faults.clear()
        self._watch_faults.clear()
        self._delays.clear()

    def count(self, method: str = "*", path: str = ".*") -> int:
        """How many requests of the log match."""
        return sum(method in {one.method, "*"} for one in self.requests if re.search(path, one.path))

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    # Called by the server

    def strike(self, method: str, path: str) -> list[Fault]:
        """The faults that apply to this request, counted."""
        met = [fault for fault in self._faults if fault.matches(method, path)]
        for fault in met:
            fault.times -= 1
            fault.struck += 1
        return met

    def strike_watch(self, resource: str) -> WatchFault | None:
        """The fault that applies to the next line of a watch, counted."""
        for fault in self._watch_faults:
            if fault.times > 0 and fault.resource in {"*", resource}:
                fault.times -= 1
                return fault
        return None

    def watch_delay(self, resource: str) -> float:
        """Seconds by which lines are delayed."""
        return self._delays.get(resource, 0.0)


_GARBLED = b'"labels":["no","map"],"annotations":7,"ownerReferences":"none","deletionTimestamp":{}'


def garbled(body: bytes) -> bytes:
    """Valid JSON in which the metadata has types that no client expects."""
    return body.replace(b'"metadata":{', b'"metadata":{' + _GARBLED + b",", 1)
