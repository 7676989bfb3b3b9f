"""What `explain` says of a pod that is not bound yet: which nodes may not get it, and why."""

import json
from typing import Any

import pytest

from cli.world import Json, explained, node, pod, policy, profile, taint, toleration
from taintwarden.cli.explanation import Fate, PodExplanation
from taintwarden.cli.explanation_table import table
from taintwarden.rehearsal.candidates import NATIVE, NOT_LABELLED

ABOVE = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoSchedule"}
EXISTS = toleration("Exists", effect="NoSchedule")
DRIVER = "example.com/driver"
NOT_THERE = {"effect.taintwarden.io/sla": "None"}


def pending(*tolerations: Json, **more: Any) -> Json:
    return pod(*tolerations, **{"spec": {"nodeName": ""}, "status": {"phase": "Pending"}} | more)


def named(name: str, *taints: Json, **labels: str) -> Json:
    found = node(*taints, labels=labels)
    return {**found, "metadata": {**found["metadata"], "name": name, "uid": name}}


def shut(value: str) -> Json:
    return taint(value, effect="NoSchedule")


def newer(version: str) -> Json:
    expression = {"key": DRIVER, "operator": "SemverGt", "values": [version]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def annotated(affinity: Json | str) -> Json:
    text = affinity if isinstance(affinity, str) else json.dumps(affinity)
    return {"taintwarden.io/node-affinity": text}


def refusals(answer: PodExplanation) -> dict[str, str]:
    return {one.name: "; ".join(one.refusals) for one in answer.nodes}


def test_nodes_that_are_not_tolerated_and_the_one_that_is():
    answer = explained(pending(EXISTS, extended=[ABOVE]), named("a", shut("940")), named("b", shut("980")), policy())
    assert answer.fate is Fate.PENDING
    assert answer.reason.startswith("1 of 2 nodes may get it")
    assert refusals(answer) == {
        "a": "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)",
        "b": "",
    }


def test_a_pod_that_no_node_may_get():
    answer = explained(pending(), named("a", shut("940")))
    assert answer.reason == "none of the 1 nodes may get it"


def test_without_nodes():
    assert explained(pending()).reason == "there is no node"


def test_an_extended_toleration_does_not_help_where_the_scheduler_reads_none():
    answer = explained(pending(extended=[ABOVE]), named("a", shut("980")))
    assert refusals(answer) == {"a": f"taint sla=980:NoSchedule: {NATIVE}"}


def test_a_taint_that_only_lowers_the_score_is_no_refusal():
    answer = explained(pending(), named("a", taint("940", effect="PreferNoSchedule")))
    assert refusals(answer) == {"a": ""}


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


@pytest.mark.parametrize(
    ("text", "told"),
    [(json.dumps({"required": newer("3.27.0")}), "does not match"), ("", "is invalid, so no node matches")],
)
def test_the_affinity_of_a_volume(text, told):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk", "namespace": "shop"},
        "spec": {"volumeName": "v"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v", "annotations": annotated(text)},
    }
    using = {"nodeName": "", "volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]}
    answer = explained(pending(spec=using), claim, volume, named("a", **{DRIVER: "v3.9"}))
    assert refusals(answer)["a"].startswith(f"the node affinity of PersistentVolume v {told}")


def required(*expressions: Json) -> Json:
    terms = [{"matchExpressions": [one]} for one in expressions]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_what_the_pod_itself_requires():
    own = {"nodeName": "", "nodeSelector": {"disk": "ssd"}}
    assert refusals(explained(pending(spec=own), named("a"), named("b", disk="ssd"))) == {
        "a": "its nodeSelector or node affinity does not match (disk In (ssd))",
        "b": "",
    }


PLACED = required(
    {"key": "effect.taintwarden.io/sla", "operator": "In", "values": ["None"]},
    {"key": "value.taintwarden.io/sla", "operator": "Gt", "values": ["950"]},
)


def test_a_node_without_labels_of_placement_is_told():
    placed = pending(EXISTS, extended=[ABOVE], spec={"nodeName": "", "tolerations": [EXISTS], "affinity": PLACED})
    answer = refusals(explained(placed, named("new"), named("old", **NOT_THERE)))
    assert answer["old"] == ""
    assert answer["new"].endswith(f": {NOT_LABELLED}")


def test_a_taint_is_not_told_twice():
    placed = pending(extended=[ABOVE], spec={"nodeName": "", "tolerations": [EXISTS], "affinity": PLACED})
    labels = {"value.taintwarden.io/sla": "940", "effect.taintwarden.io/sla": "NoSchedule"}
    answer = refusals(explained(placed, named("a", shut("940"), **labels)))
    assert answer["a"] == "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)"


def test_the_scheduler_has_its_say():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    answer = explained(pending(status={"phase": "Pending", "conditions": [condition]}), named("a"))
    assert answer.scheduler == "0/1 nodes"
    assert "Scheduler" in table(answer)


@pytest.mark.parametrize("nodes", [1, 5])
def test_equal_reasons_are_one_row(nodes):
    found = [named(f"n{number}", shut("940")) for number in range(nodes)]
    shown = table(explained(pending(), *found))
    assert shown.count("is not tolerated") == 1
    assert ("and 2 more" in shown) == (nodes == 5)
