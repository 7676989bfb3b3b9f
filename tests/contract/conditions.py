"""Common parts of all answers: kinds, versions, errors, media types."""

from contract.api import Api, unique


async def single_objects_name_their_kind_and_list_items_do_not(api: Api) -> None:
    created = await api.new_pod()
    assert (created["kind"], created["apiVersion"]) == ("Pod", "v1")
    listed = await api.get(api.pods)
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert "kind" not in listed["items"][0]
    assert "apiVersion" not in listed["items"][0]


async def a_missing_object_is_a_404_with_details(api: Api) -> None:
    answer = await api.request("GET", f"{api.leases}/nothing")
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'leases.coordination.k8s.io "nothing" not found'
    assert answer.body["details"] == {"name": "nothing", "group": "coordination.k8s.io", "kind": "leases"}


async def a_missing_resource_is_a_404(api: Api) -> None:
    answer = await api.request("GET", "/apis/nowhere.example/v1/things")
    assert answer.status == 404


async def the_body_must_be_json(api: Api) -> None:
    answer = await api.request("POST", api.pods, "{nonsense")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def an_unknown_media_type_is_a_415(api: Api) -> None:
    answer = await api.request("PATCH", f"/api/v1/namespaces/{api.namespace}", {}, content_type="application/json")
    assert answer.status == 415


async def protobuf_alone_is_not_offered_for_custom_answers(api: Api) -> None:
    answer = await api.request("GET", api.pods, accept="text/csv")
    assert answer.status == 406


async def posting_to_an_object_is_not_allowed(api: Api) -> None:
    created = await api.new_pod()
    answer = await api.request("POST", f"{api.pods}/{created['metadata']['name']}", created)
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


async def a_table_has_columns_and_rows(api: Api) -> None:
    created = await api.new_pod()
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    table = await api.get(api.pods, accept=accept)
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][0] == created["metadata"]["name"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def discovery_lists_resources(api: Api) -> None:
    listed = await api.get("/api/v1")
    found = {one["name"]: one for one in listed["resources"]}
    assert {"pods", "pods/status", "pods/eviction", "nodes", "nodes/status"} <= found.keys()
    assert found["pods/eviction"]["kind"] == "Eviction"
    groups = await api.get("/apis")
    assert {"policy", "coordination.k8s.io", "events.k8s.io"} <= {one["name"] for one in groups["groups"]}


async def content_in_a_missing_namespace_is_a_404(api: Api) -> None:
    name = unique("nowhere")
    answer = await api.request(
        "POST", f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases", {"metadata": {"name": "a"}}
    )
    assert (answer.status, answer.message) == (404, f'namespaces "{name}" not found')
