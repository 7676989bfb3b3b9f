"""The few calls about one node and about policies, by script and against an API server."""

from typing import Any

import pytest

from contract.api import pod as pod_body
from kube import wire
from kube.scripted import ScriptedClient, refusal
from taintwarden.kube.errors import ApiError, KubeError, MissingDefinitionError
from taintwarden.kube.nodes import HISTORY_ANNOTATION, read_node, save_history
from taintwarden.kube.policies import PATH, list_policies, patch_status
from taintwarden.localcluster import LocalCluster


async def test_a_node_is_read_afresh():
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
async def test_a_node_that_does_not_decode_is_an_error_of_this_room(answer):
    """Whoever reads a node catches this room's errors: another one would end the operator."""
    with pytest.raises(KubeError):
        await read_node(ScriptedClient(answer), "n1")


async def test_a_history_is_applied_with_the_uid_and_by_one_owner():
    client = ScriptedClient({})
    await save_history(client, "n1", "uid-n1", "text")
    [call] = client.calls
    assert (call.method, call.path) == ("PATCH", "/api/v1/nodes/n1")
    assert call.content_type == "application/apply-patch+yaml"
    assert call.params == {"fieldManager": "taintwarden", "force": "true"}
    assert call.body == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "uid": "uid-n1", "annotations": {HISTORY_ANNOTATION: "text"}},
    }


async def test_an_empty_history_names_no_annotation():
    client = ScriptedClient({})
    await save_history(client, "n1", "uid-n1", "")
    assert client.calls[0].body["metadata"] == {"name": "n1", "uid": "uid-n1"}


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = LocalCluster()
    cluster.create("nodes", {"metadata": {"name": "n1", "annotations": {"mine": "stays"}}})
    return cluster


def stored(cluster: LocalCluster) -> dict[str, Any]:
    return cluster.store.get("nodes", "n1")


async def test_a_history_comes_and_goes_and_nothing_else_changes(cluster: LocalCluster) -> None:
    uid = stored(cluster)["metadata"]["uid"]
    before = stored(cluster)["spec"]
    async with cluster.serve() as server, wire.client(server.url) as client:
        await save_history(client, "n1", uid, "text")
        assert stored(cluster)["metadata"]["annotations"] == {"mine": "stays", HISTORY_ANNOTATION: "text"}
        await save_history(client, "n1", uid, "")
        assert stored(cluster)["metadata"]["annotations"] == {"mine": "stays"}
    assert stored(cluster)["spec"] == before


async def test_a_namesake_of_the_node_is_not_written(cluster: LocalCluster) -> None:
    async with cluster.serve() as server, wire.client(server.url) as client:
        with pytest.raises(ApiError) as caught:
            await save_history(client, "n1", "uid-of-another", "text")
    assert caught.value.is_about_another
    assert HISTORY_ANNOTATION not in stored(cluster)["metadata"]["annotations"]


async def test_a_node_that_is_gone_is_not_made_anew(cluster: LocalCluster) -> None:
    cluster.delete("nodes", "n1")
    async with cluster.serve() as server, wire.client(server.url) as client:
        with pytest.raises(ApiError) as caught:
            await save_history(client, "n1", "uid-n1", "text")
    assert caught.value.is_about_another
    assert cluster.store.list("nodes") == []


async def test_a_pod_in_the_way_is_none_of_our_business(cluster: LocalCluster) -> None:
    cluster.create("pods", pod_body("a", nodeName="n1"))
    async with cluster.serve() as server, wire.client(server.url) as client:
        node = await read_node(client, "n1")
    assert node is not None
    assert node.metadata.uid == stored(cluster)["metadata"]["uid"]


async def test_policies_are_listed_with_the_version_of_the_list():
    client = ScriptedClient({"metadata": {"resourceVersion": "42"}, "items": [{"metadata": {"name": "p"}}]})
    items, version = await list_policies(client)
    assert [item["metadata"]["name"] for item in items] == ["p"]
    assert version == "42"
    assert client.paths() == [PATH]


async def test_a_cluster_without_our_definitions_says_what_to_do():
    with pytest.raises(MissingDefinitionError, match="kubectl apply -f crds/"):
        await list_policies(ScriptedClient(refusal(404, "404 page not found")))


async def test_policies_that_are_refused_are_an_error():
    with pytest.raises(ApiError, match="403"):
        await list_policies(ScriptedClient(refusal(403)))


@pytest.mark.parametrize("answer", [MAINTENANCE, b"[]", {"status": "ok"}, {"items": None, "metadata": None}])
async def test_what_is_no_list_of_policies_is_an_error_of_this_room(answer):
    with pytest.raises(KubeError):
        await list_policies(ScriptedClient(answer))


async def test_a_status_is_merged_into_the_subresource():
    client = ScriptedClient({})
    await patch_status(client, "p", {"pending": 1})
    [call] = client.calls
    assert (call.method, call.path) == ("PATCH", f"{PATH}/p/status")
    assert call.content_type == "application/merge-patch+json"
    assert call.body == {"status": {"pending": 1}}
