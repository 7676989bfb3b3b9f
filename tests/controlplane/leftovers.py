"""What tests leave on a cluster that goes on living after them: found by comparison, removed, and told."""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.client import ApiError, Json
from controlplane.cluster import Cluster

LEASE = ("leases", "taintwarden", "taintwarden-system")
# In this order: what would make more of the others goes first.
RESOURCES = (
    "taintevictionpolicies",
    "tolerationprofiles",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "clusterrolebindings",
    "clusterroles",
    "priorityclasses",
    "namespaces",
    "nodes",
)


class LeftoversError(Exception):
    """Tests did not clear up behind themselves. It is done now."""


@contextmanager
def nothing_left(cluster: Cluster) -> Iterator[None]:
    """Remove what is there afterwards and was not before, and the Lease of operators that are gone.

    Raises:
        LeftoversError: something was to be removed.

    """
    before = {resource: set(present(cluster, resource)) for resource in RESOURCES}
    try:
        yield
    finally:
        left = [
            (resource, name)
            for resource in RESOURCES
            for name in present(cluster, resource)
            if name not in before[resource]
        ]
        for resource, name in left:
            remove(cluster, resource, name)
        if cluster.find(*LEASE):
            cluster.delete(*LEASE)
    if left:
        raise LeftoversError(", ".join(f"{resource}/{name}" for resource, name in left))


def present(cluster: Cluster, resource: str) -> list[str]:
    """The names of what is there to stay. A node with a kubelet is nobody's leftover."""
    try:
        found: list[Json] = cluster.items(resource)
    except ApiError as error:
        if error.status == 404:  # its definition is not there
            return []
        raise
    return [
        one["metadata"]["name"]
        for one in found
        if "deletionTimestamp" not in one["metadata"]
        and not one.get("status", {}).get("nodeInfo", {}).get("kubeletVersion")
    ]


def remove(cluster: Cluster, resource: str, name: str) -> None:
    if resource == "namespaces":
        cluster.remove_namespace(name)
    elif cluster.find(resource, name):
        cluster.delete(resource, name)
