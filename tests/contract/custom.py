"""Custom resources: definitions, schemas, the status subresource."""

from typing import Any

from contract.api import CRD_GROUP, MERGE, STRATEGIC, Answer, Api, unique

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURAL = "gadgets"
PATH = f"/apis/{CRD_GROUP}/v1/{PLURAL}"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"type": "string", "enum": ["Enforce", "DryRun"], "default": "Enforce"},
                "schedule": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "parts": {
                    "type": "array",
                    "maxItems": 2,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "weight": {"type": "integer", "default": 1}},
                    },
                },
                "limit": {"x-kubernetes-int-or-string": True},
                "timing": {
                    "type": "object",
                    "default": {},
                    "properties": {"graceSeconds": {"type": "integer", "default": 7}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"observedGeneration": {"type": "integer"}, "phase": {"type": "string"}},
        },
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{CRD_GROUP}"},
    "spec": {
        "group": CRD_GROUP,
        "scope": "Cluster",
        "names": {"plural": PLURAL, "kind": "Gadget", "shortNames": ["gd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}],
            }
        ],
    },
}


async def _defined(api: Api) -> None:
    created = await api.request("POST", DEFINITIONS, DEFINITION)
    assert created.status in {201, 409}, created

    async def served() -> bool:
        return (await api.request("GET", PATH)).status == 200

    await api.eventually(served, "the custom resource is served")


def _gadget(spec: dict[str, Any], name: str = "") -> dict[str, Any]:
    return {
        "apiVersion": f"{CRD_GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": name or unique("gadget")},
        "spec": spec,
    }


async def _try(api: Api, **spec: Any) -> Answer:
    await _defined(api)
    return await api.request("POST", PATH, _gadget({"size": 1, **spec}))


async def a_definition_is_established(api: Api) -> None:
    await _defined(api)
    definition = await api.get(f"{DEFINITIONS}/{PLURAL}.{CRD_GROUP}")
    conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert definition["spec"]["names"]["singular"] == "gadget"
    assert definition["spec"]["names"]["listKind"] == "GadgetList"


async def a_definition_needs_its_name(api: Api) -> None:
    body = {**DEFINITION, "metadata": {"name": "wrong.example.com"}}
    answer = await api.request("POST", DEFINITIONS, body)
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.name")


async def defaults_are_filled_in(api: Api) -> None:
    answer = await _try(api, parts=[{"key": "a"}])
    assert answer.status == 201, answer
    expected = {"size": 1, "mode": "Enforce", "parts": [{"key": "a", "weight": 1}], "timing": {"graceSeconds": 7}}
    assert answer.body["spec"] == expected
    assert answer.body["metadata"]["generation"] == 1


async def list_items_carry_their_kind(api: Api) -> None:
    name = (await _try(api)).body["metadata"]["name"]
    listed = await api.get(PATH, fieldSelector=f"metadata.name={name}")
    assert (listed["kind"], listed["items"][0]["kind"]) == ("GadgetList", "Gadget")
    assert listed["items"][0]["apiVersion"] == f"{CRD_GROUP}/v1"


async def unknown_fields_are_refused_when_strict(api: Api) -> None:
    await _defined(api)
    body = _gadget({"size": 1, "colour": "red", "timing": {"x": 1}})
    answer = await api.request("POST", PATH, body, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.colour", unknown field "spec.timing.x"' in answer.message


async def the_schema_is_enforced(api: Api) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"size": 0}, "spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 11}, "spec.size", "Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ({"size": "5"}, "spec.size", 'Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": 1.5}, "spec.size", 'Invalid value: "number": spec.size in body must be of type integer: "number"'),
        ({"mode": "Odd"}, "spec.mode", 'Unsupported value: "Odd": supported values: "Enforce", "DryRun"'),
        ({"schedule": "A1"}, "spec.schedule", "Invalid value: \"A1\": spec.schedule in body should match '^[a-z]+$'"),
        ({"schedule": "abcdef"}, "spec.schedule", "Too long: may not be more than 5 bytes"),
        ({"parts": [{}]}, "spec.parts[0].key", "Required value"),
        ({"parts": [{"key": "a"}] * 2}, "spec.parts[1]", 'Duplicate value: {"key":"a"}'),
        ({"parts": [{"key": k} for k in "abc"]}, "spec.parts", "Too many: 3: must have at most 2 items"),
    ]
    for spec, field, message in cases:
        answer = await _try(api, **spec)
        assert (answer.status, answer.reason) == (422, "Invalid"), (spec, answer)
        found = {(one["field"], one["message"]) for one in answer.causes}
        assert (field, message) in found, (spec, answer)


async def required_fields_are_required(api: Api) -> None:
    await _defined(api)
    answer = await api.request("POST", PATH, _gadget({}))
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.size")
    body = _gadget({})
    del body["spec"]
    answer = await api.request("POST", PATH, body)
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec")


async def int_or_string_takes_both(api: Api) -> None:
    assert (await _try(api, limit=5)).status == 201
    assert (await _try(api, limit="25%")).status == 201
    assert (await _try(api, limit=True)).status == 422


async def the_status_is_kept_apart(api: Api) -> None:
    await _defined(api)
    body = {**_gadget({"size": 1}), "status": {"phase": "Early"}}
    created = await api.create(PATH, body)
    assert "status" not in created
    path = f"{PATH}/{created['metadata']['name']}"
    both = {"spec": {"size": 2}, "status": {"phase": "Ready", "observedGeneration": 1}}
    status = await api.ok("PATCH", f"{path}/status", both, content_type=MERGE)
    assert status["spec"]["size"] == 1
    assert status["status"] == both["status"]
    assert status["metadata"]["generation"] == 1
    main = await api.ok("PATCH", path, {"spec": {"size": 3}, "status": {"phase": "No"}}, content_type=MERGE)
    assert main["spec"]["size"] == 3
    assert main["status"]["phase"] == "Ready"
    assert main["metadata"]["generation"] == 2
    labelled = await api.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert labelled["metadata"]["generation"] == 2
    quiet = await api.ok("PATCH", f"{path}/status", {"metadata": {"labels": {"a": "c"}}}, content_type=MERGE)
    assert quiet["metadata"]["labels"] == {"a": "b"}


async def a_status_can_be_put(api: Api) -> None:
    created = (await _try(api)).body
    path = f"{PATH}/{created['metadata']['name']}/status"
    updated = await api.ok("PUT", path, {**created, "status": {"phase": "Ready"}})
    assert updated["status"] == {"phase": "Ready"}
    answer = await api.request("PUT", path, {**created, "status": {"phase": "Late"}})
    assert answer.status == 409


async def empty_values_stay_but_not_in_metadata(api: Api) -> None:
    await _defined(api)
    body = _gadget({"size": 1, "parts": [], "free": {}})
    body["metadata"] |= {"labels": {}, "finalizers": []}
    created = await api.create(PATH, body)
    assert (created["spec"]["parts"], created["spec"]["free"]) == ([], {})
    assert not {"labels", "finalizers"} & created["metadata"].keys()


async def strategic_patches_are_not_for_custom_kinds(api: Api) -> None:
    name = (await _try(api)).body["metadata"]["name"]
    answer = await api.request("PATCH", f"{PATH}/{name}", {"spec": {"size": 2}}, content_type=STRATEGIC)
    assert answer.status == 415


async def an_update_needs_a_revision(api: Api) -> None:
    created = (await _try(api)).body
    del created["metadata"]["resourceVersion"]
    answer = await api.request("PUT", f"{PATH}/{created['metadata']['name']}", created)
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.resourceVersion")


async def the_kind_is_required(api: Api) -> None:
    await _defined(api)
    body = _gadget({"size": 1})
    del body["kind"]
    assert (await api.request("POST", PATH, body)).status == 400


async def an_old_revision_is_an_error_line_of_a_watch(api: Api) -> None:
    await _defined(api)  # after the server began, so that its history does
    async with api.watch(PATH, resourceVersion="1") as watch:
        assert watch.status == 200
        event = await watch.next()
        assert event is not None
        assert event["type"] == "ERROR"
        assert event["object"]["kind"] == "Status"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 1 (")
        assert await watch.next() is None
