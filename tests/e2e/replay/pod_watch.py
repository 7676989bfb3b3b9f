"""When each pod was evicted, as a watch of the API server shows it."""

import threading
import time
from typing import Self

from controlplane import Client, Json

RUN_LABEL = "taintwarden-e2e/run"


class PodWatch:
    """Follows the labelled pods of all namespaces in a thread. Times are of the monotonic clock.

    By UID, since a pod may be replaced under its name. A watch that breaks is an error of the run, not an answer:
    `check` raises it.
    """

    def __init__(self, client: Client, run: str):
        self._client = client
        self._query = {"labelSelector": f"{RUN_LABEL}={run}"}
        self._thread = threading.Thread(target=self._follow, name="pod-watch", daemon=True)
        self._stopping = False
        self._error: Exception | None = None
        self._evicted_at: dict[str, float] = {}
        self._last: dict[str, Json] = {}

    def __enter__(self) -> Self:
        self._resource_version = self._client.request("GET", "/api/v1/pods", query=self._query)["metadata"][
            "resourceVersion"
        ]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True  # the thread is a daemon, blocked in a read; the server ends it with the next event

    def check(self) -> None:
        """Raise what broke the watch, if anything did."""
        if self._error:
            raise self._error

    def evicted_at(self, uid: str) -> float | None:
        """When the pod was first seen with a deletionTimestamp, or gone; None while it lives."""
        return self._evicted_at.get(uid)

    def last(self, uid: str) -> Json:
        """The pod as last seen; after its removal, as it was just before."""
        return self._last.get(uid, {})

    def _follow(self) -> None:
        try:
            while not self._stopping:
                query = {**self._query, "allowWatchBookmarks": "true"}
                for event in self._client.watch("pods", self._resource_version, **query):
                    if self._stopping:
                        return
                    self._see(event)
        except Exception as error:  # noqa: BLE001 - handed to the test, which raises it
            self._error = error

    def _see(self, event: Json) -> None:
        pod = event["object"]
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch of pods broke: {pod}")
        self._resource_version = pod["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        uid = pod["metadata"]["uid"]
        self._last[uid] = pod
        if event["type"] == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            self._evicted_at.setdefault(uid, time.monotonic())
