"""Times of evictions, as a watch of the API server shows them."""

import time
from collections import Counter
from typing import Self

from controlplane import Client, Json, Pulse
from controlplane.following import Follower

RUN_LABEL = "taintwarden-e2e/run"


class PodWatch:
    """Follows the labelled pods of all namespaces in a thread. Times are of the monotonic clock.

    By UID, since a pod may be replaced under its name. A watch that breaks is an error of the run, not an answer:
    `check` raises it.
    """

    def __init__(self, client: Client, run: str):
        self._follower = Follower(client, "pods", self._see, labelSelector=f"{RUN_LABEL}={run}")
        self._pulse = Pulse(client)
        self._evicted_at: dict[str, float] = {}
        self._last: dict[str, Json] = {}

    def __enter__(self) -> Self:
        self._follower.__enter__()
        self._pulse.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._pulse.__exit__()
        self._follower.__exit__()

    def check(self) -> None:
        """Raise what broke the watch, if anything did."""
        self._follower.check()

    def lost(self, since: float, until: float | None = None) -> float:
        """The seconds since a moment that the machine lost, which no upper bound counts."""
        return self._pulse.lost(since, until)

    def evicted_at(self, uid: str) -> float | None:
        """When the pod was first seen with a deletionTimestamp, or gone; None while it lives."""
        return self._evicted_at.get(uid)

    def evicted(self, namespace: str) -> Counter[str]:
        """Number of pods of each name that were first seen with a deletionTimestamp, or gone."""
        left = [self._last[uid]["metadata"] for uid in list(self._evicted_at)]
        return Counter(one["name"] for one in left if one["namespace"] == namespace)

    def last(self, uid: str) -> Json:
        """The pod as last seen; after its removal, as it was just before."""
        return self._last.get(uid, {})

    def _see(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._last[uid] = pod
        if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            self._evicted_at.setdefault(uid, time.monotonic())
