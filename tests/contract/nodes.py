"""Nodes: taints."""

from typing import Any

from contract.api import MERGE, Answer, Api, unique


async def _try(api: Api, *taints: Any) -> Answer:
    node = await api.new_node()
    patch = {"spec": {"taints": list(taints)}}
    return await api.request("PATCH", f"/api/v1/nodes/{node['metadata']['name']}", patch, content_type=MERGE)


async def a_new_node_is_not_ready(api: Api) -> None:
    node = await api.new_node(taints=[{"key": "sla", "value": "980", "effect": "NoExecute"}])
    assert [(one["key"], one["effect"]) for one in node["spec"]["taints"]] == [
        ("sla", "NoExecute"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
    ]


async def a_new_node_may_bring_its_status(api: Api) -> None:
    body = {"metadata": {"name": unique("node")}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    node = await api.create("/api/v1/nodes", body)
    assert node["status"]["conditions"][0]["type"] == "Ready"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


async def a_node_is_gone_with_a_status(api: Api) -> None:
    node = await api.new_node()
    answer = await api.ok("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    assert (answer["status"], answer["details"]["kind"]) == ("Success", "nodes")


async def taints_keep_what_they_are_given(api: Api) -> None:
    taint = {"key": "sla", "value": "980", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    plain = {"key": "plain", "effect": "NoSchedule"}
    answer = await _try(api, taint, plain)
    assert answer.status == 200
    assert answer.body["spec"]["taints"] == [taint, plain]


async def bad_taints_are_refused(api: Api) -> None:
    cases = [
        ({"key": "sla", "value": "not valid!", "effect": "NoExecute"}, "value"),
        ({"key": "sla", "value": "1.2.3+build", "effect": "NoExecute"}, "value"),
        ({"key": "sla", "value": "x" * 64, "effect": "NoExecute"}, "value"),
        ({"key": "sla", "value": "1"}, "effect"),
        ({"key": "sla", "effect": "Never"}, "effect"),
        ({"key": "", "effect": "NoExecute"}, "key"),
        ({"key": "a/b/c", "effect": "NoExecute"}, "key"),
    ]
    for taint, field in cases:
        answer = await _try(api, taint)
        assert (answer.status, answer.reason) == (422, "Invalid"), (taint, answer)
        assert answer.causes[0]["field"] == f"metadata.taints[0].{field}", (taint, answer)


async def taints_are_unique_by_key_and_effect(api: Api) -> None:
    first = {"key": "sla", "value": "1", "effect": "NoExecute"}
    answer = await _try(api, first, {**first, "value": "2"})
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.taints[1]")
    assert "taints must be unique by key and effect pair" in answer.message
    assert (await _try(api, first, {**first, "effect": "NoSchedule"})).status == 200


async def a_bad_time_is_refused(api: Api) -> None:
    answer = await _try(api, {"key": "sla", "effect": "NoExecute", "timeAdded": "yesterday"})
    assert (answer.status, answer.reason, answer.causes[0]["field"]) == (422, "Invalid", "patch")
