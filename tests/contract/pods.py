"""Pods: admission, tolerations, binding."""

from typing import Any

from contract.api import Answer, Api, condition_of, unique
from contract.api import pod as pod_of

DEFAULTS = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]


async def _try(api: Api, **spec: Any) -> Answer:
    return await api.request("POST", api.pods, pod_of(unique("pod"), **spec))


async def a_new_pod_is_pending(api: Api) -> None:
    body = pod_of(unique("pod"))
    body["status"] = {"phase": "Running"}
    pod = await api.create(api.pods, body)
    assert pod["status"]["phase"] == "Pending"


async def defaults_are_filled_in(api: Api) -> None:
    spec = (await api.new_pod())["spec"]
    expected = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
    assert {name: spec[name] for name in expected} == expected
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"


async def default_tolerations_are_added(api: Api) -> None:
    own = {"key": "sla", "operator": "Exists", "effect": "NoExecute"}
    assert (await api.new_pod(tolerations=[own]))["spec"]["tolerations"] == [own, *DEFAULTS]


async def default_tolerations_are_not_doubled(api: Api) -> None:
    everything = [{"operator": "Exists"}]
    assert (await api.new_pod(tolerations=everything))["spec"]["tolerations"] == everything
    one = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    assert (await api.new_pod(tolerations=one))["spec"]["tolerations"] == [*one, DEFAULTS[1]]
    other_effect = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}]
    assert (await api.new_pod(tolerations=other_effect))["spec"]["tolerations"] == [*other_effect, *DEFAULTS]


async def comparison_operators_need_their_gate(api: Api) -> None:
    toleration = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}
    answer = await _try(api, tolerations=[toleration])
    if api.comparison_operators:
        assert answer.status == 201
        return
    assert (answer.status, answer.reason) == (422, "Invalid")
    message = 'Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'
    assert answer.causes == [
        {"reason": "FieldValueNotSupported", "message": message, "field": "spec.tolerations[0].operator"}
    ]


async def comparison_values_are_canonical_integers(api: Api) -> None:
    if not api.comparison_operators:
        return
    for value in ("0950", "+5", "-0", "1e3", "", "9223372036854775808", "abc"):
        answer = await _try(api, tolerations=[{"key": "sla", "operator": "Lt", "value": value}])
        assert (answer.status, answer.causes[0]["field"]) == (422, "spec.tolerations[0].value"), (value, answer)


async def version_operators_are_refused(api: Api) -> None:
    answer = await _try(api, tolerations=[{"key": "v", "operator": "SemverGt", "value": "1.2.3"}])
    assert (answer.status, answer.reason) == (422, "Invalid")
    message = 'Unsupported value: "SemverGt": supported values: "Equal", "Exists"'
    assert answer.causes == [
        {"reason": "FieldValueNotSupported", "message": message, "field": "spec.tolerations[0].operator"}
    ]
    assert answer.message.endswith(f"is invalid: spec.tolerations[0].operator: {message}")


async def bad_tolerations_are_refused(api: Api) -> None:
    cases = [
        ({"operator": "Equal"}, "operator"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "operator"),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}, "effect"),
        ({"key": "a", "operator": "Exists", "tolerationSeconds": 5}, "effect"),
        ({"key": "a", "operator": "Exists", "effect": "Never"}, "effect"),
        ({"key": "a b", "operator": "Exists"}, "key"),
        ({"key": "a", "value": "not valid!"}, "operator"),
    ]
    for toleration, field in cases:
        answer = await _try(api, tolerations=[toleration])
        assert answer.status == 422, (toleration, answer)
        assert answer.causes[0]["field"] == f"spec.tolerations[0].{field}", (toleration, answer)


async def priority_comes_from_its_class(api: Api) -> None:
    answer = await _try(api, priority=5)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert "the integer value of priority (5) must not be provided in pod spec" in answer.message
    missing = await _try(api, priorityClassName="nothing")
    assert (missing.status, missing.reason) == (403, "Forbidden")


async def containers_are_required(api: Api) -> None:
    answer = await _try(api, containers=[])
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.containers")
    answer = await _try(api, containers=[{"name": "a"}])
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.containers[0].image")


async def a_pod_created_on_a_node_has_no_condition(api: Api) -> None:
    pod = await api.new_pod(node="n")
    assert pod["spec"]["nodeName"] == "n"
    assert "conditions" not in pod["status"]


async def a_pod_condition_shows_its_empty_times(api: Api) -> None:
    name = (await api.new_pod())["metadata"]["name"]
    pod = await api.run(name)
    assert condition_of(pod, "Ready")["lastProbeTime"] is None
    assert condition_of(pod, "Ready")["lastTransitionTime"] is None
