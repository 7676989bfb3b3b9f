"""Objects that tests leave on a cluster that is used after them: found by comparison, removed, and reported."""

from collections.abc import Callable, Iterator
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
    before = snapshot(cluster)
    try:
        yield
    finally:
        left = snapshot(cluster) - before
        remove_all(cluster, left)
        if cluster.find(*LEASE):
            cluster.delete(*LEASE)
    if left:
        raise LeftoversError(", ".join(sorted(f"{resource}/{name}" for resource, name in left)))


@contextmanager
def removed_afterwards(cluster: Cluster, install: Callable[[], object]) -> Iterator[None]:
    """Remove at the end what an installation added. What it found and only changed stays as it is."""
    before = snapshot(cluster)
    install()
    added = snapshot(cluster) - before
    try:
        yield
    finally:
        remove_all(cluster, added)


def snapshot(cluster: Cluster) -> set[tuple[str, str]]:
    """Resource and name of everything that a test could leave."""
    return {(resource, name) for resource in RESOURCES for name in present(cluster, resource)}


def remove_all(cluster: Cluster, objects: set[tuple[str, str]]) -> None:
    for resource, name in sorted(objects, key=lambda one: (RESOURCES.index(one[0]), one[1])):
        remove(cluster, resource, name)


def present(cluster: Cluster, resource: str) -> list[str]:
    """Names of the objects that could be leftovers. A node with a kubelet is none."""
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
