"""Create and update: identity, optimistic locking, what may change."""

from contract.api import MERGE, Api, unique


async def a_new_object_gets_identity_and_revision(api: Api) -> None:
    meta = (await api.new_pod())["metadata"]
    assert meta["uid"]
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["generation"] == 1
    assert meta["namespace"] == api.namespace


async def the_same_name_twice_is_a_conflict(api: Api) -> None:
    created = await api.new_pod()
    name = created["metadata"]["name"]
    answer = await api.request("POST", api.pods, {"metadata": {"name": name}, "spec": created["spec"]})
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == f'pods "{name}" already exists'


async def a_name_can_be_generated(api: Api) -> None:
    lease = await api.create(api.leases, {"metadata": {"generateName": "lease-"}})
    assert lease["metadata"]["name"].startswith("lease-")
    assert len(lease["metadata"]["name"]) == len("lease-") + 5


async def a_name_is_required(api: Api) -> None:
    answer = await api.request("POST", api.leases, {"metadata": {}})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "name or generateName is required" in answer.message


async def a_name_must_be_a_subdomain(api: Api) -> None:
    answer = await api.request("POST", api.leases, {"metadata": {"name": "Upper_Case"}})
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.name")


async def a_revision_on_creation_is_refused(api: Api) -> None:
    answer = await api.request("POST", api.leases, {"metadata": {"name": unique("lease"), "resourceVersion": "5"}})
    assert answer.status == 500
    assert "resourceVersion should not be set on objects to be created" in answer.message


async def a_namespace_must_match_the_path(api: Api) -> None:
    answer = await api.request("POST", api.leases, {"metadata": {"name": unique("lease"), "namespace": "other"}})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def a_name_must_match_the_path(api: Api) -> None:
    created = await api.new_node()
    name = created["metadata"]["name"]
    created["metadata"]["name"] = "other"
    answer = await api.request("PUT", f"/api/v1/nodes/{name}", created)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def a_stale_update_is_a_conflict(api: Api) -> None:
    first = await api.new_node()
    path = f"/api/v1/nodes/{first['metadata']['name']}"
    await api.ok("PUT", path, {**first, "spec": {"unschedulable": True}})
    answer = await api.request("PUT", path, first)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on nodes "{first["metadata"]["name"]}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def an_update_of_another_uid_is_a_conflict(api: Api) -> None:
    node = await api.new_node()
    node["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    answer = await api.request("PUT", f"/api/v1/nodes/{node['metadata']['name']}", node)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.message


async def a_patch_may_carry_a_revision(api: Api) -> None:
    node = await api.new_node()
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    revision = node["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": revision, "annotations": {"a": "1"}}}
    await api.ok("PATCH", path, patch, content_type=MERGE)
    answer = await api.request(
        "PATCH", path, {"metadata": {**patch["metadata"], "annotations": {"a": "2"}}}, content_type=MERGE
    )
    assert (answer.status, answer.reason) == (409, "Conflict")


async def no_difference_is_no_revision(api: Api) -> None:
    node = await api.new_node()
    again = await api.ok("PUT", f"/api/v1/nodes/{node['metadata']['name']}", node)
    assert again["metadata"]["resourceVersion"] == node["metadata"]["resourceVersion"]


async def a_node_has_no_generation(api: Api) -> None:
    node = await api.new_node()
    assert "generation" not in node["metadata"]


async def an_update_of_nothing_is_a_404(api: Api) -> None:
    answer = await api.request("PUT", "/api/v1/nodes/nothing-here", {"metadata": {"name": "nothing-here"}})
    assert answer.status == 404


async def the_status_of_a_node_is_kept_apart(api: Api) -> None:
    node = await api.new_node()
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    patch = {"status": {"nodeInfo": {"kubeletVersion": "v9"}}, "spec": {"unschedulable": True}}
    main = await api.ok("PATCH", path, patch, content_type=MERGE)
    assert main["status"].get("nodeInfo", {}).get("kubeletVersion", "") == ""
    assert main["spec"]["unschedulable"] is True
    patch["spec"]["unschedulable"] = None
    status = await api.ok("PATCH", f"{path}/status", patch, content_type=MERGE)
    assert status["status"]["nodeInfo"]["kubeletVersion"] == "v9"
    assert status["spec"]["unschedulable"] is True


async def the_status_of_a_pod_may_carry_labels(api: Api) -> None:
    pod = await api.new_pod()
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}
    status = await api.ok("PATCH", f"{api.pods}/{pod['metadata']['name']}/status", patch, content_type=MERGE)
    assert status["metadata"]["labels"] == {"a": "b"}
    assert status["status"]["phase"] == "Running"
    assert status["metadata"]["generation"] == 1


async def an_unknown_field_is_refused_when_strict(api: Api) -> None:
    body = {"metadata": {"name": unique("lease")}, "spec": {"holder": "x"}}
    answer = await api.request("POST", api.leases, body, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.holder"' in answer.message


async def a_wrong_type_is_refused(api: Api) -> None:
    answer = await api.request(
        "POST", api.leases, {"metadata": {"name": unique("lease")}, "spec": {"leaseDurationSeconds": "5"}}
    )
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def annotations_are_strings(api: Api) -> None:
    node = await api.new_node()
    patch = {"metadata": {"annotations": {"a": 1}}}
    answer = await api.request("PATCH", f"/api/v1/nodes/{node['metadata']['name']}", patch, content_type=MERGE)
    assert (answer.status, answer.reason, answer.causes[0]["field"]) == (422, "Invalid", "patch")
    body = {"metadata": {"name": unique("node"), **patch["metadata"]}}
    answer = await api.request("POST", "/api/v1/nodes", body)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def annotations_are_bounded(api: Api) -> None:
    node = await api.new_node()
    patch = {"metadata": {"annotations": {"a": "x" * (256 * 1024)}}}
    answer = await api.request("PATCH", f"/api/v1/nodes/{node['metadata']['name']}", patch, content_type=MERGE)
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.annotations")


async def fields_belong_to_the_user_agent(api: Api) -> None:
    node = await api.new_node(labels={"a": "b"})
    entry = node["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("contract", "Update", "v1")
    assert "f:a" in entry["fieldsV1"]["f:metadata"]["f:labels"]
    assert "f:spec" not in entry["fieldsV1"]
    patch = {"metadata": {"labels": {"c": "d"}}}
    patched = await api.ok(
        "PATCH", f"/api/v1/nodes/{node['metadata']['name']}", patch, content_type=MERGE, fieldManager="other"
    )
    other = next(one for one in patched["metadata"]["managedFields"] if one["manager"] == "other")
    assert other["fieldsV1"]["f:metadata"]["f:labels"] == {"f:c": {}}
