"""Zone health: whose taints count, which nodes without pods do, and what happens while every zone is Full."""

from engine.rig import ZONE, Rig, gt, limited
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import GuardSettings, Policy, ZoneHealth

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


def test_a_node_without_pods_to_lose_is_part_of_the_incident():
    """All nodes fall to 0, and one of them happens to be empty: that is no healthier."""
    rig = Rig(health())
    fleet(rig, "a", "b", "c")
    rig.gone("p2", node="n2")
    rig.out = []
    spoil(rig, "a", "b", "c")
    assert [state for _, state, *_ in states(rig)] == ["Full", "Full", "Full"]


def test_a_node_that_never_was_good_enough_is_a_cheap_one():
    rig = Rig(health())
    rig.node("cheap", "sla=500", labels={ZONE: "b"})
    rig.advance(7_200, step=600.0)
    fleet(rig, "a")
    rig.advance(10)
    spoil(rig, "a", value="900")
    assert states(rig) == [("a", "Full", 1, 1), ("b", "Normal", 1, 0)]


def test_a_node_counts_no_more_when_the_witness_has_nothing_to_say():
    rig = Rig(health())
    fleet(rig, "a", "b")
    rig.gone("p1", node="n1")
    spoil(rig, "a", "b")
    rig.node("n0", "sla=980", labels={ZONE: "a"})
    rig.wake()
    assert states(rig) == [("a", "Normal", 1, 0), ("b", "Normal", 1, 0)]


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
