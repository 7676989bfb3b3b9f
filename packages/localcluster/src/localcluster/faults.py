"""Faults that tests inject into this API server, and a log of its requests.

Each fault occurs a given number of times, except a delay of watches. Forbidden here: randomness, and the store.
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
    """One request in the log. `status` is 0 until the response, and stays 0 if the connection is cut.

    `token` is the client's bearer token. `received` and `completed` are seconds since 1970.
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
    """A fault of the next `times` matching requests, after `seconds`. At most one of `error`, `cut`, `hang` is set."""

    method: str
    path: str
    times: int
    seconds: float = 0.0
    error: ApiError | None = None
    cut: bool = False
    hang: bool = False
    occurrences: int = 0
    lifted: asyncio.Event = field(default_factory=asyncio.Event)

    def matches(self, method: str, path: str) -> bool:
        """True if the fault applies to this request."""
        return self.times > 0 and self.method in {"*", method} and re.search(self.path, path) is not None


@dataclass
class WatchFault:
    """A fault of the next lines in watches of a resource (`*`: of any)."""

    resource: str
    times: int
    kind: str  # cut, cut-line, error, garble
    error: ApiError | None = None


class Faults:
    """The faults of one cluster. A `path` is a regular expression, searched in the path without the query."""

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
        """Answer the next matching requests with this status. They change nothing."""
        error = ApiError(status, _REASONS.get(status, ""), message, retry_after_seconds=retry_after_seconds)
        return self._add(Fault(method, path, times, error=error))

    def slow(self, seconds: float, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """Handle the next matching requests after `seconds`."""
        return self._add(Fault(method, path, times, seconds=seconds))

    def hang(self, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """Hold the next matching requests until `lifted` of the returned fault is set."""
        return self._add(Fault(method, path, times, hang=True))

    def cut(self, *, method: str = "*", path: str = ".*", times: int = 1) -> Fault:
        """Close the connections of the next matching requests without a response. They change nothing."""
        return self._add(Fault(method, path, times, cut=True))

    def cut_watch(self, resource: str = "*", *, mid_line: bool = True, times: int = 1) -> None:
        """Close the connection in the middle of the next watch line, or before it if `mid_line` is False."""
        self._watch_faults.append(WatchFault(resource, times, "cut-line" if mid_line else "cut"))

    def fail_watch(self, status: int, resource: str = "*", *, times: int = 1, message: str = "made to fail") -> None:
        """Replace the next watch line by an ERROR with this code, and end the watch."""
        error = ApiError(status, _REASONS.get(status, ""), message)
        self._watch_faults.append(WatchFault(resource, times, "error", error))

    def garble_watch(self, resource: str = "*", *, times: int = 1) -> None:
        """Replace the object in the next watch line by valid JSON that no client can decode as its kind."""
        self._watch_faults.append(WatchFault(resource, times, "garble"))

    def delay_watch(self, resource: str, seconds: float) -> None:
        """Delay all following watch lines of a resource; 0 ends the delay."""
        self._delays[resource] = seconds

    def clear(self) -> None:
        """Remove all faults. Hanging requests continue."""
        for fault in self._faults:
            fault.lifted.set()
        self._faults.clear()
        self._watch_faults.clear()
        self._delays.clear()

    def count(self, method: str = "*", path: str = ".*") -> int:
        """Return the number of matching requests in the log."""
        return sum(method in {request.method, "*"} for request in self.requests if re.search(path, request.path))

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    # Called by the server

    def take_faults(self, method: str, path: str) -> list[Fault]:
        """Return the faults of this request, and count the occurrence."""
        met = [fault for fault in self._faults if fault.matches(method, path)]
        for fault in met:
            fault.times -= 1
            fault.occurrences += 1
        return met

    def take_watch_fault(self, resource: str) -> WatchFault | None:
        """Return the fault of the next line of a watch, and count the occurrence; None if there is none."""
        for fault in self._watch_faults:
            if fault.times > 0 and fault.resource in {"*", resource}:
                fault.times -= 1
                return fault
        return None

    def watch_delay(self, resource: str) -> float:
        """Return the delay of lines in seconds."""
        return self._delays.get(resource, 0.0)


_GARBLED = b'"labels":["no","map"],"annotations":7,"ownerReferences":"none","deletionTimestamp":{}'


def garbled(body: bytes) -> bytes:
    """Return valid JSON in which fields of the metadata have wrong types."""
    return body.replace(b'"metadata":{', b'"metadata":{' + _GARBLED + b",", 1)
