"""`explain` of a pod that is not bound yet: the nodes that do not fit, and the reason for each."""

import pytest

from cli.placed import (
    ABOVE,
    DRIVER,
    EXISTS,
    LISTS,
    NOT_THERE,
    PLACES,
    annotated,
    named,
    newer,
    numbered,
    owned,
    pending,
    says,
    shut,
    stored,
)
from cli.world import Json, explained, namespace, policy, profile, taint
from taintwarden_cli.explain.explanation import Fate, PodExplanation
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.rehearsal.liveness import LIST_PODS
from taintwarden_cli.rehearsal.node_candidates import NATIVE, NOT_LABELLED
from taintwarden_cli.rendering import render


def refusals(answer: PodExplanation) -> dict[str, str]:
    return {one.name: "; ".join(one.refusals) for one in answer.nodes}


def test_nodes_that_are_not_tolerated_and_the_one_that_is():
    answer = explained(pending(EXISTS, extended=[ABOVE]), named("a", shut("940")), named("b", shut("980")), policy())
    assert answer.fate is Fate.PENDING
    assert answer.reason.startswith("1 of 2 nodes fits: ")
    assert str(answer.remedy).endswith(": kubectl -n shop describe pod web")
    assert refusals(answer) == {
        "a": "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)",
        "b": "",
    }


def test_a_pod_that_no_node_may_get_and_without_nodes():
    assert explained(pending(), named("a", shut("940"))).reason == "the only node does not fit"
    assert explained(pending()).reason == "no node is known"


@pytest.mark.parametrize(
    ("extended", "there", "told"),
    [
        ([ABOVE], shut("980"), f"taint sla=980:NoSchedule: {NATIVE}"),  # the scheduler reads no extended toleration
        (None, taint("940", effect="PreferNoSchedule"), ""),  # only lowers the score
    ],
)
def test_a_taint_refuses_by_its_effect_and_by_native_tolerations(extended, there, told):
    assert refusals(explained(pending(extended=extended), named("a", there))) == {"a": told}


def test_versions_of_labels():
    required = {"requiredDuringSchedulingIgnoredDuringExecution": newer("3.27.0")}
    answer = explained(pending(annotations=annotated(required)), named("a", **{DRIVER: "v3.9"}), named("b"))
    assert refusals(answer) == {
        "a": "the node affinity of annotation taintwarden.io/node-affinity does not match "
        "(example.com/driver SemverGt '3.27.0' does not hold for 'v3.9')",
        "b": "the node affinity of annotation taintwarden.io/node-affinity does not match "
        "(example.com/driver SemverGt '3.27.0': the node has no such label)",
    }


def test_an_affinity_that_cannot_be_read_refuses_every_node():
    answer = explained(pending(annotations=annotated("{")), named("a"))
    assert "is invalid, so no node matches" in refusals(answer)["a"]


def test_the_affinity_of_a_profile():
    required = {"requiredDuringSchedulingIgnoredDuringExecution": newer("3.27.0")}
    given = profile("gold", app="web")
    given["spec"] = {"podSelector": given["spec"]["podSelector"], "nodeAffinity": required}
    answer = explained(pending(), given, named("a", **{DRIVER: "v3.9"}))
    assert refusals(answer)["a"].startswith("the node affinity of profile gold does not match")


def required(*expressions: Json) -> Json:
    terms = [{"matchExpressions": [one]} for one in expressions]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_what_the_pod_itself_requires():
    own = {"nodeName": "", "nodeSelector": {"disk": "ssd"}}
    assert refusals(explained(pending(spec=own), named("a"), named("b", disk="ssd"))) == {
        "a": "the node affinity of the pod, or its nodeSelector, does not match "
        "(disk In 'ssd': the node has no such label)",
        "b": "",
    }


PLACED = required({"key": "value-or-max.taintwarden.io/sla", "operator": "Gt", "values": ["950"]})


INJECTED = namespace(**{"taintwarden.io/inject": "true"})


def test_node_without_labels_of_placement_is_reported():
    placed = pending(EXISTS, extended=[ABOVE], spec={"nodeName": "", "tolerations": [EXISTS], "affinity": PLACED})
    answer = refusals(explained(placed, named("new"), named("old", **NOT_THERE), PLACES))
    assert answer["old"] == ""
    assert f": {NOT_LABELLED}: " in answer["new"]


def test_taint_that_is_in_labels_too_is_reported_once():
    placed = pending(extended=[ABOVE], spec={"nodeName": "", "tolerations": [EXISTS], "affinity": PLACED})
    answer = refusals(explained(placed, named("a", shut("940"), **says("940")), PLACES))
    assert answer["a"] == "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)"


def test_message_of_the_scheduler_is_shown():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    answer = explained(pending(status={"phase": "Pending", "conditions": [condition]}), named("a"))
    assert answer.scheduler == "0/1 nodes"
    assert "Scheduler" in render(*parts(answer))


@pytest.mark.parametrize("nodes", [1, 5])
def test_equal_reasons_are_one_row(nodes):
    found = [named(f"n{number}", shut("940")) for number in range(nodes)]
    shown = render(*parts(explained(pending(), *found)))
    assert shown.count("is not tolerated") == 1
    assert ("and 2 more" in shown) == (nodes == 5)


# -- what placement has written, and would write now -----------------------------------------------------------------


AGAIN = "kubectl delete pod web -n shop: its ReplicaSet creates it again"
WEB = owned(pending(extended=[ABOVE]))


GOOD = named("a", shut("980"), **says("980"))
LACKING = "the only node does not fit: it has no native toleration for its extended ones"


@pytest.mark.parametrize(
    ("web", "there", "space", "reason", "remedy"),
    [
        (stored(WEB, PLACES), GOOD, INJECTED, "1 of 1 node fits: ", "see what the scheduler says, "),
        (
            stored(WEB, PLACES),
            named("a", shut("940"), **says("940")),
            INJECTED,
            "the only node does not fit",
            f"add a node, correct a value, or loosen the toleration in the annotation or profile, then {AGAIN}",
        ),
        (
            stored(WEB, PLACES),
            named("a", shut("999"), **says("700")),
            INJECTED,
            "the only node does not fit: labels of placement differ from the taints of the node",
            "check the operator, which writes them: ",
        ),
        (
            WEB,
            GOOD,
            INJECTED,
            f"{LACKING}: the webhook was down, or no policy places it",
            f"see that the webhook runs ({LIST_PODS}), and set placement for the key in a policy, then {AGAIN}",
        ),
        (
            WEB,
            GOOD,
            namespace(),
            LACKING,
            "add a native Exists to the template, or label the namespace",
        ),
    ],
    ids=["scheduler", "suits-no-node", "labels-differ", "webhook-was-away", "no-injection"],
)
def test_pod_that_stays_pending_has_a_reason_and_a_remedy(web, there, space, reason, remedy):
    answer = explained(web, there, PLACES, space)
    assert (answer.reason.startswith(reason), answer.remedy.startswith(remedy)) == (True, True), answer


def test_a_label_that_does_not_say_what_the_taint_says():
    answer = explained(stored(WEB, PLACES), named("a", shut("999"), **says("700")), PLACES, INJECTED)
    assert "value-or-max.taintwarden.io/sla is 700 and should be 999" in refusals(answer)["a"]


def test_an_affinity_of_an_earlier_profile():
    tight, loose = (profile("p", {**ABOVE, "value": value}, app="web") for value in ("990", "950"))
    web = owned(pending())
    answer = explained(stored(web, PLACES, tight), named("a", shut("980"), **says("980")), PLACES, loose, INJECTED)
    assert answer.reason.endswith("the node affinity from placement does not match")
    assert answer.remedy.startswith(f"{AGAIN}; if that does not help, use integers")


def test_labels_that_say_that_there_is_no_taint_let_it_in():
    answer = explained(stored(WEB, PLACES), named("a", shut("700"), **NOT_THERE), policy(), INJECTED)
    assert "does not match" not in refusals(answer)["a"]


NEEDS = owned(pending(annotations=annotated({"requiredDuringSchedulingIgnoredDuringExecution": newer("3.27.0")})))
NEW = {DRIVER: "v3.28.0"}


def test_a_version_of_a_label_that_no_policy_lists():
    answer = explained(stored(NEEDS), numbered(**NEW), policy(), INJECTED)
    assert "its node affinity cannot be written: node affinity of annotation" in answer.reason
    assert answer.remedy.endswith(f"list the label under versionLabels of a policy (docs/placement.md), then {AGAIN}")


def test_what_could_not_be_written_and_can_be_now():
    answer = explained(stored(NEEDS), numbered(**NEW), LISTS, INJECTED)
    assert answer.reason.endswith("could not be written when it was created, but can be now")
    assert answer.remedy == AGAIN


def test_an_affinity_that_nothing_evaluates_refuses_no_node():
    """The webhook was down, so the pod may be anywhere."""
    answer = explained(NEEDS, numbered(**{DRIVER: "v3.9"}), LISTS, INJECTED)
    assert refusals(answer) == {"a": ""}


def test_a_value_that_labels_cannot_express():
    equal = {**ABOVE, "operator": "SemverEq", "value": "1.10000.0"}
    web = owned(pending(extended=[equal]))
    answer = explained(stored(web, PLACES), named("a", shut("v1.10000"), **says("v1.10000")), PLACES, INJECTED)
    assert "use integers, and versions of ordinary length" in answer.remedy
    assert "too many digits" in refusals(answer)["a"]


def test_pod_of_a_daemon_set_names_its_own_node():
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}
    web = pending(extended=[ABOVE], spec={"nodeName": "", "affinity": {"nodeAffinity": terms}})
    web = owned(web, "DaemonSet", "agent")
    nodes = [named(name, shut(value), **says(value)) for name, value in (("a", "700"), ("b", "980"))]
    answer = explained(stored(web, PLACES), *nodes, PLACES, INJECTED)
    assert answer.reason.startswith("its node a does not suit it, and a rolling update of the DaemonSet waits for it")
    assert answer.remedy.startswith("kubectl rollout restart daemonset/agent -n shop")


def test_where_no_node_matches_the_selector_taints_are_not_blamed():
    web = owned(pending(spec={"nodeName": "", "nodeSelector": {"disk": "ssd"}}))
    nodes = named("a", taint("900", effect="NoSchedule"), disk="hdd"), named("b", disk="hdd")
    assert explained(stored(web), *nodes).remedy.startswith("label a node so that it matches")


def test_a_node_that_the_pod_itself_leaves_out_is_not_blamed_on_placement():
    web = owned(pending(extended=[ABOVE], spec={"nodeName": "", "nodeSelector": {"disk": "ssd"}}))
    answer = explained(stored(web, PLACES), named("a", disk="hdd"), PLACES, INJECTED)
    assert answer.reason == "the only node does not fit"
    assert answer.remedy.startswith("label a node so that it matches")
    assert "Remedy" in render(*parts(answer))
