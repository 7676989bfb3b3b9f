"""Number of pods that each workload misses, at every moment that a watch can show, and which pods left when."""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from controlplane.client import Client, Json
from controlplane.following import Follower


@dataclass(frozen=True)
class Count:
    """Pods of a workload at one observed moment of the monotonic clock."""

    at: float
    wanted: int
    available: int
    """Pods that are Ready and not terminating."""

    @property
    def missing(self) -> int:
        """Number of missing pods; never negative, even if a replacement is Ready early."""
        return max(0, self.wanted - self.available)


@dataclass(frozen=True)
class Departure:
    """A pod was first seen terminating, or gone."""

    at: float
    workload: str
    uid: str
    name: str
    node: str
    evicted: bool
    """True if the Eviction API removed it; False if it was deleted."""
    grace_seconds: int
    """Seconds that the pod has to stop."""
    ends_at: float
    """End of these seconds, in seconds since the epoch."""


class Availability:
    """Follows pods, ReplicaSets and StatefulSets of all namespaces. A workload has one label `app`: `namespace/app`.

    Pods come in the order in which the server changed them, each state of each one once: no moment is missed at
    which a workload was short of pods.
    """

    def __init__(self, client: Client):
        self._lock = threading.Lock()
        self._followers = [
            Follower(client, "replicasets", self._see_owner),
            Follower(client, "statefulsets", self._see_owner),
            Follower(client, "pods", self._see_pod),
        ]
        self._wanted: dict[str, dict[str, int]] = defaultdict(dict)
        """Replicas by workload and UID of their owner."""
        self._available: dict[str, set[str]] = defaultdict(set)
        self._counts: dict[str, list[Count]] = defaultdict(list)
        self._departures: dict[str, Departure] = {}

    def __enter__(self) -> Self:
        for follower in self._followers:
            follower.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for follower in self._followers:
            follower.__exit__()

    def check(self) -> None:
        """Raise what broke a watch, if anything did."""
        for follower in self._followers:
            follower.check()

    def now(self, workload: str) -> Count | None:
        """The latest count of the workload; None if it was never seen."""
        self.check()
        with self._lock:
            counts = self._counts.get(workload)
            return counts[-1] if counts else None

    def counts(self, workload: str, since: float) -> list[Count]:
        """Counts of the workload at a moment, and after each change since."""
        self.check()
        with self._lock:
            counts = self._counts[workload]
            first = max((index for index, count in enumerate(counts) if count.at <= since), default=0)
            return counts[first:]

    def worst(self, workload: str, since: float) -> Count:
        """The count with the most missing pods since a moment."""
        return max(self.counts(workload, since), key=lambda count: count.missing)

    def departures(self, workload: str = "", since: float = 0.0) -> list[Departure]:
        """Pods that left since a moment, in order; of all workloads unless one is named."""
        self.check()
        with self._lock:
            return [left for left in self._departures.values() if left.at >= since and workload in ("", left.workload)]

    def _see_owner(self, kind: str, found: Json) -> None:
        workload = workload_of(found)
        with self._lock:
            self._wanted[workload][found["metadata"]["uid"]] = 0 if kind == "DELETED" else found["spec"]["replicas"]
            self._count(workload)

    def _see_pod(self, kind: str, pod: Json) -> None:
        workload, uid = workload_of(pod), pod["metadata"]["uid"]
        leaves = kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
        with self._lock:
            if leaves and uid not in self._departures:
                self._depart(pod)
            available = self._available[workload]
            (available.add if is_ready(pod) and not leaves else available.discard)(uid)
            self._count(workload)

    def _depart(self, pod: Json) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        ends = metadata.get("deletionTimestamp")
        self._departures[uid] = Departure(
            at=time.monotonic(),
            workload=workload_of(pod),
            uid=uid,
            name=metadata["name"],
            node=pod["spec"].get("nodeName", ""),
            evicted=conditions_of(pod).get("DisruptionTarget", {}).get("reason") == "EvictionByEvictionAPI",
            grace_seconds=metadata.get("deletionGracePeriodSeconds", 0),
            ends_at=datetime.fromisoformat(ends).timestamp() if ends else time.time(),
        )

    def _count(self, workload: str) -> None:
        counts, wanted = self._counts[workload], sum(self._wanted[workload].values())
        count = Count(time.monotonic(), wanted, len(self._available[workload]))
        if not counts or (counts[-1].wanted, counts[-1].available) != (count.wanted, count.available):
            counts.append(count)


def workload_of(found: Json) -> str:
    metadata = found["metadata"]
    return f"{metadata['namespace']}/{metadata.get('labels', {}).get('app', '')}"


def conditions_of(pod: Json) -> dict[str, Json]:
    return {condition["type"]: condition for condition in pod["status"].get("conditions", [])}


def is_ready(pod: Json) -> bool:
    return conditions_of(pod).get("Ready", {}).get("status") == "True"
