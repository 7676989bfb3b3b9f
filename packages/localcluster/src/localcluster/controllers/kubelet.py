"""One kubelet for all nodes. Bound pods start at once, and terminating pods end after their grace period.

It sets a bound Pending pod to Running and Ready, and removes terminating pods, which otherwise stay forever.
Forbidden here: heartbeats, containers, evictions of its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from localcluster.errors import ApiError
from localcluster.kinds.pods import set_condition
from localcluster.kinds.resource import Object
from localcluster.store.entries import Change, Key
from localcluster.store.store import Store, timestamp

Remove = Callable[[str, str, str], None]  # deletes a pod with grace 0, by namespace, name and UID


class Kubelet:
    """Starts and terminates pods. `termination_seconds` is the maximum duration of a termination."""

    def __init__(self, store: Store, remove: Remove, *, termination_seconds: float | None = None) -> None:
        self._store = store
        self._remove = remove
        self._cap = termination_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        store.subscribe("pods", self._on_change)

    def start(self) -> None:
        """Start on the running event loop, with the existing pods."""
        self._loop = asyncio.get_running_loop()
        for pod in self._store.list("pods"):
            self._handle_pod((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    async def stop(self) -> None:
        """Stop the kubelet. Terminations in progress are not completed."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._loop = None

    def _on_change(self, change: Change) -> None:
        """Schedule the handling of a changed pod, since a listener must not write to the store."""
        if self._loop is not None and change.after is not None:
            self._loop.call_soon(self._handle_pod, change.key)

    def _handle_pod(self, key: Key) -> None:
        namespace, name = key
        if self._loop is None:
            return
        with suppress(ApiError):  # the pod was removed in the meantime
            pod = self._store.get("pods", name, namespace)
            if not pod["spec"].get("nodeName"):
                return
            if pod["metadata"].get("deletionTimestamp"):
                self._schedule_end(self._loop, key, pod)
            elif (pod.get("status") or {}).get("phase", "Pending") == "Pending":
                self._store.update("pods", self._started(pod))

    def _started(self, pod: Object) -> Object:
        now = timestamp(self._store.clock())
        pod.setdefault("status", {})["phase"] = "Running"
        pod["status"].setdefault("startTime", now)
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            set_condition(pod, kind, "True", now)
        return pod

    def _schedule_end(self, loop: asyncio.AbstractEventLoop, key: Key, pod: Object) -> None:
        meta = pod["metadata"]
        ends = datetime.fromisoformat(meta["deletionTimestamp"])
        seconds = max((ends - self._store.clock()).total_seconds(), 0.0)
        if self._cap is not None:
            seconds = min(seconds, self._cap)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._end, key, meta["uid"])

    def _end(self, key: Key, uid: str) -> None:
        self._timers.pop(key, None)
        namespace, name = key
        with suppress(ApiError):
            self._remove(namespace, name, uid)
