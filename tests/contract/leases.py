"""Leases: what leader election stands on."""

from contract.api import MERGE, Api, unique

TIME = "2026-01-01T00:00:00.000000Z"


async def _lease(api: Api) -> tuple[str, dict]:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": TIME, "acquireTime": TIME}
    lease = await api.create(api.leases, {"metadata": {"name": unique("lease")}, "spec": spec})
    return f"{api.leases}/{lease['metadata']['name']}", lease


async def times_keep_their_microseconds(api: Api) -> None:
    path, lease = await _lease(api)
    assert lease["spec"]["renewTime"] == TIME
    lease["spec"]["renewTime"] = "2026-01-01T00:00:01.123456Z"
    updated = await api.ok("PUT", path, lease)
    assert updated["spec"]["renewTime"] == "2026-01-01T00:00:01.123456Z"


async def times_need_their_microseconds(api: Api) -> None:
    _, lease = await _lease(api)
    for text in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123Z", "2026-01-01 00:00:00.123456", 5):
        body = {"metadata": {"name": unique("lease")}, "spec": {**lease["spec"], "renewTime": text}}
        answer = await api.request("POST", api.leases, body)
        assert (answer.status, answer.reason) == (400, "BadRequest"), text


async def two_writers_of_one_revision_conflict(api: Api) -> None:
    path, lease = await _lease(api)
    winner = {**lease, "spec": {**lease["spec"], "holderIdentity": "b"}}
    await api.ok("PUT", path, winner)
    answer = await api.request("PUT", path, {**lease, "spec": {**lease["spec"], "holderIdentity": "c"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert (await api.get(path))["spec"]["holderIdentity"] == "b"


async def an_update_needs_a_revision(api: Api) -> None:
    path, lease = await _lease(api)
    del lease["metadata"]["resourceVersion"]
    answer = await api.request("PUT", path, lease)
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.resourceVersion")


async def numbers_are_in_range(api: Api) -> None:
    path, _ = await _lease(api)
    answer = await api.request("PATCH", path, {"spec": {"leaseDurationSeconds": 0}}, content_type=MERGE)
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.leaseDurationSeconds")
    answer = await api.request("PATCH", path, {"spec": {"leaseTransitions": -1}}, content_type=MERGE)
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.leaseTransitions")
