"""The cluster of the demo, without the operator: what is in it, who replaces whom, and what the observer notes."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from localcluster import LocalCluster
from patience import until
from taintwarden_demo.definitions import MissingDefinitionsError, shipped_definitions
from taintwarden_demo.observer import Observer
from taintwarden_demo.replicas import Replicas
from taintwarden_demo.scenario import Scenario
from taintwarden_demo.world import build_world, set_value


@pytest.fixture
def cluster(scenario: Scenario) -> LocalCluster:
    cluster = LocalCluster(comparison_operators=True, kubelet=True, disruption=True, termination_seconds=0.01)
    build_world(cluster, scenario, shipped_definitions())
    return cluster


@pytest.fixture
async def observer(cluster: LocalCluster, scenario: Scenario) -> AsyncIterator[Observer]:
    """Watching the served cluster, with replacements that start fast."""
    async with cluster.serve():
        observer = Observer(cluster.store, scenario, hold_seconds=0.0)
        replicas = Replicas(cluster, scenario, start_seconds=0.01)
        await until(lambda: observer.is_calm)
        observer.begin()
        yield observer
        replicas.stop()
        observer.close()


def pod_of(cluster: LocalCluster, workload: str, node: str) -> str:
    return next(
        pod["metadata"]["name"]
        for pod in cluster.store.list("pods", "shop")
        if (pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]) == (workload, node)
    )


def create_event(cluster: LocalCluster, reason: str, note: str, kind: str, name: str, namespace: str = "") -> None:
    resource = "pods" if kind == "Pod" else "nodes"
    uid = cluster.store.get(resource, name, namespace)["metadata"]["uid"]
    subject = {"kind": kind, "name": name, "uid": uid, "namespace": namespace}
    place = {"name": f"{name}.1", "namespace": namespace or "default"}
    cluster.store.create("events", {"metadata": place, "reason": reason, "message": note, "involvedObject": subject})


def test_the_policy_is_in_the_cluster_with_its_defaults(cluster: LocalCluster) -> None:
    spec = cluster.store.get("taintevictionpolicies", "sla")["spec"]
    assert (spec["mode"], spec["timing"]["onInvalidValue"]) == ("Enforce", "Hold")


def test_every_pod_has_a_controller_that_wants_as_many(cluster: LocalCluster) -> None:
    wanted = {one["metadata"]["uid"]: one["spec"]["replicas"] for one in cluster.store.list("replicasets")}
    for one in cluster.store.list("daemonsets"):
        wanted[one["metadata"]["uid"]] = one["status"]["desiredNumberScheduled"]
    owners = [pod["metadata"]["ownerReferences"][0]["uid"] for pod in cluster.store.list("pods", "shop")]
    assert Counter(owners) == wanted


async def test_an_evicted_pod_is_replaced_where_it_may_stay(cluster: LocalCluster, observer: Observer) -> None:
    set_value(cluster, "a1", "890")
    name = pod_of(cluster, "payments", "a1")
    cluster.evict(name, "shop")
    await until(lambda: observer.is_calm and name not in {pod.name for pod in observer.pods.values()})
    payments = [pod for pod in observer.pods.values() if pod.workload == "payments"]
    (new,) = [pod for pod in payments if pod.replaces]
    assert len(payments) == 6
    assert observer.values[new.node] in {"980", "985", "990"}
    (gone,) = observer.facts.departures
    assert (gone.pod, gone.node, gone.evicted) == (name, "a1", True)
    assert ("a1", "890") in observer.facts.changed_at


async def test_a_deletion_is_no_eviction(cluster: LocalCluster, observer: Observer) -> None:
    cluster.delete("pods", pod_of(cluster, "reports", "a1"), "shop", grace_seconds=0)
    cluster.delete("pods", pod_of(cluster, "agent", "a1"), "shop")
    assert [(one.workload, one.evicted) for one in observer.facts.departures] == [("reports", False), ("agent", False)]


async def test_the_fewest_ready_pods_are_remembered(cluster: LocalCluster, observer: Observer) -> None:
    assert observer.facts.fewest_ready == {"checkout": 6}
    cluster.delete("pods", pod_of(cluster, "checkout", "a1"), "shop")
    cluster.delete("pods", pod_of(cluster, "checkout", "b2"), "shop")
    await until(lambda: observer.is_calm)
    assert observer.facts.fewest_ready == {"checkout": 4}


async def test_events_of_a_pod_become_lines(cluster: LocalCluster, observer: Observer) -> None:
    name = pod_of(cluster, "payments", "a1")
    view = next(pod for pod in observer.pods.values() if pod.name == name)
    note = (
        "Will be evicted from a1 at 2030-01-01T00:00:05Z: taint sla=940:NoExecute is not tolerated "
        "(sla Gt '950':NoExecute does not hold), 5 s of grace (policy sla)"
    )
    create_event(cluster, "EvictionScheduled", note, "Pod", name, "shop")
    assert view.due_at == 1893456005.0
    assert view.why == "must leave in 5 s: sla=940, but sla Gt '950' does not hold"
    (line,) = observer.take_lines()
    assert (line.node, line.workload, line.text) == ("a1", "payments", view.why)


async def test_evictions_of_several_pods_become_one_line(cluster: LocalCluster, observer: Observer) -> None:
    for _ in range(2):
        cluster.evict(pod_of(cluster, "payments", "b1"), "shop")
        await until(lambda: observer.is_calm)
    (line,) = [line for line in observer.take_lines() if line.kind == "left"]
    assert (line.pods, line.workload, line.node, line.text) == (2, "payments", "b1", "evicted")


async def test_an_event_of_a_node_is_observed(cluster: LocalCluster, observer: Observer) -> None:
    create_event(cluster, "InvalidTaintValue", "The value of taint sla=high:NoExecute cannot be compared", "Node", "c1")
    (said,) = observer.facts.events_of("InvalidTaintValue", "c1")
    assert "high" in said.note


def test_definitions_that_are_nowhere_are_an_error_with_the_places(tmp_path: Path) -> None:
    with pytest.raises(MissingDefinitionsError, match=str(tmp_path)):
        shipped_definitions([tmp_path, tmp_path / "crds"])


def test_definitions_of_the_first_place_count(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Kustomization\n---\nkind: CustomResourceDefinition\n")
    assert shipped_definitions([tmp_path / "none", tmp_path]) == [{"kind": "CustomResourceDefinition"}]


@pytest.mark.parametrize("labels", [{"run": "mine"}, {"app": "web"}])
async def test_a_pod_of_a_user_is_created_and_deleted(
    cluster: LocalCluster, observer: Observer, labels: dict[str, str]
) -> None:
    metadata = {"name": "mine", "namespace": "shop", "labels": labels}
    cluster.create("pods", {"metadata": metadata, "spec": {"containers": [{"name": "x", "image": "x"}]}})
    assert ("mine" in [one.name for one in observer.pods.values()]) == ("app" in labels)
    cluster.delete("pods", "mine", "shop")
    await until(lambda: "mine" not in [one["metadata"]["name"] for one in cluster.store.list("pods", "shop")])
