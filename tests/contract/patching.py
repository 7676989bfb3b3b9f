"""Merge patch, strategic merge patch, JSON patch."""

from contract.api import MERGE, STRATEGIC, Api, condition_of


async def _node(api: Api) -> str:
    return f"/api/v1/nodes/{(await api.new_node())['metadata']['name']}"


async def a_merge_patch_sets_and_removes(api: Api) -> None:
    path = await _node(api)
    await api.ok("PATCH", path, {"metadata": {"annotations": {"a": "1", "b": "2"}}}, content_type=MERGE)
    node = await api.ok("PATCH", path, {"metadata": {"annotations": {"a": None, "c": "3"}}}, content_type=MERGE)
    assert node["metadata"]["annotations"] == {"b": "2", "c": "3"}


async def what_is_empty_is_left_out(api: Api) -> None:
    path = await _node(api)
    await api.ok("PATCH", path, {"metadata": {"labels": {"a": "1"}, "annotations": {"a": "1"}}}, content_type=MERGE)
    patch = {"metadata": {"labels": {"a": None}, "annotations": {}, "finalizers": []}, "spec": {"taints": []}}
    node = await api.ok("PATCH", path, patch, content_type=MERGE)
    assert "labels" not in node["metadata"]
    assert node["metadata"]["annotations"] == {"a": "1"}
    assert "finalizers" not in node["metadata"]
    assert "taints" not in node["spec"]


async def a_strategic_patch_replaces_taints(api: Api) -> None:
    path = await _node(api)
    first = [{"key": "a", "value": "1", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}]
    await api.ok("PATCH", path, {"spec": {"taints": first}}, content_type=STRATEGIC)
    second = [{"key": "a", "value": "2", "effect": "NoExecute"}]
    node = await api.ok("PATCH", path, {"spec": {"taints": second}}, content_type=STRATEGIC)
    assert node["spec"]["taints"] == second
    node = await api.ok("PATCH", path, {"spec": {"taints": None}}, content_type=STRATEGIC)
    assert "taints" not in node["spec"]


async def a_strategic_patch_merges_conditions(api: Api) -> None:
    path = f"{await _node(api)}/status"
    ready = {"type": "Ready", "status": "True", "reason": "Test"}
    await api.ok("PATCH", path, {"status": {"conditions": [ready]}}, content_type=STRATEGIC)
    pressure = {"type": "DiskPressure", "status": "False"}
    await api.ok("PATCH", path, {"status": {"conditions": [pressure]}}, content_type=STRATEGIC)
    changed = {"type": "Ready", "status": "Unknown"}
    node = await api.ok("PATCH", path, {"status": {"conditions": [changed]}}, content_type=STRATEGIC)
    assert condition_of(node, "DiskPressure")["status"] == "False"
    assert condition_of(node, "Ready")["status"] == "Unknown"
    assert condition_of(node, "Ready")["reason"] == "Test"


async def a_strategic_patch_removes_a_condition(api: Api) -> None:
    path = f"{await _node(api)}/status"
    both = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
    await api.ok("PATCH", path, {"status": {"conditions": both}}, content_type=STRATEGIC)
    gone = [{"type": "Ready", "$patch": "delete"}, {"type": "Other", "$patch": "delete"}]
    node = await api.ok("PATCH", path, {"status": {"conditions": gone}}, content_type=STRATEGIC)
    assert [one["type"] for one in node["status"]["conditions"]] == ["DiskPressure"]


async def a_strategic_patch_adds_a_pod_condition(api: Api) -> None:
    name = (await api.new_pod(node="somewhere"))["metadata"]["name"]
    before = await api.run(name)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "Test", "message": "why"}
    patch = {"metadata": {"uid": before["metadata"]["uid"]}, "status": {"conditions": [target]}}
    pod = await api.ok("PATCH", f"{api.pods}/{name}/status", patch, content_type=STRATEGIC)
    assert [one["type"] for one in pod["status"]["conditions"]] == ["DisruptionTarget", "Ready"]


async def another_uid_in_a_patch_is_invalid(api: Api) -> None:
    path = await _node(api)
    for form in (MERGE, STRATEGIC):
        answer = await api.request("PATCH", path, {"metadata": {"uid": "other"}}, content_type=form)
        assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.uid")


async def a_patch_of_nothing_is_a_404(api: Api) -> None:
    answer = await api.request("PATCH", "/api/v1/nodes/nothing-here", {}, content_type=MERGE)
    assert answer.status == 404


async def a_patch_must_be_an_object(api: Api) -> None:
    answer = await api.request("PATCH", await _node(api), [1], content_type=MERGE)
    assert answer.status == 400


async def an_unknown_field_in_a_patch_is_refused_when_strict(api: Api) -> None:
    patch = {"spec": {"colour": "red"}}
    answer = await api.request("PATCH", await _node(api), patch, content_type=MERGE, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'unknown field "spec.colour"' in answer.message


async def a_patch_cannot_change_identity(api: Api) -> None:
    path = await _node(api)
    before = await api.get(path)
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"a": "b"}}}
    answer = await api.request("PATCH", path, patch, content_type=MERGE)
    after = await api.get(path)
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"], answer
