"""Server-side apply of annotations: owning, taking, giving up."""

from typing import Any

from contract.api import APPLY, MERGE, Answer, Api, unique

KEY = "taintwarden.io/contract"


def _config(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


async def _send(api: Api, name: str, config: dict[str, Any], manager: str) -> Answer:
    path, owner = f"/api/v1/nodes/{name}", {"fieldManager": manager, "force": "true"}
    return await api.request("PATCH", path, config, content_type=APPLY, **owner)


async def _apply(api: Api, name: str, annotations: dict[str, str], manager: str) -> Answer:
    return await _send(api, name, _config(name, annotations), manager)


def _owned(node: Any, manager: str) -> Any:
    entries = node["metadata"].get("managedFields", ())
    return next((one for one in entries if (one["manager"], one["operation"]) == (manager, "Apply")), None)


async def what_is_applied_is_owned(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    answer = await _apply(api, name, {KEY: "1"}, "a")
    assert answer.status == 200, answer
    assert answer.body["metadata"]["annotations"][KEY] == "1"
    entry = _owned(answer.body, "a")
    assert entry["fieldsV1"] == {"f:metadata": {"f:annotations": {f"f:{KEY}": {}}}}
    assert entry["fieldsType"] == "FieldsV1"


async def what_is_no_longer_applied_is_removed(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1", "other": "x"}, "a")
    answer = await _apply(api, name, {KEY: "1"}, "a")
    assert answer.body["metadata"]["annotations"] == {KEY: "1"}
    answer = await _apply(api, name, {}, "a")
    assert KEY not in answer.body["metadata"].get("annotations", {})


async def fields_of_others_stay(api: Api) -> None:
    node = await api.new_node()
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    await api.ok("PATCH", path, {"metadata": {"annotations": {"theirs": "1"}}}, content_type=MERGE)
    await _apply(api, node["metadata"]["name"], {KEY: "1"}, "a")
    answer = await _apply(api, node["metadata"]["name"], {}, "a")
    assert answer.body["metadata"]["annotations"] == {"theirs": "1"}


async def force_takes_the_field(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    answer = await _apply(api, name, {KEY: "2"}, "b")
    assert answer.status == 200
    assert answer.body["metadata"]["annotations"][KEY] == "2"
    assert _owned(answer.body, "a") is None
    assert _owned(answer.body, "b")


async def the_same_value_is_shared(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    answer = await _apply(api, name, {KEY: "1"}, "b")
    assert answer.status == 200
    assert _owned(answer.body, "a")
    answer = await _apply(api, name, {}, "a")
    assert answer.body["metadata"]["annotations"] == {KEY: "1"}


async def an_update_takes_an_applied_field(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    patch = {"metadata": {"annotations": {KEY: "2"}}}
    node = await api.ok("PATCH", f"/api/v1/nodes/{name}", patch, content_type=MERGE, fieldManager="someone")
    assert _owned(node, "a") is None
    answer = await _apply(api, name, {}, "a")
    assert answer.body["metadata"]["annotations"] == {KEY: "2"}


async def applying_again_is_no_revision(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    first = await _apply(api, name, {KEY: "1"}, "a")
    second = await _apply(api, name, {KEY: "1"}, "a")
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


async def a_manager_is_required(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", _config(name, {}), content_type=APPLY, force="true")
    assert answer.status == 422
    assert "fieldManager" in answer.message


async def the_kind_is_required(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    answer = await _send(api, name, {"metadata": {"name": name}}, "a")
    assert answer.status == 400


async def another_uid_is_refused(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = _config(name, {KEY: "1"})
    body["metadata"]["uid"] = "other"
    answer = await _send(api, name, body, "a")
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.uid")
    body["metadata"]["name"] = unique("node")
    answer = await _send(api, body["metadata"]["name"], body, "a")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "no existing object was found" in answer.message


async def another_revision_is_a_conflict(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = _config(name, {KEY: "1"})
    body["metadata"]["resourceVersion"] = "1"
    answer = await _send(api, name, body, "a")
    assert (answer.status, answer.reason) == (409, "Conflict")
