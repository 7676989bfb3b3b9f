"""Pods that the scheduler may put on the node again that they have to leave."""

import pytest

from cli.doctor.scene import asking, named, replicas
from cli.placed import INJECT
from cli.world import Json, namespace, policy, taint, toleration

PLACING = policy(taints=[{"key": "sla", "placement": True, "valueType": "Integer"}])
INJECTED = namespace(**INJECT)
WEBHOOK = {"kind": "MutatingWebhookConfiguration", "metadata": {}, "webhooks": [{"name": "pods.mutate.taintwarden.io"}]}
unplaced = asking("placement-missing")
ANY, GT = toleration("Exists"), toleration("Gt", "950")
RECIPE = replicas(3, ANY, extended=[GT])


def affinity(*keys: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["None"]}]} for key in keys]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def test_comparison_that_the_scheduler_ignores_is_found():
    (found,) = unplaced(*RECIPE, policy(), named("n1", taint("980")))
    assert (str(found.subject), found.severity) == ("Deployment shop/web", "warning")
    assert (found.pods, found.template) == (3, True)
    assert found.message == "the scheduler does not compare sla: evicted pods may come back to the same node"
    assert "placement: true" in found.remedy


@pytest.mark.parametrize("key", ["sla", "other"])
def test_finding_names_a_missing_replacement_only_if_the_policy_of_the_taint_replaces_first(key):
    replacing = policy(name="first", key=key, eviction={"replaceFirst": {}})
    policies = [replacing] if key == "sla" else [replacing, policy()]
    (found,) = unplaced(*RECIPE, *policies, named("n1", taint("980")))
    assert found.message.endswith(", so no replacement is asked for first") is (key == "sla")


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(replicas(1, ANY), id="no-comparison"),
        pytest.param(replicas(1, ANY, extended=[toleration("Exists")]), id="extended-exists"),
        pytest.param(replicas(1, extended=[GT]), id="the-scheduler-keeps-it-off"),
        pytest.param(replicas(1, GT, extended=[GT]), id="the-scheduler-compares"),
        pytest.param(replicas(1, ANY, extended=[toleration("Gt", "1", key="other")]), id="no-policy"),
        pytest.param(replicas(1, ANY, extended=[GT], spec=affinity("effect.taintwarden.io/sla")), id="affinity"),
    ],
)
def test_pods_that_do_not_come_back_are_no_finding(pods):
    assert unplaced(*pods, policy(), named("n1", taint("980"))) == []


def test_affinity_for_another_taint_keeps_no_pod_off():
    other = replicas(1, ANY, extended=[GT], spec=affinity("effect.taintwarden.io/sla", "zone"))
    assert len(unplaced(*other, policy(), named("n1"))) == 1


def test_placement_needs_the_policy_the_namespace_and_the_webhook():
    assert unplaced(*RECIPE, PLACING, INJECTED, WEBHOOK, named("n1")) == []
    assert len(unplaced(*RECIPE, policy(), INJECTED, WEBHOOK, named("n1"))) == 1
    assert len(unplaced(*RECIPE, PLACING, namespace(), WEBHOOK, named("n1"))) == 1
    assert len(unplaced(*RECIPE, PLACING, INJECTED, named("n1"))) == 1


def test_pods_that_the_extender_places_are_no_finding():
    assert unplaced(*RECIPE, policy(), named("n1"), has_extender=True) == []
