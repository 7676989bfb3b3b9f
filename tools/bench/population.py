"""The objects of the cluster: a realistic mix of workloads, computed from indexes, so that every run has the same."""

from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

Json = dict[str, Any]

NAMESPACES = 12
WORKLOADS = 36
OLD_REVISIONS = 10
"""Number of ReplicaSets without pods that a Deployment keeps by default."""
STARTED_AT = "2026-01-01T00:00:00Z"
TAINT = {"key": "bench.example/outage", "value": "1", "effect": "NoExecute"}
"""Taint that no pod tolerates, so that all have to leave."""
PROBE_TAINT = {"key": "bench.example/probe", "value": "1", "effect": "NoExecute"}

TOLERATION_SETS: tuple[list[Json], ...] = (
    [],
    [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoExecute"}],
    [{"key": "sla.example/hours", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120}],
    [
        {"key": "spot.example/interruption", "operator": "Exists"},
        {
            "key": "maintenance",
            "operator": "Equal",
            "value": "planned",
            "effect": "NoExecute",
            "tolerationSeconds": 600,
        },
    ],
    [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}],
    [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "gpu.example/model", "operator": "Equal", "value": "h100"},
    ],
)
NO_LIMITS: Json = {
    "evictionsPerSecond": 10_000,
    "perWorkload": {"maxUnavailable": "100%"},
    "guard": {"maxPercent": 100},
    "bounce": {"maxBackoffSeconds": 0},
}
"""Settings that switch every limit off."""
EXTENDED = '[{"key":"sla.example/hours","operator":"Gt","value":"950","effect":"NoExecute","tolerationSeconds":30}]'


@dataclass(frozen=True)
class Shape:
    """Size of the cluster."""

    nodes: int
    pods: int
    has_small_pods: bool = False
    """True for pods without environment, probes, volumes and resources."""

    @property
    def name(self) -> str:
        return f"{self.nodes}-nodes-{self.pods}-{'small-' if self.has_small_pods else ''}pods"


def node_name(index: int) -> str:
    return f"node-{index:04d}"


def namespace_name(index: int) -> str:
    return f"team-{index:02d}"


def node(index: int) -> Json:
    """Return a node as a kubelet registers it."""
    name = node_name(index)
    labels = {"os": "linux", "arch": "amd64"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                **{f"{prefix}kubernetes.io/{key}": value for prefix in ("", "beta.") for key, value in labels.items()},
                "topology.kubernetes.io/zone": f"zone-{index % 3}",
                "topology.kubernetes.io/region": "region",
                "node.kubernetes.io/instance-type": f"c{index % 4}.4xlarge",
            },
        },
        "spec": {"podCIDR": f"10.{index // 256}.{index % 256}.0/24"},
    }


def node_status() -> Json:
    """Return the status of a Ready node."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    times = {"lastHeartbeatTime": STARTED_AT, "lastTransitionTime": STARTED_AT}
    return {"conditions": [ready | times], "capacity": capacity, "allocatable": capacity}


def workload_of(index: int) -> int:
    """Return the workload of a pod. Pods with successive indexes have different workloads."""
    return index * 7 % WORKLOADS


def pod_name(workload: int, index: int) -> str:
    """Return the name of a pod. All names have the same length, on which `stored` relies."""
    return f"{owner_name(workload)}-{index:06d}"


def owner_name(workload: int) -> str:
    return f"app-{workload:02d}-{workload * 2654435761 % 2**32:08x}"


def replica_sets(workload: int, replicas: int) -> list[tuple[str, Json]]:
    """Return namespace and body of a Deployment's ReplicaSets: first the one whose pods run, then older ones."""
    namespace, body, _ = pod(workload, 0, "")
    owner, labels = owner_name(workload), body["metadata"]["labels"]
    del body["spec"]["nodeName"]
    sets = []
    for revision in range(1 + OLD_REVISIONS):
        digest = {"pod-template-hash": labels["pod-template-hash"] if revision == 0 else f"old{revision:02d}"}
        metadata = {
            "name": owner if revision == 0 else f"{owner}-{digest['pod-template-hash']}",
            "labels": labels | digest,
        }
        template = {"metadata": {"labels": labels | digest}, "spec": body["spec"]}
        spec = {"replicas": 0 if revision else replicas, "selector": {"matchLabels": digest}, "template": template}
        sets.append((namespace, {"metadata": metadata, "spec": spec}))
    return sets


def small_pod(workload: int, index: int, on_node: str, owner_uid: str) -> tuple[str, Json, Json]:
    """Return a pod with as few fields as the API server accepts."""
    namespace, body, _ = pod(workload, index, on_node, owner_uid)
    containers = [{field: one[field] for field in ("name", "image")} for one in body["spec"]["containers"][:1]]
    body["spec"] = body["spec"] | {"containers": containers, "enableServiceLinks": False}
    del body["spec"]["volumes"]
    body["spec"]["automountServiceAccountToken"] = False
    return namespace, body, pod_status(containers)


def pod(workload: int, index: int, on_node: str, owner_uid: str = "") -> tuple[str, Json, Json]:
    """Return namespace, body and status of a pod of a Deployment. With grace 0, an eviction removes it at once."""
    owner = owner_name(workload)
    app, digest = owner[:6], owner[7:]
    containers = [container(app, number) for number in range(1 + workload % 2)]
    body = {
        "metadata": {
            "name": pod_name(workload, index),
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/part-of": f"product-{workload % 5}",
                "app.kubernetes.io/version": f"1.{workload}.0",
                "tier": ("web", "worker", "cache")[workload % 3],
                "pod-template-hash": digest,
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "checksum/config": digest * 8,
                **({"taintwarden.io/tolerations": EXTENDED} if workload % 12 == 0 else {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": owner_uid or str(uuid5(NAMESPACE_DNS, owner)),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": on_node,
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "tolerations": TOLERATION_SETS[workload % len(TOLERATION_SETS)],
            "volumes": [{"name": "config", "configMap": {"name": app}}],
        },
    }
    return namespace_name(workload % NAMESPACES), body, pod_status(containers)


def container(app: str, number: int) -> Json:
    """Return a container with environment, resources, probes and a volume."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080 + number}, "periodSeconds": 10}
    return {
        "name": ("main", "sidecar")[number],
        "image": f"registry.example/{app}:{number}",
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}-of-{app}"} for each in range(6)],
        "ports": [{"containerPort": 8080 + number}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    }


def pod_status(containers: list[Json]) -> Json:
    """Return the status of a Running and Ready pod as a kubelet reports it."""
    kinds = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": STARTED_AT,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": STARTED_AT} for kind in kinds],
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": f"{each['image']}@sha256:{'0' * 64}",
                "containerID": f"containerd://{'0' * 64}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": STARTED_AT}},
            }
            for each in containers
        ],
    }
