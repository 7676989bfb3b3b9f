"""One scenario on its own nodes and in its own namespace, and what each of its steps does there."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane import Cluster, Json, Link, Operator
from controlplane.client import resource_path
from controlplane.cluster import now
from e2e.replay.catalogue import Scenario
from e2e.replay.pod_watch import RUN_LABEL

Later = list[tuple[float, Callable[[], None]]]
LEAD_SECONDS = 1.0  # what the operator may take until it leads, of the 3 s its windows leave
LATE_LIMIT_SECONDS = 0.5  # a step later than this was not the scenario: the machine was too busy to judge by
NAMESPACE = "default"  # the only one in the file; here each scenario has its own


@dataclass
class Props:
    """What steps need beside the cluster. A scenario that disturbs the operator has the operator for itself."""

    cluster: Cluster
    operator: Operator
    link: Link | None = None


@dataclass
class Stage:
    """A scenario with its times: `started_at` on the monotonic clock is its time 0."""

    scenario: Scenario
    props: Props
    run: str
    started_at: float = 0.0
    late_seconds: float = 0.0
    start_seconds: float = 0.0
    """How much longer the operator took until it led: a machine that loads a program slowly is nobody's lateness."""
    uids: dict[str, str] = field(default_factory=dict)

    @property
    def is_late(self) -> bool:
        return self.late_seconds > LATE_LIMIT_SECONDS

    @property
    def over_at(self) -> float:
        """When its last expectation is settled, on a machine that loses nothing else."""
        return self.started_at + self.scenario.lasts_seconds + self.start_seconds

    @property
    def prefix(self) -> str:
        return f"{self.scenario.id.lower()}-{self.run}"

    def node_name(self, name: str) -> str:
        return f"{self.prefix}-{name}" if name else ""

    def pod_name(self, key: str) -> str:
        """The name in "default/p1"."""
        namespace, _, name = key.rpartition("/")
        if namespace != NAMESPACE:
            raise ValueError(f"scenario {self.scenario.id} names a pod outside {NAMESPACE}: {key}")
        return name

    def set_up(self) -> None:
        """Create the namespace, ahead of time 0."""
        self.props.cluster.create_namespace(self.prefix)

    def raise_curtain(self) -> None:
        """Create the initial objects; time 0 is when they exist."""
        for node in self.scenario.nodes:
            self.create_node(node)
        for pod in self.scenario.pods:
            self.create_pod(pod)

    def tear_down(self) -> None:
        self.props.cluster.remove_namespace(self.prefix)
        for node in self.props.cluster.items("nodes", labelSelector=f"{RUN_LABEL}={self.prefix}"):
            self.props.cluster.delete("nodes", node["metadata"]["name"])

    def do(self, step: Json) -> Later:
        """Do a step now; returns what is left to do later, each with its seconds after the step."""
        return getattr(self, f"do_{step['op']}")(step) or []

    def create_node(self, node: Json) -> None:
        labels = {RUN_LABEL: self.prefix, **node.get("labels", {})}
        self.props.cluster.create_node(self.node_name(node["name"]), labels, node["taints"])

    def create_pod(self, pod: Json) -> None:
        created = self.props.cluster.create_pod(
            pod["name"],
            self.prefix,
            self.node_name(pod["nodeName"]),
            tolerations=pod["tolerations"],
            labels={RUN_LABEL: self.run, **pod.get("labels", {})},
            annotations=pod.get("annotations", {}),
            phase=pod["phase"],
            grace_seconds=pod["terminationGracePeriodSeconds"],
        )
        self.uids[pod["name"]] = created["metadata"]["uid"]

    def do_create_node(self, step: Json) -> None:
        self.create_node(step["node"])

    def do_create_pod(self, step: Json) -> None:
        self.create_pod(step["pod"])

    def do_delete_node(self, step: Json) -> None:
        self.props.cluster.delete("nodes", self.node_name(step["node"]))

    def do_set_taints(self, step: Json) -> None:
        self.props.cluster.set_taints(self.node_name(step["node"]), [dated(taint) for taint in step["taints"]])

    def do_set_tolerations(self, step: Json) -> None:
        self.props.cluster.set_tolerations(self.pod_name(step["pod"]), self.prefix, step["tolerations"])

    def do_bind_pod(self, step: Json) -> None:
        self.props.cluster.bind_pod(self.pod_name(step["pod"]), self.prefix, self.node_name(step["node"]))

    def do_replace_pod(self, step: Json) -> None:
        self.props.cluster.delete("pods", self.pod_name(step["pod"]), self.prefix, grace_seconds=0)
        self.create_pod(step["new"])

    def do_touch_node(self, step: Json) -> None:
        self.props.cluster.annotate("nodes", self.node_name(step["node"]), {"touched": str(step["at"])})

    def do_touch_pod(self, step: Json) -> None:
        self.props.cluster.annotate("pods", self.pod_name(step["pod"]), {"touched": str(step["at"])}, self.prefix)

    def do_create_pdb(self, step: Json) -> None:
        minimum = step["minAvailable"]
        self.props.cluster.create_pdb(step["name"], self.prefix, step["selector"], min_available=minimum)

    def do_delay_node_watch(self, step: Json) -> Later:
        link = self.props.link
        assert link
        hold(link)
        return [(step["seconds"], lambda: release(link))]

    def do_restart_controller(self, step: Json) -> Later:
        self.props.operator.stop()
        return [(step["downtime"], self.start_operator)]

    def start_operator(self) -> None:
        """Start it, and wait until it leads. No scenario has a step after that."""
        began_at = time.monotonic()
        self.props.operator.start()
        self.props.operator.wait_leading()
        self.start_seconds += max(0.0, time.monotonic() - began_at - LEAD_SECONDS)


def hold(link: Link) -> None:
    """Watches of nodes lag; reads of nodes and all other watches stay fast.

    That is the gap in which a pod is bound to a node whose taint has just gone.
    """
    link.conditions.held_path = resource_path("nodes")


def release(link: Link) -> None:
    link.conditions.held_path = ""


def dated(taint: Json) -> Json:
    """The taint with the time of this moment where the file says "now"."""
    return {**taint, "timeAdded": now()} if taint.get("timeAdded") == "now" else taint
