"""Pods that leave and find no other node, by taints, nodeSelector and nodeAffinity."""

import pytest

from cli.doctor.scene import asking, named, replicas, workload
from cli.world import pod, policy, taint, toleration
from taintwarden.engine.affinity import NodeOperator, NodeRequirement
from taintwarden.engine.operators import ALL_GATES
from taintwarden_cli.rehearsal.node_requirements import NAME_FIELD, NodeRequirements, NodeTerm

nowhere = asking("nowhere-to-go")
STRICT = toleration("Gt", "950")
BAD, GOOD = named("n1", taint("900")), named("n2", taint("980"))


def affinity(*expressions):
    terms = [{"matchExpressions": list(expressions)}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def test_pods_that_fit_no_other_node_are_found():
    (found,) = nowhere(BAD, replicas(3, STRICT), policy())
    assert (str(found.subject), found.severity, found.pods) == ("Deployment shop/web", "error", 3)
    assert "because of sla=900:NoExecute (policy sla), and fit no other node" in found.message


def test_pods_of_a_dry_run_that_fit_no_node_are_a_warning():
    (found,) = nowhere(BAD, replicas(3, STRICT), policy(mode="DryRun"))
    assert found.severity == "warning"


def test_pods_that_fit_another_node_are_no_finding():
    assert nowhere(BAD, GOOD, replicas(3, STRICT), policy()) == []


@pytest.mark.parametrize(
    ("spec", "label", "told"),
    [
        ({"nodeSelector": {"pool": "a"}}, "b", True),
        ({"nodeSelector": {"pool": "a"}}, "a", False),
        (affinity({"key": "pool", "operator": "In", "values": ["a"]}), "b", True),
        (affinity({"key": "pool", "operator": "NotIn", "values": ["a"]}), "b", False),
    ],
)
def test_labels_of_nodes_count(spec, label, told):
    good = named("n2", taint("980"), pool=label)
    bad = named("n1", taint("900"), pool="a")
    assert bool(nowhere(bad, good, replicas(3, STRICT, spec=spec), policy())) is told


def test_no_schedule_taint_counts():
    cordoned = named("n2", taint("980"), taint("", "node.kubernetes.io/unschedulable", "NoSchedule"))
    assert len(nowhere(BAD, cordoned, replicas(3, STRICT), policy())) == 1


def test_prefer_no_schedule_taint_does_not_count():
    preferred = named("n2", taint("980"), taint("", "busy", "PreferNoSchedule"))
    assert nowhere(BAD, preferred, replicas(3, STRICT), policy()) == []


def test_pods_that_nothing_replaces_need_no_node():
    assert nowhere(BAD, pod(STRICT), policy()) == []
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]
    daemon = pod(STRICT, metadata={"ownerReferences": owner})
    assert nowhere(BAD, daemon, policy(exclude={"daemonSets": False})) == []


def test_workload_that_fits_no_node_is_found():
    template = {"spec": {"tolerations": [toleration("Gt", "990")]}}
    (found,) = nowhere(BAD, GOOD, workload(template=template), policy())
    assert (found.severity, "none of the 2 nodes" in found.message) == ("warning", True)
    assert nowhere(BAD, GOOD, workload(template=template, spec={"replicas": 0}), policy()) == []


def test_workload_that_fits_no_node_for_other_reasons_is_no_finding():
    other = named("n3", taint("", "gpu", "NoSchedule"))
    assert nowhere(other, workload(), policy()) == []
    assert nowhere(GOOD, workload(template={"spec": {"nodeSelector": {"pool": "none"}}}), policy()) == []


def test_terms_are_alternatives_and_an_empty_one_holds_nowhere():
    mine = NodeTerm(match_fields=(NodeRequirement(NAME_FIELD, NodeOperator.IN, ("a",)),))
    named = NodeRequirements((), (NodeTerm(), mine)).as_filter(ALL_GATES)
    assert [named.refusal((), {NAME_FIELD: name}) is None for name in "ab"] == [True, False]
    nowhere = NodeRequirements((("disk", "ssd"),), (NodeTerm(),)).as_filter(ALL_GATES)
    assert nowhere.refusal((), {"disk": "ssd"}) is not None
