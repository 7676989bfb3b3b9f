"""The kubelet and the disruption controller of the package."""

import asyncio
from typing import Any

import aiohttp
import pytest

from contract.api import Api
from localcluster import ApiError, LocalCluster
from patience import until

CONTAINERS = [{"name": "c", "image": "i"}]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _pod(name: str, *, grace_seconds: int = 30, owner: str = "", node: str = "n") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {"app": "web"}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner, "controller": True}
        ]
    spec = {"containers": CONTAINERS, "terminationGracePeriodSeconds": grace_seconds, "nodeName": node}
    return {"metadata": metadata, "spec": spec}


def _budget(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


async def test_a_bound_pod_runs_and_an_unbound_one_does_not() -> None:
    cluster = LocalCluster(kubelet=True)
    async with cluster.serve():
        cluster.create("pods", _pod("bound"))
        cluster.create("pods", _pod("free", node=""))
        await until(lambda: cluster.store.get("pods", "bound", "default")["status"]["phase"] == "Running")
        conditions = cluster.store.get("pods", "bound", "default")["status"]["conditions"]
        assert ("Ready", "True") in {(one["type"], one["status"]) for one in conditions}
        assert cluster.store.get("pods", "free", "default")["status"]["phase"] == "Pending"


async def test_a_terminating_pod_ends() -> None:
    cluster = LocalCluster(kubelet=True, termination_seconds=0.01)
    async with cluster.serve():
        cluster.create("pods", _pod("a"))
        await until(lambda: cluster.store.get("pods", "a", "default")["status"]["phase"] == "Running")
        cluster.evict("a")
        assert cluster.store.get("pods", "a", "default")["metadata"]["deletionGracePeriodSeconds"] == 30
        await until(lambda: not cluster.store.list("pods"))


async def test_a_pod_of_the_same_name_is_spared() -> None:
    cluster = LocalCluster(kubelet=True, termination_seconds=0.05)
    async with cluster.serve():
        cluster.create("pods", _pod("a"))
        cluster.delete("pods", "a", "default")
        await asyncio.sleep(0)  # the kubelet has seen it, and does not end it before the next turn
        cluster.delete("pods", "a", "default", grace_seconds=0)
        second = cluster.create("pods", _pod("a"))
        cluster.create("pods", _pod("later"))
        cluster.delete("pods", "later", "default")
        await until(lambda: len(cluster.store.list("pods")) == 1)
        assert cluster.store.get("pods", "a", "default")["metadata"]["uid"] == second["metadata"]["uid"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 1}, {"disruptionsAllowed": 2, "desiredHealthy": 1, "expectedPods": 3}),
        ({"minAvailable": 3}, {"disruptionsAllowed": 0, "desiredHealthy": 3, "expectedPods": 3}),
        ({"maxUnavailable": 1}, {"disruptionsAllowed": 0, "desiredHealthy": 3, "expectedPods": 4}),
        ({"maxUnavailable": 2}, {"disruptionsAllowed": 1, "desiredHealthy": 2, "expectedPods": 4}),
    ],
)
def test_a_budget_is_computed(spec: dict[str, Any], expected: dict[str, int]) -> None:
    cluster = LocalCluster(disruption=True)
    owner = cluster.store.create("replicasets", {"metadata": {"name": "web"}, "spec": {"replicas": 4}})["metadata"][
        "uid"
    ]
    for name in "abc":
        cluster.create("pods", _pod(name, owner=owner))
        cluster.store.modify("pods", name, "default", lambda pod: pod.update(status=READY))
    budget = cluster.create("poddisruptionbudgets", _budget(**spec))
    assert cluster.disruption is not None
    cluster.disruption.sync()
    status = cluster.store.get("poddisruptionbudgets", "web", "default")["status"]
    assert {name: status[name] for name in expected} == expected
    assert status["currentHealthy"] == 3
    assert status["observedGeneration"] == budget["metadata"]["generation"]


@pytest.mark.parametrize(("owner", "spec"), [("unknown", {"maxUnavailable": 1}), ("", {"minAvailable": "50%"})])
def test_a_budget_that_is_not_counted_allows_nothing(owner: str, spec: dict[str, Any]) -> None:
    cluster = LocalCluster(disruption=True)
    cluster.create("pods", _pod("a", owner=owner))
    cluster.store.modify("pods", "a", "default", lambda pod: pod.update(status=READY))
    cluster.create("poddisruptionbudgets", _budget(**spec))
    assert cluster.disruption is not None
    cluster.disruption.sync()
    with pytest.raises(ApiError) as refused:
        cluster.evict("a")
    assert refused.value.code == 429


def test_a_budget_that_is_not_counted_any_more_allows_nothing() -> None:
    cluster = LocalCluster(disruption=True)
    assert cluster.disruption is not None
    cluster.create("pods", _pod("a"))
    cluster.store.modify("pods", "a", "default", lambda pod: pod.update(status=READY))
    cluster.create("poddisruptionbudgets", _budget(minAvailable=0))
    cluster.disruption.sync()
    assert cluster.store.get("poddisruptionbudgets", "web", "default")["status"]["disruptionsAllowed"] == 1
    percent = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "0%"}
    cluster.store.modify("poddisruptionbudgets", "web", "default", lambda one: one.update(spec=percent))
    cluster.disruption.sync()
    assert cluster.store.get("poddisruptionbudgets", "web", "default")["status"]["disruptionsAllowed"] == 0


async def test_evictions_follow_the_budget() -> None:
    cluster = LocalCluster(kubelet=True, disruption=True, termination_seconds=0.01)
    async with cluster.serve() as server, aiohttp.ClientSession() as session:
        api = Api(session, server.url, namespace="default")
        for name in "abc":
            cluster.create("pods", _pod(name))
        cluster.create("poddisruptionbudgets", _budget(minAvailable=2))

        def allowed() -> int:
            status = cluster.store.get("poddisruptionbudgets", "web", "default")["status"]
            return int(status["disruptionsAllowed"])

        await until(lambda: allowed() == 1)
        body = {"metadata": {"name": "a"}}
        assert (await api.request("POST", f"{api.pods}/a/eviction", body)).status == 201
        body = {"metadata": {"name": "b"}}
        assert (await api.request("POST", f"{api.pods}/b/eviction", body)).status == 429
        await until(lambda: len(cluster.store.list("pods")) == 2)
        cluster.create("pods", _pod("d"))
        await until(lambda: allowed() == 1)
        assert (await api.request("POST", f"{api.pods}/b/eviction", body)).status == 201
