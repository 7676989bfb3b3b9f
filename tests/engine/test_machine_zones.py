"""Zone health: whose taints count, which nodes without pods do, and what happens while every zone is Full."""

from typing import Any

import msgspec
import pytest

from engine.rig import START, ZONE, Rig, exists, gt, limited
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.draining import MAX_SAMPLES
from taintwarden.engine.model import GuardAction, GuardSettings, Policy, Profile, Toleration, ZoneHealth
from taintwarden.engine.selectors import LabelSelector

HEALTH = ZoneHealth(min_nodes=1)


def health(name: str = "p", key: str = "sla", mode: str = "Enforce", **limits: object) -> Policy:
    return limited(name, spec={"taints": [{"key": key}], "mode": mode}, zone_health=HEALTH, **limits)


def fleet(rig: Rig, *zones: str, value: str = "980", pods: bool = True) -> None:
    """A node with one pod in each of these zones."""
    for number, zone in enumerate(zones):
        rig.node(f"n{number}", f"sla={value}", labels={ZONE: zone})
        if pods:
            rig.pod(f"p{number}", gt(), node=f"n{number}")


def spoil(rig: Rig, *zones: str, value: str = "0") -> None:
    for number, zone in enumerate(zones):
        rig.node(f"n{number}", f"sla={value}", labels={ZONE: zone})


def states(rig: Rig, name: str = "p") -> list[tuple[str, str, int, int]]:
    [report] = [one for one in rig.view.report(rig.now) if one.policy.name == name]
    return [(one.zone, str(one.state), one.nodes, one.degraded_nodes) for one in report.zones]


def test_taints_that_another_policy_acts_on_do_not_count():
    rig = Rig(health("p"), health("dry", key="cni", mode="DryRun"))
    fleet(rig, "a", "b")
    for number, zone in enumerate("ab"):
        rig.node(f"n{number}", "sla=980", "cni=1", labels={ZONE: zone})
    assert states(rig) == [("a", "Normal", 1, 0), ("b", "Normal", 1, 0)]
    assert states(rig, "dry") == [("a", "Full", 1, 1), ("b", "Full", 1, 1)]


def test_a_second_taint_that_evicts_counts_for_its_own_policy():
    rig = Rig(health("p"), health("q", key="cni"))
    fleet(rig, "a", "b")
    rig.node("n0", "sla=0", "cni=1", labels={ZONE: "a"})
    assert states(rig, "p")[0] == ("a", "Full", 1, 1)
    assert states(rig, "q")[0] == ("a", "Full", 1, 1)


def test_a_bad_node_without_pods_is_no_refuge_and_does_not_count():
    """All nodes fall to 0, and one of them happens to be empty: that is no healthier."""
    rig = Rig(health())
    fleet(rig, "a", "b", "c")
    rig.gone("p2", node="n2")
    spoil(rig, "a", "b", "c")
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Full", 1, 1)]
    assert rig.world.limiter.zones.all_full("p")


def test_a_good_node_without_pods_is_a_refuge():
    rig = Rig(health())
    fleet(rig, "a")
    rig.node("spare", "sla=990", labels={ZONE: "b"})
    spoil(rig, "a")
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Normal", 1, 0)]


def test_a_node_without_the_taint_is_a_refuge():
    rig = Rig(health())
    fleet(rig, "a")
    rig.node("spare", labels={ZONE: "b"})
    spoil(rig, "a")
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Normal", 1, 0)]


@pytest.mark.parametrize("taint", ["control-plane:NoSchedule", "cordoned:NoExecute"])
def test_a_node_that_other_taints_reserve_is_none(taint):
    rig = Rig(health())
    fleet(rig, "a")
    rig.node("reserved", taint, labels={ZONE: "b"})
    spoil(rig, "a")
    assert states(rig) == [("a", "Full", 1, 1)]


def test_a_cheap_node_is_no_refuge_for_those_that_want_more():
    rig = Rig(health())
    rig.node("cheap", "sla=500", labels={ZONE: "b"})
    fleet(rig, "a")
    spoil(rig, "a", value="900")
    assert states(rig) == [("a", "Full", 1, 1)]


def test_nodes_without_pods_count_again_when_no_pod_has_to_leave_any_more():
    rig = Rig(health())
    fleet(rig, "a", "b")
    rig.gone("p1", node="n1")
    spoil(rig, "a", "b")
    rig.node("n0", "sla=980", labels={ZONE: "a"})
    rig.wake()
    assert states(rig) == [("a", "Normal", 1, 0), ("b", "Normal", 1, 0)]


def test_a_drained_node_does_not_recover_because_its_pods_are_gone():
    rig = Rig(health(guard=None))
    fleet(rig, "a", "b")
    spoil(rig, "a")
    rig.gone("p0", node="n0")
    rig.wake()
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Normal", 1, 0)]


def test_it_recovers_with_its_value():
    rig = Rig(health())
    fleet(rig, "a", "b")
    spoil(rig, "a")
    rig.gone("p0", node="n0")
    rig.node("n0", "sla=980", labels={ZONE: "a"})
    rig.pod("new", gt(), node="n0", bound_at=rig.wall)
    rig.node("n0", "sla=981", labels={ZONE: "a"})
    assert states(rig) == [("a", "Normal", 1, 0), ("b", "Normal", 1, 0)]
    assert rig.machine._judging._draining._departed == {}


# -- who has a say -----------------------------------------------------------------------------------------------------


def attacked(*more: str, **attack: Any) -> Rig:
    """Healthy nodes with a pod each, and on one of them a pod that wants what no node has."""
    rig = Rig(health())
    fleet(rig, "a", "b", *more)
    attack = {"namespace": "evil", "bound_at": START + 10} | attack
    rig.pod("evil", gt("999999"), node="n0", **attack)
    rig.node("n0", "sla=981", labels={ZONE: "a"})
    return rig


def test_a_pod_whose_tolerations_no_value_satisfied_drains_nothing():
    rig = attacked("c")
    assert "evil" in rig.claimed() or rig.evictions() == ["evil"]
    assert {state for _, state, *_ in states(rig)} == {"Normal"}


def test_neither_does_one_that_asks_for_more_later():
    rig = Rig(health())
    fleet(rig, "a", "b")
    rig.pod("evil", gt("900"), node="n0", namespace="evil")
    rig.advance(60, step=5.0)
    rig.pod("evil", gt("999999"), node="n0", namespace="evil")
    assert {state for _, state, *_ in states(rig)} == {"Normal"}


def test_one_pod_of_many_does_not_drain_its_node_for_all():
    rig = Rig(health())
    fleet(rig, "a", "b")
    for number in range(3):
        rig.pod(f"humble-{number}", gt("100"), node="n0")
    rig.node("n0", "sla=940", labels={ZONE: "a"})
    assert states(rig)[0] == ("a", "Normal", 1, 0)


def test_pods_of_two_namespaces_do():
    rig = Rig(health())
    fleet(rig, "a", "b")
    rig.pod("other", gt(), node="n0", namespace="bank")
    for number in range(6):
        rig.pod(f"humble-{number}", gt("100"), node="n0")
    rig.node("n0", "sla=940", labels={ZONE: "a"})
    assert states(rig)[0] == ("a", "Full", 1, 1)


def test_what_one_pod_said_is_forgotten_with_it():
    """It cannot speak for other nodes once it is gone."""
    rig = Rig(health())
    fleet(rig, "a")
    rig.node("cheap", "sla=500", labels={ZONE: "b"})
    spoil(rig, "a", value="900")
    assert [zone for zone, *_ in states(rig)] == ["a"]
    rig.gone("p0", node="n0")
    rig.wake()
    assert [zone for zone, *_ in states(rig)] == ["a", "b"]
    assert rig.machine._judging._draining._classes == {}


def test_what_pods_said_is_kept_for_the_policy_that_still_needs_it():
    rig = Rig(health("p", "sla"), health("q", "other"))
    for node, key in (("n0", "sla"), ("n1", "other")):
        rig.node(node, labels={ZONE: "a"})
        rig.pod(f"pod-{node}", gt(), node=node)
        rig.node(node, f"{key}=0", labels={ZONE: "a"})
    draining = rig.machine._judging._draining
    for node, policies in (("n0", ["q"]), ("n1", [])):
        rig.node(node, labels={ZONE: "a"})
        assert list(draining._samples) == policies
        assert len(draining._classes) == len(policies)


def test_of_many_who_have_to_leave_the_first_speak_for_other_nodes():
    rig = Rig(health())
    for number in range(MAX_SAMPLES + 1):
        rig.node(f"n{number}", "sla=980", labels={ZONE: "a"})
        rig.pod(f"p{number}", gt(str(951 + number)), node=f"n{number}")
        rig.node(f"n{number}", "sla=0", labels={ZONE: "a"})
    rig.node("silent", "sla=951", labels={ZONE: "b"})
    assert [zone for zone, *_ in states(rig)] == ["a"]
    stale = rig.machine._judging._draining._stale
    for number, again in ((MAX_SAMPLES, []), (0, ["silent"])):
        rig.feed(events.NodeGone(f"n{number}"))
        assert list(stale) == again
        rig.wake()
    assert [zone for zone, *_ in states(rig)] == ["a"]


def test_a_node_that_two_policies_drain_is_drained_by_each_for_its_own_taint():
    rig = Rig(health("p", "sla"), health("q", "other"))
    rig.node("n0", "sla=980", "other=980", labels={ZONE: "a"})
    rig.pod("a", gt(), Toleration("other", "Gt", "950"), node="n0")
    rig.node("n0", "sla=0", "other=0", labels={ZONE: "a"})
    rig.gone("a", node="n0")
    rig.node("n0", "sla=0", labels={ZONE: "a"})
    assert [states(rig, name)[0][1] for name in "pq"] == ["Full", "Normal"]


def test_six_small_zones_that_all_fall_are_full():
    reports = GuardSettings(action=GuardAction.REPORT)
    rig = Rig(limited(spec={"taints": [{"key": "sla"}]}, zone_health=ZoneHealth(), guard=reports))
    fleet(rig, *"aabbcc")
    rig.out = []
    spoil(rig, *"aabbcc")
    rig.advance(5)
    assert rig.evictions() == []
    assert rig.world.limiter.zones.all_full("p")


def held(rig: Rig) -> list[str]:
    return [claim.pod.name for claim in rig.view.all_claims() if claim.limit == "all-zones-full"]


def everything_full(**limits: object) -> Rig:
    settle = GuardSettings(settle_seconds=1, min_pods=50)
    rig = Rig(health(guard=settle, **limits))
    fleet(rig, "a", "b")
    rig.out = []
    spoil(rig, "a", "b")
    rig.advance(3)
    return rig


def test_while_every_zone_is_full_that_is_reported_once():
    rig = everything_full()
    rig.advance(10)
    [told] = rig.take(commands.EvictionsHalted)
    assert (told.policy.name, told.zones, told.waiting) == ("p", 2, 2)
    assert held(rig) == ["p0", "p1"]
    assert rig.view.report(rig.now)[0].all_zones_full


def test_its_end_is_reported():
    rig = everything_full()
    rig.node("n1", "sla=980", labels={ZONE: "b"})
    rig.advance(1)
    assert [one.policy.name for one in rig.take(commands.EvictionsResumed)] == ["p"]


def test_a_person_releases_exactly_the_pods_that_are_held():
    rig = everything_full()
    rig.feed(events.GuardReset("p", "3"))
    rig.wake()
    rig.pod("later", gt(), node="n0", bound_at=rig.wall)
    for _ in range(40):
        rig.save()
        rig.advance(0.25)
    assert rig.evictions() == ["p0", "p1"]
    assert held(rig) == ["later"]


def test_pods_that_come_to_a_taint_that_all_nodes_have_leave_when_their_time_is_over():
    """A taint that stays and is tolerated for a while is no fault of the monitoring."""
    rig = Rig(health())
    spoil(rig, "a", "b")
    for number in range(2):
        tolerant = exists(toleration_seconds=60)
        rig.pod(f"p{number}", tolerant, node=f"n{number}", bound_at=START + 5)
    rig.advance(70)
    assert {state for _, state, *_ in states(rig)} == {"Normal"}
    assert rig.evictions() == ["p0", "p1"]


def test_each_reset_releases_the_pods_of_its_time_while_all_nodes_keep_the_taint():
    """It looks like a fault of the monitoring until the taint is gone from some node."""
    rig = everything_full()
    for generation in range(2):
        rig.feed(events.GuardReset("p", str(generation)))
        rig.wake()
        for _ in range(40):
            rig.save()
            rig.advance(0.25)
        evicted = rig.evictions()
        assert evicted == [f"p{number + 2 * generation}" for number in range(2)]
        for number, name in enumerate(evicted):
            rig.settle(name)
            rig.gone(name, node=f"n{number}")
            rig.pod(f"p{number + 2 * generation + 2}", gt(), node=f"n{number}", bound_at=rig.wall)
        rig.advance(60)
        assert rig.evictions() == []
    rig.node("n0", labels={ZONE: "a"})
    rig.save()
    rig.wake()
    assert rig.evictions() == ["p5"]


def test_a_small_cluster_has_a_guard_by_default():
    """25 pods on 3 nodes, every value at 0."""
    rig = Rig(limited(guard=GuardSettings(settle_seconds=0)))
    for node in range(3):
        rig.node(f"n{node}", "sla=980")
    for number in range(25):
        rig.pod(f"p{number}", gt(), node=f"n{number % 3}")
    for node in range(3):
        rig.node(f"n{node}", "sla=0")
    assert [one.limit for one in rig.take(commands.GuardTripped)] == [12]


def test_one_node_of_a_small_cluster_may_be_drained():
    rig = Rig(limited(guard=GuardSettings(settle_seconds=0)))
    for number in range(25):
        rig.pod(f"p{number}", gt(), node=f"n{number % 3}")
    for node in range(3):
        rig.node(f"n{node}", "sla=980")
    rig.node("n0", "sla=0")
    assert rig.take(commands.GuardTripped) == []


def test_a_drained_node_is_no_healthier():
    rig = Rig(health())
    fleet(rig, "a", "b")
    spoil(rig, "a")
    rig.settle("p0")
    rig.gone("p0", node="n0")
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Normal", 1, 0)]


def test_a_pod_that_comes_to_a_drained_node_does_not_shorten_the_incident():
    """It would have stayed on the node of the other zone at first; the pod that was evicted would not."""
    rig = Rig(health())
    rig.node("n1", "sla=960", labels={ZONE: "a"})
    rig.node("n2", "sla=980", labels={ZONE: "b"})
    rig.advance(7_200, step=600.0)
    rig.pod("first", gt("950"), node="n1")
    rig.node("n1", "sla=940", labels={ZONE: "a"})
    rig.node("n2", "sla=940", labels={ZONE: "b"})
    rig.settle("first")
    rig.gone("first", "n1")
    before = states(rig)
    rig.pod("second", gt("970"), node="n1", bound_at=rig.wall)
    assert states(rig) == before
    rig.gone("second", "n1")
    assert states(rig) == before


def test_pods_of_nodes_that_are_too_few_to_say_anything_leave_when_the_last_other_node_is_gone():
    slow = {"taints": [{"key": "sla"}], "timing": {"violationGraceSeconds": 10}}
    rig = Rig(limited(spec=slow, zone_health=ZoneHealth(min_nodes=3)))
    fleet(rig, "a", "a", "a")
    spoil(rig, "a", "a", "a")
    rig.advance(20, step=1.0)
    assert rig.evictions() == []
    rig.feed(events.NodeGone("n2"))
    rig.wake()
    assert sorted(rig.evictions()) == ["p0", "p1"]


def counted(rig: Rig) -> tuple[list[tuple[str, str, int, int]], list[tuple[str, str, int, int]]]:
    """The zones, and the zones when every node is counted again."""
    rig.wake()
    before = states(rig)
    rig.machine._judging.all_again()
    rig.wake()
    return before, states(rig)


def test_a_bad_node_whose_last_content_pod_is_gone_does_not_count_any_more():
    rig = Rig(health())
    fleet(rig, "a", "b")
    rig.node("n2", "sla=980", labels={ZONE: "c"})
    rig.pod("humble", gt("100"), node="n2")
    spoil(rig, "a", "b", "c", value="940")
    assert states(rig)[2] == ("c", "Normal", 1, 0)
    rig.gone("humble", node="n2")
    now, again = counted(rig)
    assert now == again == [("a", "Full", 1, 1), ("b", "Full", 1, 1)]
    assert [one.all_zones_full for one in rig.view.report(rig.now)] == [True]


def test_a_node_on_which_only_pods_remain_that_have_to_leave_is_drained():
    rig = Rig(health(node_max_concurrent=0))
    fleet(rig, "a")
    for number in range(5):
        rig.pod(f"humble-{number}", gt("100"), node="n0")
    spoil(rig, "a", value="940")
    assert states(rig) == [("a", "Normal", 1, 0)]
    for number in range(5):
        rig.gone(f"humble-{number}", node="n0")
    now, again = counted(rig)
    assert now == again == [("a", "Full", 1, 1)]


def test_a_node_recovers_when_the_pods_that_left_it_could_stay_by_a_profile():
    rig = Rig(health())
    fleet(rig, "a", "b")
    spoil(rig, "a", value="940")
    rig.gone("p0", node="n0")
    rig.wake()
    assert states(rig)[0] == ("a", "Full", 1, 1)
    rig.feed(events.ProfileSeen(Profile("shop", "humble", LabelSelector(), (gt("100"),))))
    now, again = counted(rig)
    assert now == again == [("a", "Normal", 1, 0), ("b", "Normal", 1, 0)]


def test_a_node_recovers_when_its_last_pod_that_has_to_leave_asks_for_less():
    rig = Rig(health())
    fleet(rig, "a")
    rig.pod("humble", gt("100"), node="n0")
    spoil(rig, "a", value="940")
    assert states(rig) == [("a", "Full", 1, 1)]
    rig.pod("p0", gt("100"), node="n0")
    now, again = counted(rig)
    assert now == again == [("a", "Normal", 1, 0)]


def test_nodes_are_counted_again_some_pods_at_a_time():
    """One step for thousands of nodes with pods would stop everything else."""
    rig = Rig(health(), slice_size=10)
    fleet(rig, "a")
    for number in range(4):
        rig.node(f"silent{number}", "sla=1", labels={ZONE: "b"})
        for one in range(9):
            rig.pod(f"{number}-{one}", exists(), node=f"silent{number}")
    rig.feed(events.NodeSeen(msgspec.structs.replace(rig.node("n0", "sla=980"), taints=rig.make_taints("sla=0"))))
    left = []
    while stale := len(rig.machine._judging._draining._stale):
        left.append(stale)
        rig.feed(events.Woke())
    assert left == [4, 3, 2, 1]


def test_a_time_of_long_ago_makes_no_pod_come_later():
    """Taints that appear while their nodes are watched, and state that they are a week old, drain these nodes."""
    rig = Rig(health())
    for number, zone in enumerate("ab"):
        rig.node(f"n{number}", labels={ZONE: zone})
        rig.pod(f"p{number}", gt(), node=f"n{number}")
    for number, zone in enumerate("ab"):
        rig.node(f"n{number}", "sla=0", labels={ZONE: zone}, added=START - 7 * 86_400.0)
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Full", 1, 1)]
