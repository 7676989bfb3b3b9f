"""Collections of the API server that are listed and watched, each with the type of its objects."""

from typing import Generic

import msgspec

from taintwarden.kube.errors import ApiError
from taintwarden.kube.wire.kinds import (
    BudgetObject,
    DeploymentObject,
    NamespaceObject,
    NodeObject,
    Object,
    PodObject,
    WorkloadObject,
)


class Resource(msgspec.Struct, Generic[Object], frozen=True):
    """A collection to follow.

    Attributes:
        path: path of the collection.
        type: type of its objects.
        message: name of their message in ``protobuf_schema``; empty if they are read in JSON.
        field_selector: selects the objects to follow.
        definition: kind of a custom resource; empty for others.

    """

    name: str
    path: str
    type: type[Object]
    message: str = ""
    field_selector: str = ""
    definition: str = ""

    @property
    def missing(self) -> str:
        """Error text if the server does not serve a custom resource."""
        return f"it does not know {self.definition} (taintwarden.io/v1alpha1): kubectl apply -f crds/ first"

    def why_refused(self, error: ApiError) -> str:
        """Return the reason why the server does not list or watch it."""
        return self.missing if error.is_unserved and self.definition else str(error)

    def path_in(self, namespace: str) -> str:
        """Return the path of the objects of a namespace; without one, of the collection."""
        group, _, plural = self.path.rpartition("/")
        return f"{group}/namespaces/{namespace}/{plural}" if namespace else self.path

    @property
    def selection(self) -> dict[str, str]:
        """Parameters that a list and a watch must share to be about the same objects."""
        return {"fieldSelector": self.field_selector} if self.field_selector else {}


# Finished pods are included: a kubelet sets Succeeded or Failed when the containers have ended, while a finalizer or a
# volume may still keep the pod. Pods without a node are not requested.
PODS = Resource("pods", "/api/v1/pods", PodObject, "core.v1.Pod", "spec.nodeName!=")
NODES = Resource("nodes", "/api/v1/nodes", NodeObject, "core.v1.Node")
NAMESPACES = Resource("namespaces", "/api/v1/namespaces", NamespaceObject)
REPLICA_SETS = Resource("replicasets", "/apis/apps/v1/replicasets", WorkloadObject, "apps.v1.ReplicaSet")
STATEFUL_SETS = Resource("statefulsets", "/apis/apps/v1/statefulsets", WorkloadObject)
DAEMON_SETS = Resource("daemonsets", "/apis/apps/v1/daemonsets", WorkloadObject)
REPLICATION_CONTROLLERS = Resource("replicationcontrollers", "/api/v1/replicationcontrollers", WorkloadObject)
DEPLOYMENTS = Resource("deployments", "/apis/apps/v1/deployments", DeploymentObject)
JOBS = Resource("jobs", "/apis/batch/v1/jobs", WorkloadObject)
CONTROLLERS: tuple[Resource[WorkloadObject], ...] = (
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    REPLICATION_CONTROLLERS,
    JOBS,
)
"""Controllers of pods. Limits read how many replicas they want."""
BUDGETS = Resource("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", BudgetObject)
