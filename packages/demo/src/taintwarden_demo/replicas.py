"""A minimal workload controller and scheduler: they replace deleted pods and place the replacements.

Each deleted pod gets one replacement, on the tolerated node with the fewest pods. The scheduler reads extended
tolerations instead of the node affinity that placement adds for them.
"""

import asyncio
from contextlib import suppress

import msgspec

from localcluster import ApiError, LocalCluster
from localcluster.store.entries import Change
from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.operators import Match, match
from taintwarden_demo.scenario import NAMESPACE, TAINT, Object, Scenario, Workload
from taintwarden_demo.world import WORKLOAD_LABEL, create_pod

START_SECONDS = 1.0
"""Seconds from the creation of a replacement until it is placed. Then the kubelet makes it Ready at once."""
RETRY_SECONDS = 0.5


class Replicas:
    """Replaces deleted pods of all workloads except DaemonSets. ``start_seconds``: see ``START_SECONDS``."""

    def __init__(self, cluster: LocalCluster, scenario: Scenario, start_seconds: float = START_SECONDS) -> None:
        self._cluster = cluster
        self._start_seconds = start_seconds
        self._workloads = {workload.name: workload for workload in scenario.workloads if not workload.daemon_set}
        self._replaced: set[str] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._unsubscribe = cluster.store.subscribe("pods", self._on_pod)

    def stop(self) -> None:
        """Stop replacing and placing pods."""
        self._unsubscribe()
        for timer in self._timers:
            timer.cancel()

    def _on_pod(self, change: Change) -> None:
        """Schedule the replacement of a terminating pod, since a listener must not write to the store."""
        leaving = change.after is None or change.after.decoded()["metadata"].get("deletionTimestamp")
        if change.before is None or not leaving or change.last.uid in self._replaced:
            return
        workload = self._workloads.get(change.last.labels.get(WORKLOAD_LABEL, ""))
        owners = change.before.decoded()["metadata"].get("ownerReferences")
        if workload is not None and owners:  # otherwise a user created this pod
            self._replaced.add(change.last.uid)
            asyncio.get_running_loop().call_soon(self._replace, workload, owners[0])

    def _replace(self, workload: Workload, owner: Object) -> None:
        name = create_pod(self._cluster, workload, owner)
        self._place_later(self._start_seconds, name, workload)

    def _place_later(self, seconds: float, name: str, workload: Workload) -> None:
        def place() -> None:
            self._timers.discard(timer)
            self._place(name, workload)

        timer = asyncio.get_running_loop().call_later(seconds, place)
        self._timers.add(timer)

    def _place(self, name: str, workload: Workload) -> None:
        node = self._choose_node(workload)
        if node is None:
            self._place_later(RETRY_SECONDS, name, workload)
            return
        with suppress(ApiError):  # the pod was deleted in the meantime
            self._cluster.store.modify("pods", name, NAMESPACE, lambda pod: pod["spec"].update(nodeName=node))

    def _choose_node(self, workload: Workload) -> str | None:
        pods = dict.fromkeys((node["metadata"]["name"] for node in self._cluster.store.list("nodes")), 0)
        for pod in self._cluster.store.list("pods"):
            if pod["spec"].get("nodeName") in pods:
                pods[pod["spec"]["nodeName"]] += 1
        fitting = [
            (pods[node["metadata"]["name"]], node["metadata"]["name"])
            for node in self._cluster.store.list("nodes")
            if all(may_stay(workload, taint) for taint in node["spec"].get("taints", ()))
        ]
        return min(fitting)[1] if fitting else None


def may_stay(workload: Workload, taint: Object) -> bool:
    """True if the workload tolerates the taint. Extended tolerations replace native ones; no other key is tolerated."""
    if taint["key"] != TAINT:
        return False
    entries = workload.extended or workload.tolerations
    tolerations = msgspec.convert(list(entries), list[Toleration])
    known = Taint(taint["key"], taint.get("value", ""), taint["effect"])
    return any(match(toleration, known) is Match.HOLDS for toleration in tolerations)
