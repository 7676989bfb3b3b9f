"""Labels for the scheduler that do not say what the taints say, and what needs them."""

import pytest

from cli.doctor.scene import asking, named, replicas
from cli.placed import (
    ABOVE,
    INJECT,
    NOT_THERE,
    PLACES,
    owned,
    pending,
    says,
    shut,
    stored,
)
from cli.placed import named as scene_node
from cli.world import Json, namespace, policy, taint, toleration
from taintwarden.engine.model import Taint, TaintSelector
from taintwarden_placement.node_labels import neutral_labels, node_labels

stale = asking("placement-labels")
PLACING = policy(taints=[{"key": "sla", "placement": True, "valueType": "Integer"}])
LABEL = "value.taintwarden.io/sla"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (named("a1", taint("980")), f"{LABEL}=980 is missing"),
        (named("a1", taint("980"), **{LABEL: "900"}), f"{LABEL} is 900 and should be 980"),
        (named("a1", **{LABEL: "900"}), f"{LABEL}=900 is left over"),
        (named("a1", taint("980")), "value-or-max.taintwarden.io/sla=980 is missing"),
    ],
)
def test_labels_that_are_not_in_step(node, words):
    (found,) = stale(node, PLACING)
    assert (str(found.subject), words in found.message) == ("Node a1", True)


def test_labels_in_step_are_left_in_peace():
    labels = node_labels([Taint("sla", "980")], [TaintSelector("sla", placement=True)]).labels
    assert stale(named("a1", taint("980"), **labels), PLACING) == []
    assert stale(named("a1", taint("980")), policy()) == []


def test_labels_where_placement_has_ended_say_that_there_is_no_taint():
    assert stale(named("a1", taint("980"), **neutral_labels(["sla"])), policy()) == []
    (found,) = stale(named("a1", taint("980"), **{LABEL: "980"}), policy())
    assert f"{LABEL}=980 is left over" in found.message


def test_value_that_no_label_can_express():
    remedies = [one.remedy for one in stale(named("a1", taint("0950")), PLACING)]
    assert any(one.startswith("use values that the scheduler can compare") for one in remedies)


# -- what needs labels -----------------------------------------------------------------------------------------------

mismatch = asking("placement-mismatch")
WEB = owned(pending(extended=[ABOVE]))
INJECTED = namespace(**INJECT)
WEBHOOK = {"kind": "MutatingWebhookConfiguration", "metadata": {}, "webhooks": [{"name": "pods.mutate.taintwarden.io"}]}


def placed_node(name, value):
    return scene_node(name, shut(value), **says(value))


def running(obj, on="a1"):
    return {**obj, "spec": {**obj["spec"], "nodeName": on}, "status": {"phase": "Running"}}


def test_pods_that_a_restart_of_the_kubelet_would_end():
    placed = running(stored(WEB, PLACES))
    (found,) = mismatch(placed, placed_node("a1", "700"), PLACES)
    assert (str(found.subject), found.pods) == ("ReplicaSet shop/web-1", 1)
    assert "a kubelet that restarts ends them" in found.message
    assert mismatch(placed, placed_node("a1", "980"), PLACES) == []


def test_pods_match_where_placement_has_ended():
    assert mismatch(running(stored(WEB, PLACES)), scene_node("a1", shut("700"), **NOT_THERE)) == []


def test_a_label_that_the_operator_has_yet_to_write_is_another_finding():
    late = scene_node("a1", shut("980"), **says("700"))
    assert mismatch(running(stored(WEB, PLACES)), late, PLACES) == []
    assert len(stale(late, PLACES)) == 1


def test_pods_without_labels_of_ours_are_not_looked_at():
    own = running(pending(spec={"nodeName": "", "nodeSelector": {"disk": "ssd"}}))
    assert mismatch(own, scene_node("a1")) == []


# -- pods that come back ----------------------------------------------------------------------------------------------

unplaced = asking("placement-missing")
ANY, GT = toleration("Exists"), toleration("Gt", "950")
RECIPE = replicas(3, ANY, extended=[GT])


def affinity(*keys: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["None"]}]} for key in keys]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def test_a_comparison_that_only_we_read():
    (found,) = unplaced(*RECIPE, policy(), named("n1", taint("980")))
    assert (str(found.subject), found.severity) == ("Deployment shop/web", "warning")
    assert (found.pods, found.template) == (3, True)
    assert found.message == "the scheduler does not compare sla: evicted pods may come back to the same node"
    assert "placement: true" in found.remedy


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
def test_pods_that_do_not_come_back(pods):
    assert unplaced(*pods, policy(), named("n1", taint("980"))) == []


def test_affinity_for_another_taint_keeps_no_pod_off():
    other = replicas(1, ANY, extended=[GT], spec=affinity("effect.taintwarden.io/sla", "zone"))
    assert len(unplaced(*other, policy(), named("n1"))) == 1


def test_placement_needs_the_policy_the_namespace_and_the_webhook():
    assert unplaced(*RECIPE, PLACING, INJECTED, WEBHOOK, named("n1")) == []
    assert len(unplaced(*RECIPE, policy(), INJECTED, WEBHOOK, named("n1"))) == 1
    assert len(unplaced(*RECIPE, PLACING, namespace(), WEBHOOK, named("n1"))) == 1
    assert len(unplaced(*RECIPE, PLACING, INJECTED, named("n1"))) == 1


def test_the_extender_keeps_them_off():
    assert unplaced(*RECIPE, policy(), named("n1"), has_extender=True) == []
