"""The sources of a snapshot, each read separately, and the identity of objects that cannot be decoded."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from taintwarden.kube.wire.resources import BUDGETS, CONTROLLERS, NAMESPACES, NODES, PODS
from taintwarden_devices.objects import CLAIMS, SLICES, TAINT_RULES


class Subject(msgspec.Struct, frozen=True, order=True):
    """An object by kind, name and, where it has one, namespace."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
"""The errors of decoding an invalid object."""


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class Named(msgspec.Struct):
    """An object of any kind, with its name only."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)


def identity(kind: str, raw: bytes) -> Subject:
    """The identity of an object, as far as it can be read."""
    try:
        meta = msgspec.json.decode(raw, type=Named).metadata
    except UNREADABLE:
        return Subject(kind, "unknown")
    return Subject(kind, meta.name or "unknown", meta.namespace)


class Source(StrEnum):
    """A source of a snapshot. The values appear in messages about sources that cannot be read."""

    NODES = "nodes"
    PODS = "pods"
    NAMESPACES = "namespaces"
    BUDGETS = "poddisruptionbudgets"
    SLICES = "resourceslices"
    DEVICE_CLAIMS = "resourceclaims"
    TAINT_RULES = "devicetaintrules"
    DEPLOYMENTS = "deployments"
    STATEFUL_SETS = "statefulsets"
    DAEMON_SETS = "daemonsets"
    REPLICA_SETS = "replicasets"
    REPLICATION_CONTROLLERS = "replicationcontrollers"
    JOBS = "jobs"
    CRON_JOBS = "cronjobs"
    POLICIES = "taintevictionpolicies"
    PROFILES = "tolerationprofiles"
    MUTATING = "mutatingwebhookconfigurations"
    VALIDATING = "validatingwebhookconfigurations"
    LEASE = "the operator's lease"
    OPERATOR = "the operator's deployment"
    BUILT_IN = "the kube-controller-manager"
    EVENTS = "events"
    RIGHTS = "the operator's rights"
    INSPECTION = "the nodes and pods of policies"


class Listing(NamedTuple):
    """A collection that is read page by page; ``group`` and ``kind`` are those of its objects."""

    path: str
    group: str
    kind: str
    field_selector: str = ""


NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""Selects pods that run, or may yet."""
OBJECTS = {
    Source.NODES: Listing(NODES.path, "", "Node"),
    Source.NAMESPACES: Listing(NAMESPACES.path, "", "Namespace"),
    Source.BUDGETS: Listing(BUDGETS.path, "policy", "PodDisruptionBudget"),
    Source.PODS: Listing(PODS.path, "", "Pod", f"{PODS.field_selector},{NOT_FINISHED}"),
    Source.SLICES: Listing(SLICES.path, "resource.k8s.io", "ResourceSlice"),
    Source.DEVICE_CLAIMS: Listing(CLAIMS.path, "resource.k8s.io", "ResourceClaim"),
    Source.TAINT_RULES: Listing(TAINT_RULES.path, "resource.k8s.io", "DeviceTaintRule"),
}
_APPS, _BATCH = "/apis/apps/v1", "/apis/batch/v1"
WORKLOADS = {
    Source.DEPLOYMENTS: Listing(f"{_APPS}/deployments", "apps", "Deployment"),
    Source.STATEFUL_SETS: Listing(f"{_APPS}/statefulsets", "apps", "StatefulSet"),
    Source.DAEMON_SETS: Listing(f"{_APPS}/daemonsets", "apps", "DaemonSet"),
    Source.REPLICA_SETS: Listing(f"{_APPS}/replicasets", "apps", "ReplicaSet"),
    Source.REPLICATION_CONTROLLERS: Listing("/api/v1/replicationcontrollers", "", "ReplicationController"),
    Source.JOBS: Listing(f"{_BATCH}/jobs", "batch", "Job"),
    Source.CRON_JOBS: Listing(f"{_BATCH}/cronjobs", "batch", "CronJob"),
}
"""Kinds with a pod template."""
COUNTED = {Source(resource.name): resource for resource in CONTROLLERS}
"""Controllers of pods. Limits compare their replicas with the pods that exist."""
OWNERS = (Source.REPLICA_SETS, Source.JOBS)
"""Owners between a pod and its topmost owner; without them, findings name the direct owner."""
TEMPLATES = tuple(WORKLOADS)
EVALUATION = (Source.POLICIES, Source.PROFILES, Source.NAMESPACES, Source.NODES, Source.PODS)
"""Sources that the engine needs for the verdicts on pods."""
DEVICES = (Source.SLICES, Source.DEVICE_CLAIMS, Source.TAINT_RULES)
"""Sources that are read only if a stored policy selects taints of devices."""
REPLACING = (Source.DEPLOYMENTS, Source.REPLICA_SETS)
"""Sources that show which Deployments can replace their pods."""
FOLLOWED = (*EVALUATION, Source.BUDGETS, *COUNTED, Source.DEPLOYMENTS, *DEVICES)
"""Sources that the operator itself watches."""
