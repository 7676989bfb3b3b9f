"""Policies that are invalid, asleep, or about the wrong taints."""

import pytest

from cli.doctor.scene import asking, named
from cli.policies import condition
from cli.world import budget, pod, policy, profile, taint, toleration
from taintwarden.controller.words import wording
from taintwarden_cli.doctor.doctor_snapshot import MissingRights

problem, wide, idle = map(asking, ("policy-problem", "policy-too-wide", "policy-never-acts"))
STATUS = {"observedGeneration": 1}
FINE = [condition("Accepted", "True"), condition("GuardTripped", "False", reason="Armed")]
GUARD = {"trippedAt": "2026-01-31T12:00:00.000000Z", "cause": "taint sla=900"}


def observed(*conditions, created="2026-01-01T00:00:00Z", name="sla", **spec):
    made = policy(name, created=created, **spec)
    made["metadata"]["generation"] = 1
    made["status"] = STATUS | {"conditions": [*FINE, *conditions]}
    return made


@pytest.mark.parametrize(
    "check",
    [
        "problem", "never-acts", "too-wide",
    ],
)  # fmt: skip
def test_good_policy_is_no_finding(check):
    ask = asking(f"policy-{check}")
    assert ask(observed(), observed(name="other", key="spot"), named("a1", taint("980"))) == []


def test_policy_that_cannot_be_read_is_found():
    (found,) = problem(observed(mode="Sometimes"))
    assert (found.severity, "spec.mode" in found.message) == ("error", True)


def test_policy_that_the_operator_refused_is_found():
    refused = observed()
    refused["status"]["conditions"] = [condition("Accepted", "False", "spec.taints: no")]
    (found,) = problem(refused)
    assert "spec.taints: no" in found.message
    assert found.remedy == "kubectl edit taintevictionpolicy sla"


def hindered(**status):
    made = observed(*status.pop("conditions", ()))
    made["status"] |= status
    return made


def limit(name: str):
    return {"limit": name, "pods": 3, "since": "2026-01-31T11:50:00Z"}


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (hindered(limits=[limit("failing")]), "eviction calls fail or hang"),
        (
            hindered(limits=[limit("failing") | {"message": "denied"}]),
            "eviction calls fail or hang: denied",
        ),
        (hindered(conditions=[condition("Progressing", "False", "no changes of pods", "Blind")]), "no changes of pods"),
    ],
    ids=["failing", "denied", "blind"],
)
def test_policy_that_is_valid_and_has_a_problem_is_not_called_invalid(stored, why):
    (found,) = problem(stored)
    assert (found.severity, found.message.startswith(why)) == ("error", True), found.message


TRIPPED = condition("GuardTripped", "True", "120 pods", "MassEviction")
STUCK = {"namespace": "shop", "name": "web-0", "node": "a1", "since": "2026-01-31T11:00:00Z"}


def test_each_problem_has_its_own_remedy():
    halted, stuck = problem(hindered(stuck=[STUCK], guard=GUARD, conditions=[TRIPPED]))
    assert (stuck.message[:10], stuck.remedy[:27]) == ("shop/web-0", "taintwarden explain node a1")
    assert (halted.message[:10], halted.remedy[:21]) == ("its guard ", "taintwarden pause sla")


@pytest.mark.parametrize(("spec", "found"), [({"maxUnavailable": 0}, 0), ({"minAvailable": 1}, 1)])
def test_a_wait_for_a_budget_that_never_allows_is_found_once(spec, found):
    since = {"since": "2026-01-31T11:00:00Z", "message": "PodDisruptionBudget shop/web allows no disruption now"}
    blocked = [{"namespace": "shop", "name": "web", "pods": 3}]
    waiting = hindered(limits=[limit("budget") | since], blockedBudgets=blocked)
    assert len(problem(waiting, budget("web", **spec))) == found


def test_a_wait_for_budgets_that_are_not_known_is_reported():
    unknown = {"since": "2026-01-31T11:00:00Z", "message": "the budgets are not known"}
    assert len(problem(hindered(limits=[limit("budget") | unknown]))) == 1


@pytest.mark.parametrize("status", [{}, {"observedGeneration": 0}])
def test_policy_that_no_operator_observed_is_found(status):
    fresh = observed()
    fresh["status"] = status
    assert len(problem(fresh)) == 1


def test_tripped_guard_is_found():
    shut = observed()
    shut["status"] |= {"guard": GUARD, "conditions": [FINE[0], TRIPPED]}
    (found,) = problem(shut)
    assert (found.severity, found.message) == ("error", "its guard has tripped: taint sla=900: 120 pods")
    assert found.remedy.startswith("taintwarden pause sla; correct the cause; taintwarden plan --enforce sla; ")


def test_tripped_guard_of_a_policy_version_not_yet_observed_is_found():
    shut = observed()
    shut["metadata"]["generation"] = 99
    shut["status"] |= {"guard": GUARD, "conditions": [FINE[0], TRIPPED]}
    assert {found.remedy.partition(" -")[0] for found in problem(shut)} >= {"kubectl get pods"}


@pytest.mark.parametrize(("rights", "found"), [(None, 1), (MissingRights("tw/taintwarden", ()), 0)])
def test_a_missing_right_is_left_to_its_own_check_where_that_is_made(rights, found):
    refused = observed()
    why = wording.not_replaced('User "x" cannot patch resource "deployments"')
    refused["status"] |= {"conditions": [FINE[0], condition("ReplacesFirst", "False", why)]}
    assert len(problem(refused, rights=rights)) == found


@pytest.mark.parametrize(("advice", "is_released"), [(". Release: taintwarden guard reset sla", True), ("", False)])
def test_zones_that_are_all_full_are_found(advice, is_released):
    full = observed()
    waiting = condition("GuardTripped", "True", f"120 pods wait{advice}", "AllNodesUnhealthy")
    full["status"] |= {"guard": {}, "conditions": [FINE[0], waiting]}
    (found,) = problem(full)
    evicted = "only pods that you release are evicted" if is_released else "no pod is evicted"
    assert (found.severity, found.message) == ("error", f"120 pods wait: all nodes are unhealthy, so {evicted}")
    assert found.remedy.endswith("taintwarden guard reset sla") is is_released


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
    found = wide(observed(taints=[{"key": key, "effects": [effect]}]), node)
    assert bool(found) is told


@pytest.mark.parametrize(
    "marker",
    [
        "cloud.google.com/gke-preemptible", "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
        "nvidia.com/gpu",
    ],
)  # fmt: skip
def test_markers_of_clouds_and_autoscalers_are_known(marker):
    assert len(wide(observed(key=marker), named("a1"))) == 1


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
def test_only_a_pattern_that_selects_cordons_is_found(key, effects, told):
    found = wide(observed(taints=[{"key": key, "effects": effects}]), named("a1"))
    assert bool(found) is told


def test_star_without_a_matching_node_is_no_finding():
    assert wide(observed(taints=[{"key": "*"}]), named("a1")) == []


def test_policy_that_selects_no_node_is_found():
    pool = {"matchLabels": {"pool": "spot"}}
    assert len(idle(observed(nodeSelector=pool), named("a1"))) == 1
    assert idle(observed(nodeSelector=pool), named("a1", pool="spot")) == []
    assert idle(observed(nodeSelector=pool)) == []  # nor does it say much where there is no node


# -- keys that are on no node -----------------------------------------------------------------------------------------


def test_mistyped_key_is_found():
    first = named("a1", taint("980"), taint("980", effect="NoSchedule"))
    (found,) = idle(observed(key="slo"), first, named("a2", taint("970")))
    assert found.message == "no node has a taint slo; 2 nodes have sla, on which no policy acts"
    assert found.remedy == "kubectl edit taintevictionpolicy sla; or: taintwarden init --key sla"


def test_key_that_only_nodes_not_selected_have_is_found():
    mistyped = observed(nodeSelector={"matchLabels": {"pool": "a"}}, taints=[{"key": "sla", "valueType": "Integer"}])
    (found,) = idle(mistyped, named("a1", pool="a"), named("b1", taint("980"), pool="b"))
    assert found.message == "none of the nodes that it selects has a taint sla, which others have"


GT = toleration("Gt", "950", key="tier")


@pytest.mark.parametrize(
    "world",
    [
        [observed(taints=[{"key": "tier", "valueType": "Integer"}])],
        [observed(key="tier"), pod(extended=[GT])],
        [observed(key="tier"), pod(), profile("p", GT, app="web")],
    ],
    ids=["value-type", "annotation", "profile"],
)
def test_a_key_whose_values_are_compared_is_on_no_node(world):
    (found,) = idle(*world, named("a1", taint("980", "other.io/x")), observed(name="other", key="other.io/x"))
    assert found.message == "no node has a taint tier, whose values are compared"


@pytest.mark.parametrize(
    "world",
    [
        [observed(key="sla")],
        [observed(key="aws-node-termination-handler/spot-itn")],
        [observed(taints=[{"key": "example.com/removed", "valueType": "String"}])],
        [observed(key="node.kubernetes.io/out-of-service")],
        [observed(key="slo"), observed(name="other", key="sla")],
        [observed(key="example.com/*")],
    ],
    ids=["present", "signal", "signal-with-a-text", "system-taint", "another-policy-has-it", "pattern"],
)
def test_key_that_may_be_added_later_is_no_finding(world):
    node = named("a1", taint("980"), taint("", "node.kubernetes.io/unschedulable", "NoSchedule"))
    assert idle(*world, node) == []
