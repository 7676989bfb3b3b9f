"""Many objects from few recorded ones: other names, UIDs, workloads and nodes.

Fields that the operator's schema does not name are kept: the messages remember them, and write them at their end.
"""

from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from bench import population
from bench.population import Shape
from bench.replay.recording import Recording
from taintwarden.kube.wire.protobuf_kinds import MESSAGES

PODS_PER_WORKLOAD = 100
DIGEST = slice(7, 15)
"""Where the name of a workload has the hash of its template."""


class Pods:
    """Makes pods of workloads without end."""

    def __init__(self, recording: Recording):
        self._recorded = [MESSAGES["core.v1.Pod"].FromString(raw) for raw in recording["pods"]]
        self._workloads: dict[int, Any] = {}

    def make(self, workload: int, index: int, node: str) -> Any:
        """The message of a pod. It is valid until the next one of its workload is made."""
        pod = self._workloads.get(workload)
        if pod is None:
            pod = self._workloads[workload] = self._of_workload(workload)
        pod.metadata.name = f"{owner_name(workload)}-{index:06d}"
        pod.metadata.uid = uid_of(f"pod-{index}")
        pod.spec.nodeName = node
        return pod

    def forget(self, workload: int) -> None:
        """No more pods of this workload are made."""
        self._workloads.pop(workload, None)

    def _of_workload(self, workload: int) -> Any:
        recorded = self._recorded[workload % population.WORKLOADS]
        old_uid = MESSAGES["meta.v1.OwnerReference"].FromString(recorded.metadata.ownerReferences[0]).uid
        raw = renamed(recorded.SerializeToString(), workload)
        return type(recorded).FromString(raw.replace(old_uid, uid_of(owner_name(workload)).encode()))


def pods(recording: Recording, shape: Shape) -> Iterator[Any]:
    """The messages of a cluster's pods; each is valid until the next."""
    made, workloads = Pods(recording), workload_count(shape)
    for index in range(shape.pods):
        yield made.make(index % workloads, index, population.node_name(index % shape.nodes))


def nodes(recording: Recording, shape: Shape) -> Iterator[Any]:
    recorded = [MESSAGES["core.v1.Node"].FromString(raw) for raw in recording["nodes"]]
    for index in range(shape.nodes):
        node, name = recorded[index % len(recorded)], population.node_name(index)
        node.metadata.name = name
        node.metadata.uid = uid_of(name)
        node.metadata.labels["kubernetes.io/hostname"] = name.encode()
        yield node


def replica_sets(recording: Recording, shape: Shape) -> Iterator[Any]:
    """All of each Deployment: that whose pods run, which has the name of the workload, and older ones."""
    recorded: dict[str, list[bytes]] = {}
    for raw in recording["replicasets"]:
        name = MESSAGES["apps.v1.ReplicaSet"].FromString(raw).metadata.name
        recorded.setdefault(name[: DIGEST.stop], []).append(raw)
    for workload in range(workload_count(shape)):
        for raw in recorded[population.owner_name(workload % population.WORKLOADS)]:
            replica_set = MESSAGES["apps.v1.ReplicaSet"].FromString(renamed(raw, workload))
            replica_set.metadata.uid = uid_of(replica_set.metadata.name)
            if replica_set.spec.replicas:
                replica_set.spec.replicas = PODS_PER_WORKLOAD
            yield replica_set


def namespaces(recording: Recording, _: Shape) -> Iterator[Any]:
    return map(MESSAGES["core.v1.Namespace"].FromString, recording["namespaces"])


def workload_count(shape: Shape) -> int:
    return max(1, shape.pods // PODS_PER_WORKLOAD)


def owner_name(workload: int) -> str:
    """As long as in the recording: those of the first workloads are the recorded ones."""
    recorded = population.owner_name(workload % population.WORKLOADS)
    release = workload // population.WORKLOADS
    return recorded if not release else recorded[: DIGEST.start] + uid_of(f"{recorded}-{release}")[:8]


def renamed(raw: bytes, workload: int) -> bytes:
    """An object of the recorded workload as one of another. No length in the encoding changes."""
    old, new = population.owner_name(workload % population.WORKLOADS), owner_name(workload)
    return raw.replace(old[DIGEST].encode(), new[DIGEST].encode())


def uid_of(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))
