"""Common parts of stories about limits: zones of nodes, workloads that are kept full, and the status.

Moments are of the monotonic clock, as in `stories`. What the machine loses while something is waited for counts as no
time.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane import Departure, Json, WorkingCluster
from controlplane.cluster import IMAGE
from e2e.pod_watch import RUN_LABEL
from e2e.stories import POLICY_LABEL, PodRef, Scene, taint, toleration

SCENE_LABEL = "taintwarden-e2e/scene"
GOOD, BAD = taint("980"), taint("940")
DEMANDING = toleration("Gt", "950")
"""Tolerated by GOOD nodes, not by BAD ones; native, so that the scheduler understands it."""
STATUS_SECONDS = 60.0  # it is written every three seconds, and the machine is busy with other stories
LEAVE_SECONDS = 60.0
EVENT_SECONDS = 90.0
OBSERVED_SECONDS = 5.0  # during which no pod may leave
ALL_SECONDS = 90.0


@dataclass
class LimitScene(Scene):
    """A scene on the working cluster. A workload is named as in `Availability`: `namespace/name`."""

    event_seconds: float = EVENT_SECONDS
    ground: WorkingCluster = field(kw_only=True)

    # -- before

    def zones(self, *taints: Json, **nodes: int) -> dict[str, list[str]]:
        """Create nodes that the story's policy selects: `zones(GOOD, a=3, b=2)`. Returns their names by zone."""
        labels = {POLICY_LABEL: self.policy, SCENE_LABEL: self.namespace}
        return {
            zone: self.ground.create_zones(self.namespace, {zone: number}, labels, *taints)
            for zone, number in nodes.items()
        }

    def nodes(self, *taints: Json, **nodes: int) -> list[str]:
        """Create zones as `zones` does, and return their nodes where zones do not matter."""
        return [node for zone in self.zones(*taints, **nodes).values() for node in zone]

    def deploy(self, name: str, replicas: int, **more: Any) -> str:
        """Create a Deployment on this story's nodes and wait until it is complete; returns the workload."""
        labels = {RUN_LABEL: self.run, **more.pop("labels", {})}
        given = {"node_selector": {SCENE_LABEL: self.namespace}, "tolerations": [DEMANDING], "labels": labels, **more}
        workload = self.ground.create_deployment(name, self.namespace, replicas, **given)
        self.ground.wait_complete(workload, timeout_seconds=ALL_SECONDS)
        return workload

    def replica(self, name: str, app: str, **labels: str) -> str:
        """Create a StatefulSet of one replica and wait until its pod is Ready; returns the workload of all of an app.

        The others of the app may be complete before the observer sees this one.
        """
        own = {"app": app, "replica": name}
        spec = {
            "containers": [{"name": "main", "image": IMAGE}],
            "nodeSelector": {SCENE_LABEL: self.namespace},
            "tolerations": [DEMANDING],
            "automountServiceAccountToken": False,
        }
        template = {"metadata": {"labels": {**own, RUN_LABEL: self.run, **labels}}, "spec": spec}
        body = {"replicas": 1, "serviceName": app, "selector": {"matchLabels": own}, "template": template}
        metadata = {"name": name, "labels": {"app": app}}
        self.cluster.create("statefulsets", {"metadata": metadata, "spec": body}, self.namespace)
        is_ready = lambda: self.cluster.get("statefulsets", name, self.namespace)["status"].get("readyReplicas")  # noqa: E731
        self.wait(is_ready, ALL_SECONDS, f"the pod of {name} to be Ready")
        return f"{self.namespace}/{app}"

    def fill(self, nodes: Sequence[str], pods: int, **more: Any) -> list[PodRef]:
        """Create `pods` running pods on each node that tolerate GOOD; no controller replaces them."""
        return [
            self.pod(f"{node.removeprefix(self.namespace + '-')}-{index}", node, DEMANDING, **more)
            for node in nodes
            for index in range(pods)
        ]

    # -- acting

    def degrade(self, *nodes: str) -> float:
        """Make nodes BAD, one after the other; returns the moment just before."""
        return self._taint_all(nodes, BAD)

    def recover(self, *nodes: str) -> float:
        """Make nodes GOOD again; returns the moment just before."""
        return self._taint_all(nodes, GOOD)

    def _taint_all(self, nodes: Sequence[str], *taints: Json) -> float:
        began = time.monotonic()
        for node in nodes:
            self.cluster.set_taints(node, taints)
        return began

    def cordon(self, nodes: Sequence[str], *, off: bool = False) -> None:
        """Let the scheduler put nothing on these nodes, and wait until it knows; `off` ends that."""
        for node in nodes:
            self.cluster.patch("nodes", node, {"spec": {"unschedulable": not off}})
        self.ground.wait_scheduler(nodes[-1])

    def change_policy(self, **spec: Any) -> None:
        """Change fields of the story's policy."""
        self.cluster.patch("taintevictionpolicies", self.policy, {"spec": spec})

    # -- what is seen

    def pods_on(self, nodes: Sequence[str]) -> list[PodRef]:
        """This story's pods that are on these nodes now and not terminating."""
        found = self.cluster.items("pods", self.namespace)
        here = [pod for pod in found if pod["spec"].get("nodeName") in nodes]
        alive = [pod["metadata"] for pod in here if "deletionTimestamp" not in pod["metadata"]]
        return [PodRef(metadata["name"], metadata["uid"]) for metadata in alive]

    def departures(self, since: float, workload: str = "") -> list[Departure]:
        """Pods of this story that left since a moment, in order."""
        left = self.ground.availability.departures(workload, since)
        return [one for one in left if one.workload.startswith(f"{self.namespace}/")]

    def wait_departures(self, number: int, since: float, timeout_seconds: float = ALL_SECONDS) -> list[Departure]:
        """Wait until `number` pods have left since a moment."""
        self._wait_status(lambda: len(self.departures(since)) >= number, f"{number} pods to leave", timeout_seconds)
        return self.departures(since)

    def assert_none_leaves(self, since: float, seconds: float = OBSERVED_SECONDS) -> None:
        """Assert that no pod has left since a moment, nor does for `seconds`."""
        time.sleep(seconds)  # nothing tells that nothing happens
        assert self.departures(since) == []

    def worst(self, workload: str, since: float) -> int:
        """The most pods that a workload was short of at any moment since."""
        return self.ground.availability.worst(workload, since).missing

    # -- what the status says

    def wait_limit(self, limit: str, pods: int | None = None) -> Json:
        """Wait until the status says that this limit holds pods, and how many if given; returns its entry."""

        def found() -> Json | None:
            entries = {entry["limit"]: entry for entry in self.status().get("limits", [])}
            entry = entries.get(limit)
            return entry if entry and pods in (None, entry["pods"]) else None

        return self._wait_status(found, f"{limit} to hold {'some' if pods is None else pods} pods")

    def wait_zones(self, expected: Mapping[str, tuple[str, int, int]]) -> None:
        """Wait until the status has these zones, each with its state, nodes and unhealthy nodes."""

        def found() -> bool:
            zones = self.status().get("zones", [])
            table = {zone["zone"]: (zone["state"], zone["nodes"], zone["unhealthyNodes"]) for zone in zones}
            return table == expected

        self._wait_status(found, f"the zones to be {expected}")

    def wait_evicting(self, nodes: int) -> None:
        """Wait until the status counts so many nodes with pods that have to leave."""
        self._wait_status(lambda: self.status().get("evictingNodes") == nodes, f"{nodes} nodes to be evicting")

    def _wait_status(self, found: Any, what: str, seconds: float = STATUS_SECONDS) -> Any:
        try:
            return self.wait(found, seconds, f"{what} of {self.policy}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the status is {self.status()}") from error
