"""Which pods are evicted, and when, by tolerations, values and annotations."""

import time
from datetime import UTC, datetime, timedelta

from blackbox.box import FINE, LEAVES, STAYS, Box
from e2e.stories import annotation, taint, toleration

GRACE_SECONDS = 4
OBSERVED_SECONDS = 3
GOOD, BAD = taint("980"), taint("900")
ABOVE = {"key": "sla", "operator": "Gt", "value": "950"}


def in_annotation(operator: str, value: str, key: str = "sla", **more: object) -> dict[str, str]:
    return annotation({"key": key, "operator": operator, "value": value, **more})


def test_values_are_compared_as_the_annotation_says(box: Box) -> None:
    box.enforce(taints=[{"key": key} for key in ("sla", "load", "driver")])
    node = box.node(GOOD, taint("70", "load"), taint("1.10.0", "driver"))
    every = {"sla": ("Gt", "950", "800"), "load": ("Lt", "80", "100"), "driver": ("SemverGt", "1.9.0", "1.8.0")}
    tolerated = [{"key": key, "operator": "Exists"} for key in every]
    leaving, staying = [], []
    for key, (operator, near, far) in every.items():
        others = [one for one in tolerated if one["key"] != key]
        for pods, value in ((leaving, near), (staying, far)):
            said = annotation({"key": key, "operator": operator, "value": value}, *others)
            pods.append(box.pod(f"{key}-{value}", node, annotations=said))
    box.stays(*leaving, *staying, until=time.monotonic() + 1)
    fell = box.taint(node, BAD, taint("90", "load"), taint("1.9.0-rc.1", "driver"))
    for pod in leaving:
        box.leaves(pod, fell)
    box.stays(*staying, until=fell + OBSERVED_SECONDS)
    assert (box.explains(staying[0]), box.status_code()) == (STAYS, FINE)


def test_graces_of_a_toleration_are_honoured(box: Box) -> None:
    """After the violation where values are compared; from the taint on where they are not."""
    box.enforce(timing={"violationGraceSeconds": 600})
    node = box.node()
    pods = [
        box.pod("violation-grace", node, annotations=in_annotation("Gt", "950", violationGraceSeconds=GRACE_SECONDS)),
        box.pod("toleration-seconds", node, annotations=in_annotation("Gt", "950", tolerationSeconds=GRACE_SECONDS)),
        box.pod("native", node, toleration("Exists", seconds=GRACE_SECONDS)),
    ]
    longer = box.pod("policy", node)
    fell = box.taint(node, BAD)
    for pod in pods:
        box.leaves(pod, fell, GRACE_SECONDS)
    box.stays(longer, until=time.monotonic())
    assert box.explains(longer) == LEAVES


def test_a_native_comparison_is_honoured(box: Box) -> None:
    box.enforce()
    node = box.node(GOOD)
    near, far = (box.pod(f"above-{value}", node, toleration("Gt", value)) for value in ("950", "800"))
    fell = box.taint(node, BAD)
    box.leaves(near, fell)
    box.stays(far, until=fell + OBSERVED_SECONDS)


def test_a_value_that_recovers_in_time_evicts_no_pod(box: Box) -> None:
    box.enforce(timing={"stabilizationWindowSeconds": GRACE_SECONDS})
    node = box.node(GOOD)
    pod = box.pod("web", node, annotations=annotation(ABOVE))
    fell = box.taint(node, BAD)
    box.stays(pod, until=fell + GRACE_SECONDS / 2)
    box.taint(node, GOOD)
    box.stays(pod, until=fell + GRACE_SECONDS + OBSERVED_SECONDS)
    assert box.explains(pod) == STAYS


def test_a_mistyped_value_holds(box: Box) -> None:
    box.enforce()
    node = box.node(GOOD)
    pod = box.pod("web", node, annotations=annotation(ABOVE))
    box.wait_seen(node, "980")
    box.stays(pod, until=box.taint(node, taint("high")) + OBSERVED_SECONDS)
    assert box.event(node, "InvalidTaintValue")["type"] == "Warning"
    assert box.wait(lambda: box.status().get("retained") == 1, 30, "the status to count the pod")
    assert box.explains(pod) == STAYS
    box.leaves(pod, box.taint(node, BAD))


def test_a_taint_that_states_that_it_is_old_does_not_take_the_grace(box: Box) -> None:
    """The operator saw the node without it a moment before."""
    box.enforce(timing={"violationGraceSeconds": GRACE_SECONDS})
    node = box.node()
    pods = [box.pod("policy", node), box.pod("native", node, toleration("Exists", seconds=GRACE_SECONDS))]
    box.stays(*pods, until=time.monotonic() + OBSERVED_SECONDS)
    old = (datetime.now(UTC) - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fell = box.taint(node, BAD | {"timeAdded": old})
    for pod in pods:
        box.leaves(pod, fell, GRACE_SECONDS)


def test_a_pod_of_the_same_name_has_a_grace_of_its_own(box: Box) -> None:
    box.enforce(timing={"violationGraceSeconds": GRACE_SECONDS})
    node = box.node()
    first = box.pod("db-0", node)
    fell = box.taint(node, BAD)
    box.stays(first, until=fell + GRACE_SECONDS - 1)
    box.cluster.delete("pods", first.name, box.namespace, grace_seconds=0)
    second, created = box.pod("db-0", node), time.monotonic()
    box.leaves(second, created, GRACE_SECONDS)
    assert box.accepted() == {"db-0": 1}


def test_a_policy_acts_on_the_effects_that_it_names(box: Box) -> None:
    box.enforce(taints=[{"key": "sla", "effects": ["NoSchedule"]}])
    node = box.node()
    pod = box.pod("web", node)
    box.stays(pod, until=box.taint(node, BAD) + OBSERVED_SECONDS)
    box.leaves(pod, box.taint(node, taint("900", effect="NoSchedule")))


def test_excluded_pods_stay(box: Box) -> None:
    [excluded] = box.add_namespaces(1)
    box.enforce(exclude={"namespaces": [excluded]})
    node = box.node()
    [elsewhere] = box.crowd([excluded], 1, node)
    opted_out = box.pod("opted-out", node, annotations={"taintwarden.io/do-not-evict": "true"})
    other = box.pod("other", node)
    fell = box.taint(node, BAD)
    box.leaves(other, fell)
    box.stays(elsewhere, opted_out, until=fell + OBSERVED_SECONDS)
    assert box.explains(opted_out) == STAYS
    changed = time.monotonic()
    box.cluster.annotate("pods", opted_out.name, {"taintwarden.io/do-not-evict": None}, box.namespace)
    box.leaves(opted_out, changed)
    box.stays(elsewhere, until=time.monotonic())


def test_of_two_policies_the_one_with_the_most_specific_key_acts(box: Box) -> None:
    all_keys = [{"key": "*"}]
    selected = {"matchLabels": {"taintwarden-e2e/policy": box.policy}}
    box.enforce("any", taints=all_keys, nodeSelector=selected)
    exact = box.enforce(timing={"violationGraceSeconds": 600})
    node = box.node()
    pod = box.pod("web", node)
    box.stays(pod, until=box.taint(node, BAD) + OBSERVED_SECONDS)
    assert box.explanation(pod)["policy"] == exact
    deleted = time.monotonic()
    box.cluster.delete("taintevictionpolicies", exact)
    box.leaves(pod, deleted)
    assert box.accepted() == {"web": 1}


def test_a_pod_with_a_finalizer_is_evicted_once(box: Box) -> None:
    box.enforce()
    node = box.node()
    pods = [box.pod("held", node), box.pod("other", node)]
    finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
    box.cluster.patch("pods", "held", finalizers, box.namespace)
    fell = box.taint(node, BAD)
    for pod in pods:
        box.leaves(pod, fell)
    time.sleep(OBSERVED_SECONDS)  # a second eviction would come now: nothing else tells that none does
    assert box.cluster.find("pods", "held", box.namespace), "it has a finalizer"
    assert box.accepted() == {"held": 1, "other": 1}
    box.cluster.patch("pods", "held", {"metadata": {"finalizers": None}}, box.namespace)


def test_a_dry_run_evicts_no_pod(box: Box) -> None:
    box.enforce(mode="DryRun")
    node = box.node()
    pod = box.pod("web", node)
    fell = box.taint(node, BAD)
    box.stays(pod, until=fell + OBSERVED_SECONDS)
    assert (box.explains(pod), box.status_code()) == (STAYS, FINE)
    assert box.explanation(pod)["fate"] == "WouldLeave"
    changed = time.monotonic()
    box.edit(mode="Enforce")
    box.leaves(pod, changed)
