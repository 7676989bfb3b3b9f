"""The ground of the tests about limits: workloads are kept full, pods placed and budgets computed, as in a cluster.

And the observer sees every moment at which a pod is missing.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane import STOP_SECONDS_ANNOTATION, ApiError, Json, WorkingCluster, wait_until
from controlplane.comparisons import NOT_KNOWN, known_gates
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


def test_a_deployment_is_spread_over_the_zones(working_cluster: WorkingCluster, ground: str) -> None:
    deploy(working_cluster, ground, replicas=6)
    zones = Counter(pod["spec"]["nodeName"].rsplit("-", 2)[1] for pod in pods(working_cluster, ground))
    assert zones == {"a": 2, "b": 2, "c": 2}


def test_a_deleted_pod_is_replaced_and_ready(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground)
    began = time.monotonic()
    name = pods(working_cluster, ground)[0]["metadata"]["name"]
    working_cluster.client.delete("pods", name, ground)
    wait_until(lambda: working_cluster.availability.departures(workload, began), SECONDS, "the pod to leave")
    working_cluster.wait_complete(workload)
    wait_until(lambda: working_cluster.client.find("pods", name, ground) is None, SECONDS, "the pod to be gone")
    [left] = working_cluster.availability.departures(workload, began)
    assert (left.name, left.evicted) == (name, False)
    assert [count.available for count in working_cluster.availability.counts(workload, began)] == [3, 2, 3]


def test_all_who_are_deleted_at_once_are_missing_at_once(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground, replicas=5)
    began = time.monotonic()
    gone = [pod["metadata"]["name"] for pod in pods(working_cluster, ground)[:3]]
    with cordoned(working_cluster, ground):  # none is replaced before the last is gone
        for name in gone:
            working_cluster.client.delete("pods", name, ground)
        departures = lambda: working_cluster.availability.departures(workload, began)  # noqa: E731
        wait_until(lambda: len(departures()) == 3, SECONDS, "three to leave")
    working_cluster.wait_complete(workload)
    assert working_cluster.availability.worst(workload, began).missing == 3
    assert {left.name for left in working_cluster.availability.departures(workload, began)} == set(gone)


def test_what_was_missing_before_is_not_counted(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground)
    assert working_cluster.availability.worst(workload, 0).missing == 3
    assert working_cluster.availability.worst(workload, time.monotonic()).missing == 0


def test_an_eviction_is_told_from_a_deletion(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground)
    began = time.monotonic()
    name = pods(working_cluster, ground)[0]["metadata"]["name"]
    working_cluster.client.evict(name, ground)
    wait_until(lambda: working_cluster.availability.departures(workload, began), SECONDS, "the pod to leave")
    [left] = working_cluster.availability.departures(workload, began)
    assert (left.name, left.evicted) == (name, True)


@pytest.mark.skipif(not known_gates(), reason=f"{NOT_KNOWN}: its scheduler compares nothing")
def test_a_replacement_avoids_nodes_that_are_too_low(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground)
    good = f"{ground}-b-1"
    for node in working_cluster.client.items("nodes", labelSelector=f"ground={ground}"):
        if node["metadata"]["name"] != good:
            working_cluster.client.set_taints(node["metadata"]["name"], [taint("940")])
    for pod in pods(working_cluster, ground):
        working_cluster.client.delete("pods", pod["metadata"]["name"], ground)
    wait_until(
        lambda: {pod["spec"].get("nodeName") for pod in pods(working_cluster, ground)} == {good},
        SECONDS,
        "all to be on the one good node",
    )
    working_cluster.wait_complete(workload)


def test_nobody_but_the_operator_acts_on_a_taint(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground)
    began = time.monotonic()
    for node in working_cluster.client.items("nodes", labelSelector=f"ground={ground}"):
        working_cluster.client.set_taints(node["metadata"]["name"], [taint("940")])
    deploy(working_cluster, ground, "other", tolerations=[toleration("Exists")])  # time enough for a controller
    assert working_cluster.availability.departures(workload, began) == []


def test_a_pod_that_takes_long_to_stop_is_replaced_meanwhile(working_cluster: WorkingCluster, ground: str) -> None:
    never = {STOP_SECONDS_ANNOTATION: "3600"}
    slow = deploy(working_cluster, ground, replicas=1, annotations=never, grace_seconds=3600)
    name = pods(working_cluster, ground)[0]["metadata"]["name"]
    began = time.monotonic()
    working_cluster.client.delete("pods", name, ground)
    wait_until(lambda: working_cluster.availability.departures(slow, began), SECONDS, "the pod to leave")
    working_cluster.wait_complete(slow)
    assert working_cluster.client.find("pods", name, ground)


def test_a_pod_takes_as_long_to_stop_as_it_says(working_cluster: WorkingCluster, ground: str) -> None:
    deploy(working_cluster, ground, replicas=1, annotations={STOP_SECONDS_ANNOTATION: "2"})
    name = pods(working_cluster, ground)[0]["metadata"]["name"]
    began = time.monotonic()
    working_cluster.client.delete("pods", name, ground)
    wait_until(lambda: working_cluster.client.find("pods", name, ground) is None, SECONDS, "the pod to be gone")
    assert time.monotonic() - began >= 2


def test_a_pod_is_killed_when_its_grace_is_over(working_cluster: WorkingCluster, ground: str) -> None:
    deploy(working_cluster, ground, replicas=1, annotations={STOP_SECONDS_ANNOTATION: "60"}, grace_seconds=2)
    name = pods(working_cluster, ground)[0]["metadata"]["name"]
    working_cluster.client.delete("pods", name, ground)
    wait_until(lambda: working_cluster.client.find("pods", name, ground) is None, SECONDS, "the pod to be killed")


def test_budgets_are_computed(working_cluster: WorkingCluster, ground: str) -> None:
    workload = deploy(working_cluster, ground, replicas=4, annotations={STOP_SECONDS_ANNOTATION: "3"})
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    working_cluster.client.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, ground)
    wait_until(lambda: allowed(working_cluster, ground) == 1, SECONDS, "the budget to allow one")
    first, second = (pod["metadata"]["name"] for pod in pods(working_cluster, ground)[:2])
    with cordoned(working_cluster, ground):  # or the budget might allow the next already
        working_cluster.client.evict(first, ground)
        with pytest.raises(ApiError) as refused:
            working_cluster.client.evict(second, ground)
    assert refused.value.status == 429
    working_cluster.wait_complete(workload)
    wait_until(lambda: allowed(working_cluster, ground) == 1, SECONDS, "the budget to allow the next")


def allowed(working_cluster: WorkingCluster, ground: str) -> int:
    budget = working_cluster.client.get("poddisruptionbudgets", "web", ground)
    return budget.get("status", {}).get("disruptionsAllowed", 0)
