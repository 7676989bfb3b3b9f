"""Pods: admission, tolerations, binding."""

from typing import Any

from contract.api import MERGE, Answer, Api, condition_of, unique
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
    assert pod["status"]["qosClass"] == "BestEffort"


async def defaults_are_filled_in(api: Api) -> None:
    spec = (await api.new_pod())["spec"]
    expected = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
    assert {name: spec[name] for name in expected} == expected
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"


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


async def tolerations_may_grow(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    more = [*pod["spec"]["tolerations"], {"key": "sla", "operator": "Exists"}]
    grown = await api.ok("PATCH", path, {"spec": {"tolerations": more}}, content_type=MERGE)
    assert grown["spec"]["tolerations"] == more
    assert grown["metadata"]["generation"] == 2


async def toleration_seconds_may_change(api: Api) -> None:
    pod = await api.new_pod()
    changed = [{**one, "tolerationSeconds": 60} for one in pod["spec"]["tolerations"]]
    path = f"{api.pods}/{pod['metadata']['name']}"
    again = await api.ok("PATCH", path, {"spec": {"tolerations": changed}}, content_type=MERGE)
    assert again["spec"]["tolerations"] == changed


async def tolerations_may_not_shrink(api: Api) -> None:
    pod = await api.new_pod(tolerations=[{"key": "sla", "operator": "Exists"}])
    path = f"{api.pods}/{pod['metadata']['name']}"
    answer = await api.request("PATCH", path, {"spec": {"tolerations": DEFAULTS}}, content_type=MERGE)
    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.tolerations")
    text = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
    assert answer.causes[0]["message"] == text


async def the_rest_of_the_spec_is_fixed(api: Api) -> None:
    pod = await api.new_pod()
    path = f"{api.pods}/{pod['metadata']['name']}"
    for patch in ({"nodeName": "somewhere"}, {"priority": 5}, {"restartPolicy": "Never"}, {"nodeSelector": {"a": "b"}}):
        answer = await api.request("PATCH", path, {"spec": patch}, content_type=MERGE)
        assert answer.status in {403, 422}, (patch, answer)
    containers = [{**pod["spec"]["containers"][0], "image": "other:1"}]
    changed = await api.ok("PATCH", path, {"spec": {"containers": containers}}, content_type=MERGE)
    assert changed["spec"]["containers"][0]["image"] == "other:1"


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
