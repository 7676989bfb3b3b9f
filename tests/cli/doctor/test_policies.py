"""Policies that are invalid, asleep, about the wrong taints, or never come first."""

import pytest

from cli.doctor.scene import asking, named
from cli.policies import condition
from cli.world import NOON, policy, taint

STATUS = {"observedGeneration": 1}
FINE = [condition("Accepted", "True"), condition("GuardTripped", "False", reason="Armed")]
GUARD = {"open": True, "since": "2026-01-31T12:00:00.000000Z", "cause": "taint sla=900", "wouldEvict": 120, "spent": []}


def observed(*conditions, created="2026-01-01T00:00:00Z", name="sla", **spec):
    made = policy(name, created=created, **spec)
    made["metadata"]["generation"] = 1
    made["status"] = STATUS | {"conditions": [*FINE, *conditions]}
    return made


@pytest.mark.parametrize(
    "check",
    [
        "not-accepted", "not-observed", "hindered", "guard-open", "paused", "rehearses", "static-marker",
        "selects-no-node", "shielded",
    ],
)  # fmt: skip
def test_good_policy_is_left_in_peace(check):
    ask = asking(f"policy-{check}")
    assert ask(observed(), observed(name="other", key="other"), named("a1", taint("980"))) == []


def test_policy_that_cannot_be_read():
    (found,) = asking("policy-not-accepted")(observed(mode="Sometimes"))
    assert (found.severity, "spec.mode" in found.message) == ("error", True)


def test_policy_that_the_operator_refused():
    refused = observed()
    refused["status"]["conditions"] = [condition("Accepted", "False", "spec.taints: no")]
    (found,) = asking("policy-not-accepted")(refused)
    assert "spec.taints: no" in found.message


GONE = {"node": "a1", "goneAt": "2026-01-31T11:59:30Z", "pods": 1, "atRisk": 0, "missed": 1}


def hindered(**status):
    made = observed(*status.pop("conditions", ()))
    made["status"] |= status
    return made


def limit(name: str):
    return {"limit": name, "pods": 3, "since": "2026-01-31T11:50:00Z"}


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (hindered(limits=[limit("several-budgets")]), "3 pods wait: more than one PodDisruptionBudget selects them"),
        (hindered(limits=[limit("denied")]), "3 pods wait: an admission webhook or policy rejects their eviction"),
        (hindered(limits=[limit("failed")]), "3 pods wait: the call for their eviction fails"),
        (hindered(reclaims=[GONE]), "node a1 is gone since 2026-01-31T11:59:30Z: 1 pod was"),
        (hindered(conditions=[condition("Progressing", "False", "no changes of pods", "Blind")]), "no changes of pods"),
        (
            hindered(conditions=[condition("GuardTripped", "False", "shop", "HoldsNamespace")]),
            "its guard holds the pods of a namespace",
        ),
    ],
    ids=["several-budgets", "denied", "failed", "node-gone", "blind", "holds-namespace"],
)
def test_policy_that_is_valid_and_has_a_problem_is_not_called_invalid(stored, why):
    assert asking("policy-not-accepted")(stored) == []
    (found,) = asking("policy-hindered")(stored)
    assert (found.severity, found.message.startswith(why)) == ("error", True), found.message


def test_policy_that_is_not_accepted_is_told_once():
    refused = observed()
    refused["status"]["conditions"] = [condition("Accepted", "False", "spec.taints: no")]
    assert asking("policy-hindered")(refused, observed(mode="Sometimes", name="other")) == []


@pytest.mark.parametrize("status", [{}, {"observedGeneration": 0}])
def test_policy_that_nobody_looked_at(status):
    fresh = observed()
    fresh["status"] = status
    assert len(asking("policy-not-observed")(fresh)) == 1


def test_open_guard():
    shut = observed()
    shut["status"] |= {
        "guard": GUARD,
        "conditions": [FINE[0], condition("GuardTripped", "True", "120 pods", "MassEviction")],
    }
    (found,) = asking("policy-guard-open")(shut)
    assert (found.severity, found.message) == ("error", "120 pods")
    assert asking("policy-not-accepted")(shut) == []


def test_zones_that_are_all_full():
    full = observed()
    waiting = condition("GuardTripped", "True", "120 pods wait", "AllZonesFull")
    full["status"] |= {"guard": {"open": False}, "conditions": [FINE[0], waiting]}
    (found,) = asking("policy-zones-full")(full)
    assert (found.severity, found.message) == ("error", "120 pods wait")


def test_paused_since():
    (found,) = asking("policy-paused")(
        observed(condition("Enforcing", "False", reason="Paused"), paused=True), now=NOON + 86_400
    )
    assert "is paused for 1d" in found.message


def test_a_pause_that_another_policy_comes_before():
    """It shields its taints only from policies that come after it."""
    older = observed(name="older", created="2025-01-01T00:00:00Z")
    (found,) = asking("policy-paused")(older, observed(paused=True))
    assert found.message == "is paused: it evicts no pod, nor does a policy that comes after it for the same taints"


def test_long_rehearsal_is_a_note():
    dry = observed(condition("Enforcing", "False", reason="DryRun"), mode="DryRun")
    ask = asking("policy-rehearses")
    assert ask(dry, now=NOON + 86_400) == []
    (found,) = ask(dry, now=NOON + 9 * 86_400)
    assert (found.severity, "9d" in found.message) == ("info", True)


@pytest.mark.parametrize(
    ("key", "effect", "told"),
    [
        ("cloud.google.com/gke-spot", "NoSchedule", True),
        ("cloud.google.com/*", "NoSchedule", True),
        ("kubernetes.azure.com/scalesetpriority", "NoExecute", True),
        ("*", "NoSchedule", True),
        ("cloud.google.com/impending-node-termination", "NoSchedule", False),
    ],
)
def test_class_markers_are_no_signals(key, effect, told):
    node = named("spot", taint("true", "cloud.google.com/gke-spot", "NoSchedule"))
    found = asking("policy-static-marker")(observed(taints=[{"key": key, "effects": [effect]}]), node)
    assert bool(found) is told


@pytest.mark.parametrize(
    "marker",
    [
        "cloud.google.com/gke-preemptible", "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
        "nvidia.com/gpu",
    ],
)  # fmt: skip
def test_markers_of_clouds_and_autoscalers_are_known(marker):
    assert len(asking("policy-static-marker")(observed(key=marker), named("a1"))) == 1


@pytest.mark.parametrize(
    ("key", "effects", "told"),
    [
        ("*", ["NoSchedule"], True),
        ("*", ["NoExecute"], False),
        ("node.kubernetes.io/*", ["NoExecute", "NoSchedule"], True),
        ("node.kubernetes.io/unschedulable", ["NoSchedule"], False),
        ("sla", ["NoSchedule"], False),
    ],
)
def test_a_pattern_that_selects_cordons(key, effects, told):
    found = asking("policy-acts-on-cordons")(observed(taints=[{"key": key, "effects": effects}]), named("a1"))
    assert bool(found) is told


def test_star_without_such_a_node_is_left_in_peace():
    assert asking("policy-static-marker")(observed(taints=[{"key": "*"}]), named("a1")) == []


def test_a_node_that_opts_out():
    node = named("a1", taint("980"))
    node["metadata"]["annotations"] = {"taintwarden.io/do-not-evict": "true"}
    ask = asking("node-opted-out")
    assert [(found.name, found.severity) for found in ask(observed(), node, named("b1"))] == [("a1", "info")]
    assert ask(observed(exclude={"respectDoNotEvict": False}), node) == []


def test_policy_that_selects_no_node():
    pool = {"matchLabels": {"pool": "spot"}}
    ask = asking("policy-selects-no-node")
    assert len(ask(observed(nodeSelector=pool), named("a1"))) == 1
    assert ask(observed(nodeSelector=pool), named("a1", pool="spot")) == []
    assert ask(observed(nodeSelector=pool)) == []  # nor does it say much where there is no node


OLDER = {"created": "2025-01-01T00:00:00Z", "name": "older"}


@pytest.mark.parametrize(
    ("older", "told"),
    [
        ({}, True),
        ({"paused": True}, True),
        ({"taints": [{"key": "sla"}, {"key": "more"}]}, True),
        ({"taints": [{"key": "*"}]}, False),
        ({"taints": [{"key": "sla", "effects": ["NoSchedule"]}]}, False),
        ({"nodeSelector": {"matchLabels": {"pool": "spot"}}}, False),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, False),
        ({"exclude": {"namespaces": ["kube-system", "shop"]}}, False),
        ({"exclude": {"priorityAtLeast": 1000}}, False),
    ],
)
def test_policy_that_another_shields(older, told):
    found = asking("policy-shielded")(observed(), observed(**OLDER, **older))
    assert [one.name for one in found] == (["sla"] if told else [])


def test_two_policies_together_may_shield_a_third():
    both = observed(taints=[{"key": "a"}, {"key": "example.com/*"}])
    first = observed(name="a", created="2025-01-01T00:00:00Z", key="a")
    second = observed(name="b", created="2025-01-01T00:00:00Z", key="example.com/*")
    (found,) = asking("policy-shielded")(both, first, second)
    assert (found.name, "a, b come first for each of its taints" in found.message) == ("sla", True)
    assert asking("policy-shielded")(both, first) == []
