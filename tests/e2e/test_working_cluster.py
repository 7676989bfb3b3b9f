"""The ground of the tests about limits: workloads are kept full, pods placed and budgets computed, as in a cluster.

And the observer sees every moment at which a pod is missing.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane import Json, WorkingCluster, wait_until
from e2e.stories import taint, toleration

SECONDS = 60


@pytest.fixture
def ground(working_cluster: WorkingCluster) -> Iterator[str]:
    """A namespace with nodes of its name as a label: two in each of three zones."""
    name = f"ground-{uuid.uuid4().hex[:6]}"
    working_cluster.client.create_namespace(name)
    working_cluster.create_zones(name, {"a": 2, "b": 2, "c": 2}, {"ground": name}, taint("980"))
    yield name
    working_cluster.client.remove_namespace(name)
    working_cluster.client.delete_all("nodes", labelSelector=f"ground={name}")


def deploy(working_cluster: WorkingCluster, ground: str, name: str = "web", replicas: int = 3, **more: object) -> str:
    """A complete Deployment that wants nodes above 950."""
    given = {"node_selector": {"ground": ground}, "tolerations": [toleration("Gt", "950")], **more}
    workload = working_cluster.create_deployment(name, ground, replicas, **given)
    working_cluster.wait_complete(workload)
    return workload


@contextmanager
def cordoned(working_cluster: WorkingCluster, ground: str) -> Iterator[None]:
    """The scheduler puts nothing on the nodes for a while."""

    def cordon(*, on: bool) -> None:
        for node in working_cluster.client.items("nodes", labelSelector=f"ground={ground}"):
            working_cluster.client.patch("nodes", node["metadata"]["name"], {"spec": {"unschedulable": on}})

    cordon(on=True)
    yield
    cordon(on=False)


def pods(working_cluster: WorkingCluster, ground: str) -> list[Json]:
    return working_cluster.client.items("pods", ground)


def test_the_observer_counts_who_is_missing_at_once_and_tells_evictions(
    working_cluster: WorkingCluster, ground: str
) -> None:
    workload = deploy(working_cluster, ground, replicas=5)
    began = time.monotonic()
    evicted, *deleted = [pod["metadata"]["name"] for pod in pods(working_cluster, ground)[:3]]
    with cordoned(working_cluster, ground):  # none is replaced before the last is gone
        working_cluster.client.evict(evicted, ground)
        for name in deleted:
            working_cluster.client.delete("pods", name, ground)
        departures = lambda: working_cluster.availability.departures(workload, began)  # noqa: E731
        wait_until(lambda: len(departures()) == 3, SECONDS, "three to leave")
    working_cluster.wait_complete(workload)
    assert working_cluster.availability.worst(workload, began).missing == 3
    assert {left.name: left.evicted for left in departures()} == {evicted: True, **dict.fromkeys(deleted, False)}
