"""What is listed and watched: collections of the API server, each with the type of its objects."""

from typing import Generic

import msgspec

from taintwarden.kube.objects import (
    BudgetObject,
    ClaimObject,
    NamespaceObject,
    NodeObject,
    Object,
    PodObject,
    VolumeObject,
    WorkloadObject,
)

PAGE_SIZE = 500
"""How many objects one page of a list has at most."""


class Resource(msgspec.Struct, Generic[Object], frozen=True):
    """What to follow: a collection's path, a server-side field selector, and the type of its objects."""

    name: str
    path: str
    type: type[Object]
    field_selector: str = ""

    @property
    def selection(self) -> dict[str, str]:
        """The parameters that a list and a watch must share to be about the same objects."""
        return {"fieldSelector": self.field_selector} if self.field_selector else {}


# Finished pods and pods without a node are none of our business: the server keeps them to itself.
PODS = Resource("pods", "/api/v1/pods", PodObject, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
NODES = Resource("nodes", "/api/v1/nodes", NodeObject)
NAMESPACES = Resource("namespaces", "/api/v1/namespaces", NamespaceObject)
REPLICA_SETS = Resource("replicasets", "/apis/apps/v1/replicasets", WorkloadObject)
STATEFUL_SETS = Resource("statefulsets", "/apis/apps/v1/statefulsets", WorkloadObject)
DAEMON_SETS = Resource("daemonsets", "/apis/apps/v1/daemonsets", WorkloadObject)
REPLICATION_CONTROLLERS = Resource("replicationcontrollers", "/api/v1/replicationcontrollers", WorkloadObject)
JOBS = Resource("jobs", "/apis/batch/v1/jobs", WorkloadObject)
BUDGETS = Resource("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", BudgetObject)
CLAIMS = Resource("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", ClaimObject)
VOLUMES = Resource("persistentvolumes", "/api/v1/persistentvolumes", VolumeObject)
