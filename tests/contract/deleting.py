"""Deletion: preconditions, grace."""

from contract.api import MERGE, Api, unique


async def a_lease_is_gone_with_a_status(api: Api) -> None:
    lease = await api.create(api.leases, {"metadata": {"name": unique("lease")}})
    name = lease["metadata"]["name"]
    answer = await api.request("DELETE", f"{api.leases}/{name}")
    assert answer.status == 200
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    details = {"name": name, "group": "coordination.k8s.io", "kind": "leases", "uid": lease["metadata"]["uid"]}
    assert answer.body["details"] == details
    assert (await api.request("DELETE", f"{api.leases}/{name}")).status == 404


async def another_uid_is_a_conflict(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    answer = await api.request("DELETE", path, {"preconditions": {"uid": "other"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match the UID in record" in answer.message
    await api.ok("DELETE", path, {"preconditions": {"uid": pod["metadata"]["uid"]}})


async def another_revision_is_a_conflict(api: Api) -> None:
    lease = await api.create(api.leases, {"metadata": {"name": unique("lease")}})
    path = f"{api.leases}/{lease['metadata']['name']}"
    answer = await api.request("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the ResourceVersion in the precondition (1) does not match" in answer.message


async def an_unbound_pod_is_gone_at_once(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    answer = await api.ok("DELETE", path)
    assert answer["kind"] == "Pod"
    assert (await api.request("GET", path)).status == 404


async def a_bound_pod_waits_for_its_kubelet(api: Api) -> None:
    pod = await api.new_pod(node="somewhere", terminationGracePeriodSeconds=40)
    path = f"{api.pods}/{pod['metadata']['name']}"
    deleted = await api.ok("DELETE", path)
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 40
    assert deleted["metadata"]["deletionTimestamp"] > deleted["metadata"]["creationTimestamp"]
    assert deleted["metadata"]["generation"] == 2
    again = await api.ok("DELETE", path)
    assert again["metadata"]["resourceVersion"] == deleted["metadata"]["resourceVersion"]
    longer = await api.ok("DELETE", path, gracePeriodSeconds=50)
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 40
    await api.ok("DELETE", path, gracePeriodSeconds=0)
    assert (await api.request("GET", path)).status == 404


async def a_terminated_pod_is_gone_at_once(api: Api) -> None:
    pod = await api.new_pod(node="somewhere")
    path = f"{api.pods}/{pod['metadata']['name']}"
    await api.ok("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, content_type=MERGE)
    await api.ok("DELETE", path)
    assert (await api.request("GET", path)).status == 404


async def propagation_is_accepted(api: Api) -> None:
    lease = await api.create(api.leases, {"metadata": {"name": unique("lease")}})
    path = f"{api.leases}/{lease['metadata']['name']}"
    await api.ok("DELETE", path, {"propagationPolicy": "Background"})
    assert (await api.request("GET", path)).status == 404
