"""A control plane on which workloads live: Deployments are kept full, pods are placed, budgets are computed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from controlplane.availability import Availability
from controlplane.client import Json
from controlplane.cluster import IMAGE, SCHEDULER
from controlplane.control_plane import ControlPlane
from controlplane.kubelet import Kubelet
from controlplane.waiting import wait_until

CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
)
"""The built-in controller for taints is not among them: it would evict, too."""
OWNERS = ("statefulset-controller", "daemonset-controller", "job-controller")
"""The controllers of the other kinds of pods."""
# Tests wait for controllers: none should wait for its own client's throttle.
CLIENT_LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
PROBE = "taintwarden-e2e/probe"
COMPLETE_SECONDS = 60


class WorkingCluster(ControlPlane):
    """The real controller manager and scheduler, a stand-in for the kubelets, and an observer of what it does to pods.

    The scheduler compares Gt and Lt of native tolerations if the feature gate is on, and does not read annotations.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        start_seconds: float = 0.5,
        stop_seconds: float = 0.3,
        controllers: Sequence[str] = CONTROLLERS,
        served: Mapping[str, bool] | None = None,
    ):
        super().__init__(folder, feature_gates=feature_gates, served=served)
        self._names = ",".join(controllers)
        self.kubelet = Kubelet(self.client, start_seconds=start_seconds, stop_seconds=stop_seconds)
        self.availability = Availability(self.client)

    def start(self) -> None:
        """Start everything and wait for it."""
        super().start()
        self.start_controller_manager(self._names, CLIENT_LIMITS)
        self.start_scheduler(CLIENT_LIMITS)
        self.kubelet.__enter__()
        self.availability.__enter__()

    def stop(self) -> None:
        self.availability.__exit__()
        if self.kubelet.is_running:
            self.kubelet.__exit__()
        super().stop()

    def create_zones(
        self, prefix: str, nodes: Mapping[str, int], labels: Mapping[str, str], *taints: Json
    ) -> list[str]:
        """Create nodes in each zone: `{"a": 2}` makes PREFIX-a-0 and PREFIX-a-1. Returns their names."""
        names = []
        for zone, number in nodes.items():
            for index in range(number):
                names.append(f"{prefix}-{zone}-{index}")
                self.client.create_node(names[-1], {REGION: "test", ZONE: zone, **labels}, taints)
        return names

    def create_deployment(
        self,
        name: str,
        namespace: str,
        replicas: int,
        *,
        node_selector: Mapping[str, str],
        tolerations: Sequence[Json] = (),
        grace_seconds: int = 30,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spread: str = ZONE,
    ) -> str:
        """Create a Deployment whose pods are spread evenly over a node label; returns its name for `availability`.

        `labels` and `annotations` are for the pods, which are labelled `app: NAME` as well.
        """
        app = {"matchLabels": {"app": name}}
        constraint = {"maxSkew": 1, "topologyKey": spread, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": app}
        spec = {
            "containers": [{"name": "main", "image": IMAGE}],
            "terminationGracePeriodSeconds": grace_seconds,
            "tolerations": list(tolerations),
            "nodeSelector": dict(node_selector),
            "topologySpreadConstraints": [constraint],
            "automountServiceAccountToken": False,
        }
        metadata = {"labels": {"app": name, **(labels or {})}, "annotations": dict(annotations or {})}
        template = {"metadata": metadata, "spec": spec}
        body = {"replicas": replicas, "selector": app, "template": template}
        self.client.create("deployments", {"metadata": {"name": name}, "spec": body}, namespace)
        return f"{namespace}/{name}"

    def wait_complete(self, *workloads: str, timeout_seconds: float = COMPLETE_SECONDS) -> None:
        """Wait until all pods of these workloads are Ready, and none is terminating. Raises TimeoutError."""
        for workload in workloads:
            wait_until(
                lambda workload=workload: self._is_complete(workload), timeout_seconds, f"{workload} to be complete"
            )

    def wait_scheduler(self, node: str) -> None:
        """Wait until the scheduler knows all changes of nodes so far: it follows nodes and pods by two watches.

        It puts a pod on this node for a label that the node gets now, and the pod is removed.
        """
        name = f"probe-{uuid4().hex[:8]}"
        self.client.patch("nodes", node, {"metadata": {"labels": {PROBE: name}}})
        placed = {"schedulerName": SCHEDULER, "nodeSelector": {PROBE: name}, "tolerations": [{"operator": "Exists"}]}
        self.client.create_pod(name, spec=placed)
        is_placed = lambda: self.client.get("pods", name, "default")["spec"].get("nodeName")  # noqa: E731
        wait_until(is_placed, COMPLETE_SECONDS, "the scheduler to know the nodes")
        self.client.delete("pods", name, "default", grace_seconds=0)

    def _is_complete(self, workload: str) -> bool:
        self.kubelet.check()
        count = self.availability.now(workload)
        return count is not None and count.wanted > 0 and count.missing == 0
