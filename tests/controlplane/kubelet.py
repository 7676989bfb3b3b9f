"""One stand-in for the kubelets of all nodes: bound pods start after a while, terminating pods are gone after a while.

No heartbeats: nodes stay Ready where no node-lifecycle controller runs. No containers, no evictions of its own.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Self

from controlplane.client import ApiError, Json, resource_path
from controlplane.cluster import Cluster
from controlplane.following import Follower

WORKERS = 4  # a wave must not wait for one request after the other
STOP_SECONDS_ANNOTATION = "taintwarden-e2e/stop-seconds"


class Kubelet:
    """Reports a bound pod Running and Ready `start_seconds` later, and removes a terminating one `stop_seconds` later.

    A pod's annotation STOP_SECONDS_ANNOTATION says otherwise for that pod. A pod is killed when its grace is over,
    however long it would have taken. Errors come out of `check` and of leaving it.
    """

    def __init__(self, cluster: Cluster, *, start_seconds: float = 0.5, stop_seconds: float = 0.3):
        self._cluster = cluster
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._follower = Follower(cluster, "pods", self._see)
        self._pods: dict[str, Json] = {}
        self.others: set[str] = set()
        """Nodes with kubelets of their own."""
        self._begun: set[tuple[str, str]] = set()
        """Steps that are planned already, by UID and kind of step."""
        self._plans: list[tuple[float, int, Callable[[str], None], str]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self._workers = ThreadPoolExecutor(WORKERS, "kubelet")
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._follower.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.__exit__()
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        self._workers.shutdown(cancel_futures=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def check(self) -> None:
        """Raise what went wrong, if anything did: from then on pods may be stuck."""
        self._follower.check()
        if self._error:
            raise self._error

    def _see(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        with self._changed:
            if kind == "DELETED":
                self._pods.pop(uid, None)
                self._begun -= {(uid, "start"), (uid, "stop")}
                return
            self._pods[uid] = pod
            if pod["spec"].get("nodeName", "") in {"", *self.others}:
                return
            if "deletionTimestamp" in pod["metadata"]:
                self._plan(uid, "stop", self._stop, self._stop_after(pod))
            elif pod["status"].get("phase") == "Pending":
                self._plan(uid, "start", self._start, self._start_seconds)

    def _plan(self, uid: str, what: str, do: Callable[[str], None], after_seconds: float) -> None:
        if (uid, what) not in self._begun:
            self._begun.add((uid, what))
            heapq.heappush(self._plans, (time.monotonic() + after_seconds, next(self._numbers), do, uid))
            self._changed.notify()

    def _stop_after(self, pod: Json) -> float:
        metadata = pod["metadata"]
        seconds = float(metadata.get("annotations", {}).get(STOP_SECONDS_ANNOTATION, self._stop_seconds))
        ends = datetime.fromisoformat(metadata["deletionTimestamp"])
        return min(seconds, max(0.0, (ends - datetime.now(UTC)).total_seconds()))

    def _run(self) -> None:
        with self._changed:
            while not self._stopping:
                wait = self._plans[0][0] - time.monotonic() if self._plans else None
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                _, _, do, uid = heapq.heappop(self._plans)
                self._workers.submit(do, uid).add_done_callback(self._done)

    def _done(self, future: "Future[None]") -> None:
        error = None if future.cancelled() else future.exception()
        if error and not (isinstance(error, ApiError) and error.status in (404, 409)):  # it is gone, or another by now
            self._error = self._error or error

    def _start(self, uid: str) -> None:
        with self._changed:
            pod = self._pods.get(uid)
        if pod and pod["status"].get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]:
            meta, containers = pod["metadata"], pod["spec"]["containers"]
            self._cluster.report_phase(meta["name"], meta["namespace"], "Running", containers=containers)

    def _stop(self, uid: str) -> None:
        with self._changed:
            pod = self._pods.get(uid)
        if pod:
            path = resource_path("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            self._cluster.request("DELETE", path, body)
