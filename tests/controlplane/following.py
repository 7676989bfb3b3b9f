"""Following a resource in a thread: every object there is, then every change, in the order the server made them."""

import threading
from collections.abc import Callable
from typing import Any, Self

from controlplane.client import Client, Json, resource_path

See = Callable[[str, Json], None]
"""Called with the type of a watch event (ADDED for listed objects) and the object."""


class Follower:
    """Calls `see` for the objects of a list when it is entered, then from a thread for each change.

    Nothing in between is missed: the watch begins where the list ended. A watch that breaks is an error of the run,
    not an answer: `check` raises it.
    """

    def __init__(self, client: Client, resource: str, see: See, **query: Any):
        self._client = client
        self._resource = resource
        self._see = see
        self._query = query
        self._resource_version = ""
        self._thread = threading.Thread(target=self._follow, name=f"follow-{resource}", daemon=True)
        self._stopping = False
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        listed = self._client.request("GET", resource_path(self._resource), query=self._query)
        self._resource_version = listed["metadata"]["resourceVersion"]
        for item in listed["items"]:
            self._see("ADDED", item)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True  # the thread is a daemon, blocked in a read; the server ends it with the next event

    def check(self) -> None:
        """Raise what broke the watch, if anything did."""
        if self._error:
            raise self._error

    def _follow(self) -> None:
        try:
            while not self._stopping:
                query = {**self._query, "allowWatchBookmarks": "true"}
                for event in self._client.watch(self._resource, self._resource_version, **query):
                    if self._stopping:
                        return
                    self._take(event["type"], event["object"])
        except Exception as error:  # noqa: BLE001 - handed to the test, which raises it
            self._error = error

    def _take(self, kind: str, found: Json) -> None:
        if kind == "ERROR":
            raise RuntimeError(f"the watch of {self._resource} broke: {found}")
        self._resource_version = found["metadata"]["resourceVersion"]
        if kind != "BOOKMARK":
            self._see(kind, found)
