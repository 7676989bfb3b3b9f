"""Events, in both API groups."""

from typing import Any

from contract.api import MERGE, Api, unique

TIME = "2026-01-01T00:00:00.000000Z"


def _event(namespace: str, **more: Any) -> dict[str, Any]:
    regarding = {"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": "p", "uid": "u"}
    return {
        "metadata": {"name": unique("event")},
        "eventTime": TIME,
        "reportingController": "taintwarden.io/operator",
        "reportingInstance": "operator-0",
        "action": "Evict",
        "reason": "Evicted",
        "regarding": regarding,
        "note": "because",
        "type": "Normal",
        **more,
    }


def _path(api: Api) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events"


async def both_groups_show_the_same_event(api: Api) -> None:
    created = await api.create(_path(api), _event(api.namespace))
    name = created["metadata"]["name"]
    assert (created["kind"], created["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert (created["note"], created["regarding"]["name"]) == ("because", "p")
    core = await api.get(f"/api/v1/namespaces/{api.namespace}/events/{name}")
    assert (core["kind"], core["apiVersion"]) == ("Event", "v1")
    assert (core["message"], core["involvedObject"]["name"]) == ("because", "p")
    assert core["reportingComponent"] == "taintwarden.io/operator"
    listed = await api.get(f"/api/v1/namespaces/{api.namespace}/events", fieldSelector="involvedObject.uid=u")
    assert [one["metadata"]["name"] for one in listed["items"]] == [name]


async def new_style_events_are_checked(api: Api) -> None:
    for field in ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type"):
        body = _event(api.namespace)
        del body[field]
        answer = await api.request("POST", _path(api), body)
        assert (answer.status, answer.reason) == (422, "Invalid"), (field, answer)
    for field, value in (("action", "x" * 129), ("reason", "x" * 129), ("note", "x" * 1025), ("type", "Odd")):
        answer = await api.request("POST", _path(api), _event(api.namespace, **{field: value}))
        assert answer.status == 422, field
    answer = await api.request("POST", _path(api), _event(api.namespace, reportingController="no good"))
    assert answer.status == 422
    answer = await api.request("POST", _path(api), _event(api.namespace, series={"count": 1, "lastObservedTime": TIME}))
    assert answer.status == 422


async def event_times_need_their_microseconds(api: Api) -> None:
    answer = await api.request("POST", _path(api), _event(api.namespace, eventTime="2026-01-01T00:00:00Z"))
    assert answer.status == 400


async def a_series_may_be_patched(api: Api) -> None:
    created = await api.create(_path(api), _event(api.namespace))
    path = f"{_path(api)}/{created['metadata']['name']}"
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    patched = await api.ok("PATCH", path, {"series": series}, content_type=MERGE)
    assert patched["series"] == series
    answer = await api.request("PATCH", path, {"note": "other"}, content_type=MERGE)
    assert answer.status == 422


async def cluster_scoped_subjects_live_in_default(api: Api) -> None:
    node = {"kind": "Node", "apiVersion": "v1", "name": "n"}
    answer = await api.request("POST", _path(api), _event(api.namespace, regarding=node))
    assert answer.status == 422
    default = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert (await api.request("POST", default, _event("default", regarding=node))).status == 201


async def old_style_events_are_hardly_checked(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/events"
    body = {"metadata": {"name": unique("event")}, "involvedObject": {"namespace": api.namespace}}
    assert (await api.request("POST", path, body)).status == 201
    body = {"metadata": {"name": unique("event")}, "involvedObject": {"namespace": "elsewhere"}}
    answer = await api.request("POST", path, body)
    assert (answer.status, answer.causes[0]["field"]) == (422, "involvedObject.namespace")
