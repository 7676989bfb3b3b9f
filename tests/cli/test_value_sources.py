"""Answers of the commands about values that policies read from nodes."""

import pytest

from cli.doctor.scene import asking, named
from cli.policies import condition
from cli.world import explained, only_taint, pod, policy, snapshot, taint
from taintwarden.engine.model import Gates
from taintwarden_cli.explain.explaining_pods import explain_pods

NEWER = {"key": "kubelet", "operator": "SemverGt", "value": "1.35.0", "effect": "NoExecute"}


def reading(name="sla", key="kubelet", source=None, **more):
    return policy(name, taints=[{"key": key, "from": source or {"nodeInfo": "kubeletVersion"}, **more}])


def reporting(version="v1.34.1", *taints, name="n1", conditions=()):
    made = named(name, *taints)
    made["status"] = {"nodeInfo": {"kubeletVersion": version}, "conditions": list(conditions)}
    return made


# -- explain ----------------------------------------------------------------------------------------------------------


def test_explain_says_where_the_value_is_read():
    found = only_taint(pod(extended=[NEWER]), reporting(), reading())
    assert (found.value, found.source, found.verdict) == ("v1.34.1", "nodeInfo kubeletVersion", "Violated")
    assert explained(pod(extended=[NEWER]), reporting(), reading()).fate == "Leaves"


def test_explain_says_that_a_pod_is_not_concerned():
    found = only_taint(pod(), reporting(), reading())
    assert (found.verdict, explained(pod(), reporting(), reading()).fate) == ("NotSelected", "Stays")
    assert (
        found.reason
        == "the pod has no toleration for kubelet, so a value that is read from the node does not concern it"
    )


def test_explain_of_a_node_lists_what_is_derived():
    world = snapshot(pod(), reporting("v1.34.1", taint("980")), reading())
    assert explain_pods(world, "n1", Gates()).taints == [
        "sla=980:NoExecute",
        "kubelet=v1.34.1:NoExecute (from nodeInfo kubeletVersion)",
    ]


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_finds_a_source_without_a_value_once():
    """The finding has the words of the operator."""
    none = reading(source={"condition": "GPUHealthy"})
    none["metadata"]["generation"] = 1
    missing = condition("SourcesFound", "False", "none of 1 node has condition GPUHealthy")
    none["status"] = {"observedGeneration": 1, "conditions": [condition("Accepted", "True"), missing]}
    (found,) = asking("policy-problem")(none, reporting())
    assert found.message == "none of 1 node has condition GPUHealthy"
    assert asking("policy-never-acts")(none, reporting()) == []


def test_doctor_finds_two_sources_for_a_key():
    first, second = reading("a"), reading("b", source={"nodeInfo": "kernelVersion"})
    (found,) = [one for one in asking("policy-problem")(first, second, reporting()) if one.name == "b"]
    assert "policy a, which is older, reads the taint kubelet from nodeInfo kubeletVersion" in found.message


def test_doctor_proposes_no_taint_for_a_value_that_is_read():
    (found,) = asking("taint-value-invalid")(reading(valueType="Integer"), reporting())
    assert "its value is read from nodeInfo kubeletVersion" in found.remedy


@pytest.mark.parametrize("check", ["builtin-evicts", "nowhere-to-go"])
def test_kubernetes_does_not_know_what_is_derived(check):
    newest = {**NEWER, "value": "1.30.0"}
    assert asking(check)(reading(), reporting(), pod(extended=[newest])) == []
