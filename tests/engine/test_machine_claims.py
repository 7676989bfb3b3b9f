"""Several policies want the same pod gone: each claim meets its own limits, and the first that is admitted evicts."""

import msgspec

from engine.kept import kept
from engine.rig import Rig, gt, limited, owner
from taintwarden.engine import events
from taintwarden.engine.limit_settings import PerWorkload
from taintwarden.engine.machine import Phase
from taintwarden.engine.model import Profile
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy, Reclaim, Window
from taintwarden.engine.selectors import LabelSelector

NEVER = (Window("0 0 29 2 *", 60),)
"""A window that opens on leap days."""
ONE = PerWorkload(1)


def keyed(name: str, key: str, **limits: object) -> Policy:
    return limited(name, spec={"taints": [{"key": key}]}, **limits)


def closed(name: str, key: str) -> Policy:
    """A policy whose window never opens."""
    return msgspec.structs.replace(keyed(name, key), windows=NEVER)


def test_a_policy_that_blocks_a_pod_does_not_hide_another_with_a_hard_deadline():
    sla = keyed("sla", "sla", per_workload=ONE)
    spot = msgspec.structs.replace(keyed("spot", "spot"), reclaim=Reclaim(120))
    rig = Rig(sla, spot)
    rig.wants(owner(), 2)
    rig.node("n1", "sla=980")
    rig.pod("a", gt(), owner=owner(), ready=True)
    rig.node("n1", "sla=940")
    assert rig.evictions() == []
    rig.node("n1", "sla=940", "spot=1", added=rig.wall)
    assert rig.evictions() == ["a"]


def test_every_claim_is_reported():
    rig = Rig(closed("shut", "sla"), closed("closed", "cni"))
    rig.pod("a")
    rig.node("n1", "sla=1", "cni=1")
    assert [(one.policy.name, one.limit) for one in rig.view.claims("uid-a")] == [
        ("closed", "window"),
        ("shut", "window"),
    ]
    assert [one.status.pending for one in rig.report()] == [1, 1]


def test_a_pod_is_asked_for_once():
    rig = Rig(keyed("x", "sla"), keyed("y", "cni"))
    rig.pod("a")
    rig.node("n1", "sla=1", "cni=1")
    assert rig.evictions() == ["a"]
    assert [(one.policy.name, one.phase.name) for one in rig.view.claims("uid-a")] == [
        ("x", "IN_FLIGHT"),
        ("y", "BLOCKED"),
    ]
    rig.node("n1", "sla=1")
    rig.settle("a")
    assert rig.phase("a") is Phase.ACCEPTED


def test_a_claim_that_is_withdrawn_is_no_cancellation_while_another_stands():
    rig = Rig(keyed("x", "sla"), keyed("y", "cni"))
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940", "cni=1:NoSchedule")
    rig.change(keyed("x", "sla"), limited("y", spec={"taints": [{"key": "cni", "effects": ["NoSchedule"]}]}))
    rig.out = []
    rig.node("n1", "cni=1:NoSchedule")
    assert "Cancelled a" not in rig.notices()


def test_a_dry_run_continues_during_an_eviction():
    rig = Rig(keyed("real", "sla"), limited("dry", spec={"taints": [{"key": "cni"}], "mode": "DryRun"}))
    rig.pod("a")
    rig.node("n1", "sla=1", "cni=1")
    assert {type(one).__name__ for one in rig.out} >= {"Evict", "Rehearsed"}


def test_a_pod_whose_eviction_had_no_effect_is_evaluated_as_it_is_now():
    """The eviction was accepted, and the pod opted out meanwhile."""
    rig = Rig().with_pod("sla=940", gt())
    rig.settle("a")
    rig.pod("a", gt(), do_not_evict=True)
    rig.out = []
    rig.advance(5)
    rig.process(events.PodChecked("uid-a", True))
    assert rig.notices() == ["CheckPod a", "Cancelled a"]
    rig.advance(60)
    assert rig.evictions() == []


def test_a_wall_clock_stepped_back_makes_no_retry_longer():
    rig = Rig().with_pod("sla=940", gt())
    rig.settle("a", Outcome.BLOCKED)
    rig.out = []
    rig.wall -= 3_600
    for _ in range(20):
        rig.monotonic += 0.25
        rig.wake()
    assert rig.phase("a") is Phase.WAITING, "the deadline itself is wall time"
    rig.wall += 3_600
    rig.wake()
    assert rig.evictions() == ["a"]


def test_only_nodes_with_pods_that_other_policies_select_are_judged_again():
    wanted = limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    rig = Rig(wanted)
    rig.feed(events.NamespaceSeen("shop", {}), events.NamespaceSeen("bank", {}))
    for name, namespace in (("n1", "shop"), ("n2", "bank")):
        rig.node(name, "sla=940")
        rig.pod(f"on-{name}", gt(violation_grace_seconds=60), node=name, namespace=namespace)
    rig.feed(events.NamespaceSeen("shop", {"team": "a"}))
    assert {name: list(nodes) for name, nodes in rig.machine._backlog.shares.items()} == {"shop": ["n1"]}
    rig.wake()
    assert rig.claimed() == ["on-n1"]
    assert kept(rig.machine, "shop", without=rig.world) == []


def test_more_namespaces_than_pods_in_a_slice_are_evaluated_in_turn():
    rig = Rig(slice_size=1).with_pod("sla=940", gt("900"))
    rig.pod("b", gt("900"), namespace="bank")
    rig.feed(*(events.ProfileSeen(Profile(name, "x", LabelSelector(), (gt(),))) for name in ("shop", "bank")))
    rig.wake()
    assert sorted(rig.claimed()) == ["a", "b"]


def test_a_namespace_that_changes_nothing_for_any_pod_costs_nothing():
    wanted = limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    rig = Rig(wanted)
    rig.feed(events.NamespaceSeen("shop", {"team": "a"}))
    rig.node("n1", "sla=940")
    rig.pod("a", gt(violation_grace_seconds=60))
    rig.feed(events.NamespaceSeen("shop", {"team": "a", "note": "new"}), events.NamespaceSeen("empty", {}))
    assert rig.machine.wake_after(rig.now) != 0.0


def test_what_was_due_by_a_clock_that_was_ahead_waits_again_once_the_clock_is_right():
    """A limit held the second pod until the clock was set back: then it has a minute left."""
    rig = Rig(keyed("p", "sla", evictions_per_second=0.5, burst=1))
    rig.pod("a", gt(violation_grace_seconds=60))
    rig.pod("b", gt(violation_grace_seconds=60))
    rig.node("n1", "sla=940")
    rig.wall += 3_600
    rig.wake()
    assert rig.evictions() == ["a"]
    rig.wall -= 3_600
    rig.advance(30)
    assert rig.evictions() == []
    rig.advance(31)
    assert rig.evictions() == ["b"]
