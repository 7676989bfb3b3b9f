"""The few calls about one node and about policies, by script and against an API server."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube import wire
from kube.scripted import ScriptedClient, foreign_404, refusal, standing
from localcluster import LocalCluster
from taintwarden.engine.commands import SaveCondition, SaveHistory
from taintwarden.engine.model import NodeCondition, StoredPod
from taintwarden.kube.calls.node_calls import HISTORY_ANNOTATION, read_node, read_pods, save_condition, save_history
from taintwarden.kube.calls.own_kinds import (
    GUARD_RESET_ANNOTATION,
    POLICIES,
    PROFILES,
    EarlierTermError,
    check_definition,
    clear_guard_reset,
    patch_status,
    save_record,
)
from taintwarden.kube.errors import ApiError, Fenced, KubeError, MissingDefinitionError

DEFINITION = yaml.safe_load((Path(__file__).parents[2] / "crds" / "taintevictionpolicies.yaml").read_text())


def history(uid: str, text: str, version: int = -1) -> SaveHistory:
    return SaveHistory("n1", uid, text, version=version)


async def test_a_node_is_read_without_a_cache():
    client = ScriptedClient({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "7"}, "status": {"x": 1}})
    node = await read_node(client, "n1")
    assert node is not None
    assert (node.metadata.name, node.metadata.resource_version) == ("n1", "7")
    [call] = client.calls
    assert (call.method, call.path) == ("GET", "/api/v1/nodes/n1")
    assert "resourceVersion" not in call.params  # which would allow an old answer from a cache


async def test_a_node_that_is_gone_is_none():
    assert await read_node(ScriptedClient(refusal(404)), "n1") is None


async def test_a_node_that_cannot_be_read_is_an_error():
    with pytest.raises(ApiError):
        await read_node(ScriptedClient(refusal(500)), "n1")


MAINTENANCE = b"<html><body>back soon</body></html>"


@pytest.mark.parametrize("answer", [MAINTENANCE, b"[]", {"metadata": {"labels": ["no", "map"]}}, {"metadata": None}])
async def test_a_node_that_does_not_decode_is_a_kube_error(answer):
    """Callers of read_node catch KubeError; any other error would end the operator."""
    with pytest.raises(KubeError):
        await read_node(ScriptedClient(answer), "n1")


async def test_a_history_is_applied_with_the_uid_and_by_one_owner():
    client = ScriptedClient({})
    await save_history(client, history("uid-n1", "text"), standing)
    [call] = client.calls
    assert (call.method, call.path) == ("PATCH", "/api/v1/nodes/n1")
    assert call.content_type == "application/apply-patch+yaml"
    assert call.params == {"fieldManager": "taintwarden", "force": "true"}
    assert call.body == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "uid": "uid-n1", "annotations": {HISTORY_ANNOTATION: "text"}},
    }


DRAINED = NodeCondition("True", "Drained", "no pod has to leave or leaves")


def condition(said: NodeCondition | None = DRAINED, *, changes_status: bool = True) -> SaveCondition:
    return SaveCondition("n1", "uid-n1", said, 7, 1_700_000_000.5, changes_status)


@pytest.mark.parametrize(
    ("order", "times"),
    [
        (condition(), {"lastHeartbeatTime", "lastTransitionTime"}),
        (condition(changes_status=False), {"lastHeartbeatTime"}),
    ],
)
async def test_a_condition_is_written_for_one_version_and_its_transition_with_another_status(order, times):
    client = ScriptedClient({"metadata": {"resourceVersion": "9"}})
    assert await save_condition(client, order, standing) == 9
    [call] = client.calls
    assert (call.method, call.path) == ("PATCH", "/api/v1/nodes/n1/status")
    assert call.content_type == "application/strategic-merge-patch+json"
    assert call.body["metadata"] == {"uid": "uid-n1", "resourceVersion": "7"}
    [written] = call.body["status"]["conditions"]
    assert written == {
        "type": "taintwarden.io/Drained",
        "status": "True",
        "reason": "Drained",
        "message": "no pod has to leave or leaves",
    } | dict.fromkeys(times, "2023-11-14T22:13:20Z")


async def test_a_condition_is_removed():
    client = ScriptedClient({})
    await save_condition(client, condition(None), standing)
    [call] = client.calls
    assert call.body["status"] == {"conditions": [{"type": "taintwarden.io/Drained", "$patch": "delete"}]}


async def test_the_pods_of_a_node_are_read_without_static_and_finished_ones():
    def pod(uid: str, **metadata: Any) -> dict[str, Any]:
        return {"metadata": {"uid": uid, "resourceVersion": "5", **metadata}}

    found = [
        pod("a"),
        pod("b", deletionTimestamp="2023-11-14T22:13:20Z"),
        pod("c", annotations={"kubernetes.io/config.mirror": "x"}),
    ]
    client = ScriptedClient({"items": found})
    assert await read_pods(client, "n1") == [StoredPod("a", 5), StoredPod("b", 5, terminates=True)]
    [call] = client.calls
    selector = "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"
    assert (call.path, call.params) == ("/api/v1/pods", {"fieldSelector": selector})
    # Without their specs: two pods of a tenant could otherwise be more than is read of an answer.
    assert "as=PartialObjectMetadataList" in call.accept


async def test_a_node_without_pods_has_no_items():
    """The API server writes null for an empty list of metadata."""
    assert await read_pods(ScriptedClient({"items": None}), "n1") == []


NODE = {"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": "8"}}
ORDER = history("uid-n1", "text", 7)


async def test_writes_whose_fence_fails_are_not_sent():
    client = ScriptedClient(NODE)
    with pytest.raises(Fenced):
        await save_history(client, ORDER, lambda: False)
    assert client.calls == []


async def test_a_history_does_not_overwrite_that_of_another_leader(cluster: LocalCluster) -> None:
    metadata = stored(cluster)["metadata"]
    async with cluster.serve() as server, wire.client(server.url) as client:
        known = int(metadata["resourceVersion"])
        written = await save_history(client, history(metadata["uid"], "newer", known), standing)
        assert written > known
        with pytest.raises(ApiError) as caught:
            await save_history(client, history(metadata["uid"], "older", known), standing)
    assert caught.value.code == 409
    assert stored(cluster)["metadata"]["annotations"][HISTORY_ANNOTATION] == "newer"


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = LocalCluster()
    cluster.create("nodes", {"metadata": {"name": "n1", "annotations": {"mine": "stays"}}})
    return cluster


def stored(cluster: LocalCluster) -> dict[str, Any]:
    return cluster.store.get("nodes", "n1")


async def test_a_history_is_written_and_removed_and_nothing_else_changes(cluster: LocalCluster) -> None:
    uid = stored(cluster)["metadata"]["uid"]
    before = stored(cluster)["spec"]
    async with cluster.serve() as server, wire.client(server.url) as client:
        await save_history(client, history(uid, "text"), standing)
        assert stored(cluster)["metadata"]["annotations"] == {"mine": "stays", HISTORY_ANNOTATION: "text"}
        await save_history(client, history(uid, ""), standing)
        assert stored(cluster)["metadata"]["annotations"] == {"mine": "stays"}
    assert stored(cluster)["spec"] == before


async def test_a_namesake_of_the_node_is_not_written(cluster: LocalCluster) -> None:
    async with cluster.serve() as server, wire.client(server.url) as client:
        with pytest.raises(ApiError) as caught:
            await save_history(client, history("uid-of-another", "text"), standing)
    assert caught.value.is_object_gone
    assert HISTORY_ANNOTATION not in stored(cluster)["metadata"]["annotations"]


@pytest.mark.parametrize("resource", [POLICIES, PROFILES])
async def test_a_definition_is_checked_by_a_list_of_one_object(resource):
    client = ScriptedClient({"metadata": {"resourceVersion": "42"}, "items": [{"metadata": {"name": "p"}}]})
    await check_definition(client, resource)
    [call] = client.calls
    assert (call.path, call.params) == (resource.path, {"limit": "1"})


@pytest.mark.parametrize("resource", [POLICIES, PROFILES])
async def test_a_missing_definition_is_an_error_with_the_remedy(resource):
    with pytest.raises(MissingDefinitionError, match=rf"{resource.definition} .*: kubectl apply -f crds/"):
        await check_definition(ScriptedClient(refusal(404, "404 page not found")), resource)


@pytest.mark.parametrize("error", [refusal(403), foreign_404()], ids=["403", "of a load balancer"])
async def test_a_kind_that_is_refused_is_an_error(error):
    with pytest.raises(ApiError, match=str(error.code)):
        await check_definition(ScriptedClient(error), POLICIES)


async def test_the_status_of_a_profile_is_merged_in_its_namespace():
    client = ScriptedClient({})
    await patch_status(client, PROFILES, "shop/p", {"matchedPods": 1}, fence=standing)
    [call] = client.calls
    assert call.path == "/apis/taintwarden.io/v1alpha1/namespaces/shop/tolerationprofiles/p/status"
    assert (call.method, call.body) == ("PATCH", {"status": {"matchedPods": 1}})


STORED = {"metadata": {"name": "p", "uid": "uid-p", "resourceVersion": "7", "labels": {}}, "spec": {}}


async def test_the_guard_of_a_namesake_is_not_written():
    client = ScriptedClient(STORED)
    assert not await save_record(client, "p", "uid-of-another", {"term": 1}, standing)
    assert client.paths("PATCH") == []


async def test_a_guard_does_not_overwrite_that_of_a_later_term():
    """The write of a leader may hang until another one leads."""
    client = ScriptedClient(STORED | {"status": {"guard": {"term": 8}}})
    with pytest.raises(EarlierTermError) as raised:
        await save_record(client, "p", "uid-p", {"open": False, "term": 7}, standing)
    assert raised.value.stored == 8
    assert client.paths("PATCH") == []


@pytest.mark.parametrize("guard", [{"term": "8"}, {"term": None}, {"term": [1]}, "armed", []])
async def test_a_stored_guard_of_other_types_is_overwritten(guard):
    """A conversion webhook, or the definition of another version, may store anything."""
    client = ScriptedClient(STORED | {"status": {"guard": guard}}, {"status": {"guard": {"term": 7}}})
    assert await save_record(client, "p", "uid-p", {"term": 7}, standing) == ()


async def test_a_guard_whose_fence_fails_after_the_read_is_not_written():
    client = ScriptedClient(STORED, {})
    with pytest.raises(Fenced):
        await save_record(client, "p", "uid-p", {"term": 1}, lambda: not client.calls)
    assert client.paths("PATCH") == []


@pytest.mark.parametrize("answers", [(refusal(404),), (STORED, refusal(404))])
async def test_the_guard_of_a_policy_that_is_gone_is_no_error(answers):
    assert not await save_record(ScriptedClient(*answers), "p", "uid-p", {"term": 1}, standing)


@pytest.mark.parametrize(
    "answers",
    [(refusal(403),), (foreign_404(),), (STORED, refusal(409)), (STORED, foreign_404()), (STORED, refusal(500))],
)
async def test_a_guard_that_is_not_written_is_an_error(answers):
    with pytest.raises(ApiError):
        await save_record(ScriptedClient(*answers), "p", "uid-p", {"term": 1}, standing)


@pytest.mark.parametrize("answer", [MAINTENANCE, b"[]", {"metadata": {}}, {"metadata": {"uid": 1}}])
async def test_a_policy_that_does_not_decode_is_a_kube_error(answer):
    with pytest.raises(KubeError):
        await save_record(ScriptedClient(answer), "p", "uid-p", {"term": 1}, standing)


@pytest.fixture
def with_policy() -> LocalCluster:
    cluster = LocalCluster()
    cluster.create("customresourcedefinitions", copy.deepcopy(DEFINITION))
    annotations = {GUARD_RESET_ANNOTATION: "1", "mine": "stays"}
    spec = {"taints": [{"key": "sla"}]}
    cluster.create("taintevictionpolicies", {"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
    return cluster


def policy_of(cluster: LocalCluster) -> dict[str, Any]:
    return cluster.store.get("taintevictionpolicies", "p")


async def test_a_guard_is_written_without_a_change_of_the_rest_of_the_status(with_policy: LocalCluster) -> None:
    uid = policy_of(with_policy)["metadata"]["uid"]
    async with with_policy.serve() as server, wire.client(server.url) as client:
        await patch_status(client, POLICIES, "p", {"pending": 3}, fence=standing)
        guard = {"trippedAt": "2026-01-01T00:00:00Z", "cause": "x", "evicted": [], "term": 1, "population": 0}
        assert await save_record(client, "p", uid, guard, standing) == ()
        assert policy_of(with_policy)["status"] == {
            "pending": 3,
            "guard": guard,
        }
        await patch_status(client, POLICIES, "p", {"pending": 4}, fence=standing)
        assert await save_record(client, "p", uid, {"trippedAt": None, "cause": None, "term": 1}, standing) == ()
    assert policy_of(with_policy)["status"] == {"pending": 4, "guard": {"evicted": [], "term": 1, "population": 0}}


@pytest.mark.parametrize(("stored", "pruned"), [({"population": 7}, ()), ({}, ("population",))])
async def test_fields_that_the_definition_does_not_know_yet_are_named(stored, pruned):
    sent = {"term": 1, "reserved": [], "population": 7, "cause": None}
    answer = STORED | {"status": {"guard": {"term": 1, "reserved": []} | stored}}
    assert await save_record(ScriptedClient(STORED, answer), "p", "uid-p", sent, standing) == pruned


@pytest.mark.parametrize(
    "guard", [None, {"term": 1}, {"term": 1, "reserved": [1]}, {"term": 1, "reserved": [], "cause": "x"}]
)
async def test_a_record_that_is_not_stored_as_it_was_sent_is_an_error(guard):
    answer = STORED | {"status": {"guard": guard}}
    with pytest.raises(KubeError, match=r"does not store status\.guard\.\w+ as it was sent"):
        await save_record(
            ScriptedClient(STORED, answer), "p", "uid-p", {"term": 1, "reserved": [], "cause": None}, standing
        )


async def test_a_guard_conflicts_with_a_write_since_its_read(with_policy: LocalCluster) -> None:
    uid = policy_of(with_policy)["metadata"]["uid"]
    async with with_policy.serve() as server, wire.client(server.url) as client:
        read_before = await client.request("GET", f"{POLICIES.path}/p")
        await patch_status(client, POLICIES, "p", {"pending": 3}, fence=standing)
        behind = ScriptedClient(
            read_before,
            lambda call: client.request(call.method, call.path, body=call.body, content_type=call.content_type),
        )
        with pytest.raises(ApiError) as caught:
            await save_record(behind, "p", uid, {"term": 1}, standing)
    assert caught.value.code == 409
    assert "guard" not in policy_of(with_policy)["status"]


async def test_a_reset_is_removed_once_and_nothing_else_changes(with_policy: LocalCluster) -> None:
    before = policy_of(with_policy)
    async with with_policy.serve() as server, wire.client(server.url) as client:
        assert await clear_guard_reset(client, "p", before["metadata"]["uid"], standing)
        after = policy_of(with_policy)
        assert after["metadata"]["annotations"] == {"mine": "stays"}
        assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
        assert not await clear_guard_reset(client, "p", before["metadata"]["uid"], standing)
        assert policy_of(with_policy)["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


async def test_a_reset_of_a_namesake_stays(with_policy: LocalCluster) -> None:
    async with with_policy.serve() as server, wire.client(server.url) as client:
        assert not await clear_guard_reset(client, "p", "uid-of-another", standing)
    assert policy_of(with_policy)["metadata"]["annotations"][GUARD_RESET_ANNOTATION] == "1"
