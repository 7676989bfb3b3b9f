"""Evictions, with and without budgets."""

from typing import Any

from contract.api import MERGE, Answer, Api, condition_of, unique

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


async def _evict(api: Api, name: str, options: Any = None, **query: Any) -> Answer:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if options is not None:
        body["deleteOptions"] = options
    return await api.request("POST", f"{api.pods}/{name}/eviction", body, **query)


async def _running(api: Api, *, ready: bool = True, grace_seconds: int = 0) -> dict[str, Any]:
    pod = await api.new_pod(node="somewhere", labels={"app": "web"}, terminationGracePeriodSeconds=grace_seconds)
    return await api.run(pod["metadata"]["name"], ready=ready)


async def _budget(api: Api, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return await api.create(api.budgets, {"metadata": {"name": unique("pdb")}, "spec": {"selector": selector, **spec}})


async def _allow(api: Api, budget: dict[str, Any], allowed: int, **more: Any) -> None:
    status = {
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        **more,
    }
    path = f"{api.budgets}/{budget['metadata']['name']}/status"
    await api.ok("PATCH", path, {"status": status}, content_type=MERGE)


async def _is_there(api: Api, name: str) -> bool:
    return (await api.request("GET", f"{api.pods}/{name}")).status == 200


async def without_a_budget_the_pod_goes(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    answer = await _evict(api, name)
    assert answer.status == 201, answer
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert not await _is_there(api, name)


async def grace_leaves_the_pod_terminating_and_marked(api: Api) -> None:
    name = (await _running(api, grace_seconds=30))["metadata"]["name"]
    assert (await _evict(api, name)).status == 201
    pod = await api.get(f"{api.pods}/{name}")
    assert pod["metadata"]["deletionTimestamp"]
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    target = condition_of(pod, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
    assert target["message"] == "Eviction API: evicting"
    assert target["lastTransitionTime"]
    assert condition_of(pod, "Ready")["status"] == "True"


async def a_grace_can_be_asked_for(api: Api) -> None:
    name = (await _running(api, grace_seconds=30))["metadata"]["name"]
    assert (await _evict(api, name, {"gracePeriodSeconds": 7})).status == 201
    assert (await api.get(f"{api.pods}/{name}"))["metadata"]["deletionGracePeriodSeconds"] == 7


async def a_missing_pod_is_a_404(api: Api) -> None:
    answer = await _evict(api, "nothing")
    assert (answer.status, answer.message) == (404, 'pods "nothing" not found')


async def another_uid_is_a_conflict(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    answer = await _evict(api, name, {"preconditions": {"uid": "other"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match the UID in record" in answer.message
    assert await _is_there(api, name)


async def the_right_uid_goes(api: Api) -> None:
    pod = await _running(api)
    answer = await _evict(api, pod["metadata"]["name"], {"preconditions": {"uid": pod["metadata"]["uid"]}})
    assert answer.status == 201


async def another_revision_is_a_conflict(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    answer = await _evict(api, name, {"preconditions": {"resourceVersion": "1"}})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def the_right_revision_goes(api: Api) -> None:
    pod = await _running(api)
    wanted = {"preconditions": {"resourceVersion": pod["metadata"]["resourceVersion"]}}
    assert (await _evict(api, pod["metadata"]["name"], wanted)).status == 201


async def a_name_in_the_body_must_match(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}
    answer = await api.request("POST", f"{api.pods}/{name}/eviction", body)
    assert answer.status == 400
    assert await _is_there(api, name)


async def no_name_in_the_body(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    answer = await api.request("POST", f"{api.pods}/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"})
    assert (answer.status, answer.message) == (400, "name in URL does not match name in Eviction object")


async def an_unobserved_budget_asks_to_come_back(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    budget = await _budget(api, minAvailable=0)
    answer = await _evict(api, name)
    assert (answer.status, answer.reason, answer.message) == (429, "TooManyRequests", VIOLATES)
    assert answer.headers["Retry-After"] == "10"
    assert answer.body["details"]["retryAfterSeconds"] == 10
    text = f"The disruption budget {budget['metadata']['name']} is still being processed by the server."
    assert answer.causes == [{"reason": "DisruptionBudget", "message": text}]


async def an_exhausted_budget_says_no(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    budget = await _budget(api, minAvailable=1)
    await _allow(api, budget, 0)
    answer = await _evict(api, name)
    assert (answer.status, answer.reason, answer.message) == (429, "TooManyRequests", VIOLATES)
    assert "Retry-After" not in answer.headers
    assert "retryAfterSeconds" not in answer.body["details"]
    text = f"The disruption budget {budget['metadata']['name']} needs 1 healthy pods and has 1 currently"
    assert answer.causes == [{"reason": "DisruptionBudget", "message": text}]
    assert await _is_there(api, name)


async def a_budget_is_spent(api: Api) -> None:
    first, second = [(await _running(api))["metadata"]["name"] for _ in range(2)]
    budget = await _budget(api, minAvailable=1)
    await _allow(api, budget, 1)
    assert (await _evict(api, first)).status == 201
    spent = await api.get(f"{api.budgets}/{budget['metadata']['name']}")
    assert spent["status"]["disruptionsAllowed"] == 0
    assert list(spent["status"]["disruptedPods"]) == [first]
    assert spent["metadata"]["generation"] == budget["metadata"]["generation"]
    assert (await _evict(api, second)).status == 429


async def a_changed_budget_waits_for_its_controller(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    budget = await _budget(api, minAvailable=1)
    await _allow(api, budget, 1)
    path = f"{api.budgets}/{budget['metadata']['name']}"
    changed = await api.ok("PATCH", path, {"spec": {"minAvailable": 0}}, content_type=MERGE)
    assert changed["metadata"]["generation"] == 2
    answer = await _evict(api, name)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "10")


async def two_budgets_are_an_error_without_effect(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    for _ in range(2):
        await _allow(api, await _budget(api, minAvailable=1), 1)
    answer = await _evict(api, name)
    assert answer.body["status"] == "Failure"
    assert answer.body["code"] == 500
    assert (
        answer.message
        == "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    assert answer.status == 500
    assert await _is_there(api, name)


async def another_uid_spends_the_budget_nevertheless(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    budget = await _budget(api, minAvailable=1)
    await _allow(api, budget, 1)
    assert (await _evict(api, name, {"preconditions": {"uid": "other"}})).status == 409
    spent = await api.get(f"{api.budgets}/{budget['metadata']['name']}")
    assert spent["status"]["disruptionsAllowed"] == 0


async def a_pending_pod_asks_no_budget(api: Api) -> None:
    pod = await api.new_pod(labels={"app": "web"})
    await _allow(api, await _budget(api, minAvailable=1), 0)
    assert (await _evict(api, pod["metadata"]["name"])).status == 201


async def a_terminating_pod_asks_no_budget(api: Api) -> None:
    name = (await _running(api, grace_seconds=30))["metadata"]["name"]
    await api.ok("DELETE", f"{api.pods}/{name}")
    await _allow(api, await _budget(api, minAvailable=1), 0)
    assert (await _evict(api, name)).status == 201
    assert await _is_there(api, name)


async def an_unready_pod_may_go_while_the_budget_is_healthy(api: Api) -> None:
    name = (await _running(api, ready=False))["metadata"]["name"]
    await _allow(api, await _budget(api, minAvailable=1), 0, currentHealthy=1, desiredHealthy=1)
    assert (await _evict(api, name)).status == 201


async def an_unready_pod_stays_while_the_budget_is_not(api: Api) -> None:
    name = (await _running(api, ready=False))["metadata"]["name"]
    await _allow(api, await _budget(api, minAvailable=2), 0, currentHealthy=1, desiredHealthy=2)
    assert (await _evict(api, name)).status == 429


async def an_unready_pod_may_always_go_if_the_budget_says_so(api: Api) -> None:
    name = (await _running(api, ready=False))["metadata"]["name"]
    budget = await _budget(api, minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    await _allow(api, budget, 0, currentHealthy=1, desiredHealthy=2)
    assert (await _evict(api, name)).status == 201


async def a_budget_elsewhere_does_not_matter(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    other = await api.create(
        api.budgets,
        {"metadata": {"name": unique("pdb")}, "spec": {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}},
    )
    await _allow(api, other, 0)
    assert (await _evict(api, name)).status == 201


async def an_empty_selector_covers_everything(api: Api) -> None:
    name = (await _running(api))["metadata"]["name"]
    budget = await api.create(
        api.budgets, {"metadata": {"name": unique("pdb")}, "spec": {"selector": {}, "minAvailable": 1}}
    )
    await _allow(api, budget, 0)
    assert (await _evict(api, name)).status == 429


async def a_percentage_is_checked(api: Api) -> None:
    selector = {"matchLabels": {"app": "web"}}
    for bound, expected in (("50%", 201), ("150%", 422), ("x%", 422), (-1, 422), ("5", 422)):
        body = {"metadata": {"name": unique("pdb")}, "spec": {"selector": selector, "maxUnavailable": bound}}
        assert (await api.request("POST", api.budgets, body)).status == expected, bound


async def a_budget_needs_one_bound(api: Api) -> None:
    spec = {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    answer = await api.request("POST", api.budgets, {"metadata": {"name": "both"}, "spec": spec})
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec")


async def a_new_budget_has_an_empty_status(api: Api) -> None:
    budget = await _budget(api, minAvailable=1)
    counts = dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0)
    assert budget["status"] == counts
    assert budget["metadata"]["generation"] == 1


async def a_budget_needs_optimistic_locking(api: Api) -> None:
    budget = await _budget(api, minAvailable=1)
    del budget["metadata"]["resourceVersion"]
    answer = await api.request("PUT", f"{api.budgets}/{budget['metadata']['name']}", budget)
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.resourceVersion")
