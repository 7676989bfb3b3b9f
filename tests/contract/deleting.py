"""Deletion: preconditions, grace, finalizers, many at once."""

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
    shorter = await api.ok("DELETE", path, gracePeriodSeconds=5)
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter["metadata"]["deletionTimestamp"] < deleted["metadata"]["deletionTimestamp"]
    longer = await api.ok("DELETE", path, gracePeriodSeconds=50)
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.ok("DELETE", path, gracePeriodSeconds=0)
    assert (await api.request("GET", path)).status == 404


async def a_terminated_pod_is_gone_at_once(api: Api) -> None:
    pod = await api.new_pod(node="somewhere")
    path = f"{api.pods}/{pod['metadata']['name']}"
    await api.ok("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, content_type=MERGE)
    await api.ok("DELETE", path)
    assert (await api.request("GET", path)).status == 404


async def a_finalizer_holds_an_object(api: Api) -> None:
    body = {"metadata": {"name": unique("lease"), "finalizers": ["example.com/hold"]}}
    lease = await api.create(api.leases, body)
    path = f"{api.leases}/{lease['metadata']['name']}"
    held = await api.ok("DELETE", path)
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    await api.ok("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert (await api.request("GET", path)).status == 404


async def a_finalizer_holds_a_pod(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    await api.ok("PATCH", path, {"metadata": {"finalizers": ["example.com/hold"]}}, content_type=MERGE)
    held = await api.ok("DELETE", path)
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    refused = await api.request("PATCH", path, {"metadata": {"finalizers": ["example.com/new"]}}, content_type=MERGE)
    assert (refused.status, refused.causes[0]["field"]) == (422, "metadata.finalizers")
    await api.ok("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert (await api.request("GET", path)).status == 404


async def dry_run_deletes_nothing(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    await api.ok("DELETE", path, {"dryRun": ["All"]})
    await api.ok("DELETE", path, dryRun="All")
    assert (await api.request("GET", path)).status == 200


async def a_selection_is_deleted(api: Api) -> None:
    for letter in "ab":
        await api.new_pod(f"pod-{letter}", labels={"app": letter})
    answer = await api.ok("DELETE", api.pods, labelSelector="app=a")
    assert answer["kind"] == "PodList"
    assert [one["metadata"]["name"] for one in answer["items"]] == ["pod-a"]
    left = await api.get(api.pods)
    assert [one["metadata"]["name"] for one in left["items"]] == ["pod-b"]


async def propagation_is_accepted(api: Api) -> None:
    lease = await api.create(api.leases, {"metadata": {"name": unique("lease")}})
    path = f"{api.leases}/{lease['metadata']['name']}"
    await api.ok("DELETE", path, {"propagationPolicy": "Background"})
    assert (await api.request("GET", path)).status == 404
