"""Server-side apply: owning, giving up, conflicts."""

from typing import Any

from contract.api import APPLY, MERGE, Api, condition_of, unique

KEY = "taintwarden.io/contract"


def _config(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


async def _apply(api: Api, name: str, annotations: dict[str, str], manager: str, **query: Any) -> Any:
    path = f"/api/v1/nodes/{name}"
    return await api.request(
        "PATCH", path, _config(name, annotations), content_type=APPLY, fieldManager=manager, **query
    )


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


async def another_applier_conflicts(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    answer = await _apply(api, name, {KEY: "2"}, "b")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == f'Apply failed with 1 conflict: conflict with "a": .metadata.annotations.{KEY}'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "a"',
        "field": f".metadata.annotations.{KEY}",
    }
    assert answer.causes == [cause]


async def force_takes_the_field(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    answer = await _apply(api, name, {KEY: "2"}, "b", force="true")
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


async def an_updater_conflicts_too(api: Api) -> None:
    name = (await api.new_node(labels={"tracked": "yes"}))["metadata"]["name"]
    patch = {"metadata": {"annotations": {KEY: "1"}}}
    await api.ok("PATCH", f"/api/v1/nodes/{name}", patch, content_type=MERGE, fieldManager="someone")
    answer = await _apply(api, name, {KEY: "2"}, "a")
    assert answer.status == 409
    assert answer.message.startswith('Apply failed with 1 conflict: conflict with "someone" using v1')


async def what_was_there_before_the_first_apply_conflicts(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    patch = {"metadata": {"annotations": {KEY: "1"}}}
    await api.ok("PATCH", f"/api/v1/nodes/{name}", patch, content_type=MERGE, fieldManager="someone")
    answer = await _apply(api, name, {KEY: "2"}, "a")
    assert answer.status == 409
    who = 'conflict with "before-first-apply" using v1'
    assert answer.message == f"Apply failed with 1 conflict: {who}: .metadata.annotations.{KEY}"
    shared = await _apply(api, name, {KEY: "1"}, "a")
    assert shared.status == 200
    assert [one["manager"] for one in shared.body["metadata"]["managedFields"]] == ["a", "before-first-apply"]


async def an_update_takes_an_applied_field(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    await _apply(api, name, {KEY: "1"}, "a")
    patch = {"metadata": {"annotations": {KEY: "2"}}}
    node = await api.ok("PATCH", f"/api/v1/nodes/{name}", patch, content_type=MERGE, fieldManager="someone")
    assert _owned(node, "a") is None
    answer = await _apply(api, name, {KEY: "3"}, "a")
    assert answer.status == 409


async def applying_again_is_no_revision(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    first = await _apply(api, name, {KEY: "1"}, "a")
    second = await _apply(api, name, {KEY: "1"}, "a")
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


async def an_absent_object_is_created(api: Api) -> None:
    name = unique("node")
    answer = await _apply(api, name, {KEY: "1"}, "a")
    assert answer.status == 201
    assert answer.body["metadata"]["annotations"] == {KEY: "1"}
    assert _owned(answer.body, "a")


async def a_manager_is_required(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", _config(name, {}), content_type=APPLY)
    assert answer.status == 422
    assert "fieldManager" in answer.message


async def the_kind_is_required(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = {"metadata": {"name": name}}
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=APPLY, fieldManager="a")
    assert answer.status == 400


async def another_uid_is_refused(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = _config(name, {KEY: "1"})
    body["metadata"]["uid"] = "other"
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=APPLY, fieldManager="a")
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.uid")
    body["metadata"]["name"] = unique("node")
    path = f"/api/v1/nodes/{body['metadata']['name']}"
    answer = await api.request("PATCH", path, body, content_type=APPLY, fieldManager="a")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "no existing object was found" in answer.message


async def another_revision_is_a_conflict(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = _config(name, {KEY: "1"})
    body["metadata"]["resourceVersion"] = "1"
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=APPLY, fieldManager="a")
    assert (answer.status, answer.reason) == (409, "Conflict")


async def managed_fields_must_not_be_applied(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    body = _config(name, {})
    body["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]
    answer = await api.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=APPLY, fieldManager="a")
    assert (answer.status, answer.message) == (400, "metadata.managedFields must be nil")


async def list_items_are_found_by_key(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]
    path = f"/api/v1/nodes/{name}/status"

    async def condition(kind: str, manager: str) -> Any:
        body = _config(name, {})
        del body["metadata"]["annotations"]
        body["status"] = {"conditions": [{"type": kind, "status": "True"}]}
        return await api.ok("PATCH", path, body, content_type=APPLY, fieldManager=manager)

    await condition("One", "a")
    node = await condition("Two", "b")
    assert [one["type"] for one in node["status"]["conditions"]] == ["One", "Two"]
    node = await condition("Three", "b")
    assert [one["type"] for one in node["status"]["conditions"]] == ["One", "Three"]


async def a_pod_condition_can_be_applied(api: Api) -> None:
    name = (await api.new_pod(node="somewhere"))["metadata"]["name"]
    await api.run(name)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Test"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": {"conditions": [condition]}}
    pod = await api.ok("PATCH", f"{api.pods}/{name}/status", body, content_type=APPLY, fieldManager="a")
    assert condition_of(pod, "DisruptionTarget")["reason"] == "Test"
    assert condition_of(pod, "Ready")["status"] == "True"
    assert pod["status"]["phase"] == "Running"
    entry = _owned(pod, "a")
    assert entry["subresource"] == "status"


async def taints_are_one_value(api: Api) -> None:
    name = (await api.new_node())["metadata"]["name"]

    async def taints(key: str, manager: str, **query: Any) -> Any:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        body["spec"] = {"taints": [{"key": key, "effect": "NoSchedule"}]}
        path = f"/api/v1/nodes/{name}"
        return await api.request("PATCH", path, body, content_type=APPLY, fieldManager=manager, **query)

    first = await taints("one", "a", force="true")
    assert [one["key"] for one in first.body["spec"]["taints"]] == ["one"]
    second = await taints("two", "b")
    assert second.status == 409
    assert second.causes[0]["field"] == ".spec.taints"
