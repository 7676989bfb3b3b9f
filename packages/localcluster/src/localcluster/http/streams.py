"""Watches over HTTP: lines, bookmarks, the time limit, and faults.

Rules: `k8s.io/apiserver/pkg/endpoints/handlers/watch.go` and `storage/cacher`. Forbidden here: filtering, which the
watcher does.
"""

import asyncio
import random
from typing import Any

from aiohttp import web

from localcluster.errors import ApiError, Cause, bad_request, invalid, not_served
from localcluster.faults import Faults, garbled
from localcluster.http import media
from localcluster.http.handlers import selection_of
from localcluster.kinds.resource import Resource, Target
from localcluster.store.store import Store
from localcluster.store.watching import Watcher, error_line

_BOOKMARK_BEFORE_END_SECONDS = 2.0


class Streams:
    """All open watches of a cluster."""

    def __init__(self, store: Store, faults: Faults, *, bookmark_seconds: float) -> None:
        self._store = store
        self._faults = faults
        self._bookmark_seconds = bookmark_seconds
        self.open: set[Watcher] = set()

    def end(self, resource: str | None = None) -> int:
        """End open watches after their buffered lines are sent. Returns their number."""
        chosen = [one for one in self.open if resource in {None, one.resource}]
        for watcher in chosen:
            watcher.end()
        return len(chosen)

    async def handle(self, request: web.Request, target: Target) -> web.StreamResponse:
        """Serve a watch until its time limit, until the client disconnects, or until it is ended."""
        query, resource = request.query, target.resource
        media.check_accept(request.headers.get("Accept", ""))
        collection = self._store.collection(resource.plural)
        selection = selection_of(query, target, collection.fields)
        revision = _revision(query)
        if resource.renamed:
            raise not_served(f"watches of {resource.plural} in {resource.group}")
        watcher = Watcher(self._store, collection, selection, resource.prefix)
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        self.open.add(watcher)
        try:
            try:
                watcher.start(revision)
            except ApiError as error:
                watcher.put(error_line(error))
                watcher.end()
            await response.prepare(request)
            stream = _Stream(self, resource, watcher, request, response)
            await stream.run(_seconds(query), bookmarks=query.get("allowWatchBookmarks") in {"true", "1"})
        except ConnectionError:
            pass  # the client disconnected
        finally:
            self.open.discard(watcher)
            watcher.close()
        return response


class _Stream:
    """Sends the lines of one watch."""

    def __init__(
        self, streams: Streams, resource: Resource, watcher: Watcher, request: web.Request, response: web.StreamResponse
    ) -> None:
        self._faults = streams._faults
        self._bookmark_seconds = streams._bookmark_seconds
        self._resource = resource
        self._watcher = watcher
        self._request = request
        self._response = response
        self._template: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version}
        if resource.plural == "pods":  # a bookmark of a typed kind is an object whose required fields are empty
            self._template |= {"spec": {"containers": None}, "status": {}}

    async def run(self, seconds: float, *, bookmarks: bool) -> None:
        """Send each line at once, and bookmarks periodically and shortly before the end."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        last = end - min(_BOOKMARK_BEFORE_END_SECONDS, seconds / 2)
        bookmark = min(clock() + self._bookmark_seconds, last) if bookmarks else end
        while True:
            if await self._watcher.ready(min(bookmark, end) - clock()) and not await self._drain():
                return
            now = clock()
            if bookmarks and now >= bookmark:
                # The bookmark's version includes the lines that came in the meantime.
                if not await self._drain():
                    return
                await self._response.write(self._watcher.bookmark(self._template))
                bookmark = now + self._bookmark_seconds if now + self._bookmark_seconds < last or now >= last else last
            if now >= end:
                return

    async def _drain(self) -> bool:
        """Send the buffered lines. Returns False if the watch has ended."""
        while lines := self._watcher.take():
            delay = self._faults.watch_delay(self._resource.plural)
            if delay:
                await asyncio.sleep(delay)
            sent = await self._send(lines)
            if not sent:
                return False
        return not self._watcher.has_ended

    async def _send(self, lines: list[bytes]) -> bool:
        good = []
        for line in lines:
            fault = self._faults.take_watch_fault(self._resource.plural)
            if fault is None:
                good.append(line)
            elif fault.kind == "garble":
                good.append(garbled(line))
            elif fault.error is not None:
                await self._response.write(b"".join(good) + error_line(fault.error))
                return False
            else:
                half = line[: len(line) // 2] if fault.kind == "cut-line" else b""
                await self._response.write(b"".join(good) + half)
                transport = self._request.transport
                if transport is not None:
                    transport.close()
                return False
        await self._response.write(b"".join(good))
        return True


def _revision(query: Any) -> int:
    """Return the revision after which to start: 501 if it is absent or 0, 500 if no number; 422 for initial events."""
    if "sendInitialEvents" in query:  # after this error, clients list instead of streaming a list
        text = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise invalid("ListOptions", "meta.k8s.io", "", [Cause("FieldValueForbidden", text, "sendInitialEvents")])
    revision = query.get("resourceVersion", "")
    if revision in {"", "0"}:
        raise not_served("watches without a resourceVersion")
    if not revision.isdigit():
        text = f'resourceVersion: Invalid value: "{revision}": strconv.ParseUint: parsing "{revision}": invalid syntax'
        raise ApiError(500, "", text)
    return int(revision)


def _seconds(query: Any) -> float:
    """Return `timeoutSeconds`, by default between 30 and 60 minutes, as upstream."""
    text = query.get("timeoutSeconds", "")
    if text:
        try:
            return float(int(text)) or 1800.0
        except ValueError as error:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error
    return 1800 * (1 + random.random())  # noqa: S311 spreads reconnects, guards nothing
