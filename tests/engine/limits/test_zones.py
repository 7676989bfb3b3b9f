"""Zones: their health by the share of unhealthy nodes, and what that delays."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import ask
from engine.rig import ZONE, limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import ZoneHealth
from taintwarden.engine.limits import EvictionRequest, FreedKeys, Refusal
from taintwarden.engine.limits.protocol import policy_key
from taintwarden.engine.limits.rates import Rates
from taintwarden.engine.limits.refusal import ZONE as ZONE_LIMIT
from taintwarden.engine.limits.refusal import RefusalScope
from taintwarden.engine.limits.zones import REGION_LABEL, Zones, ZoneState, key_of, zone_of
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Tolerations, WallTime
from taintwarden.engine.policy import Policy, Reclaim

NORMAL, DEGRADED, FULL = ZoneState
HEALTH = ZoneHealth((), threshold=0.55, evictions_per_second=2.0)
SHARED = Interner().pod_class("shop", {}, Tolerations())


class Bench:
    """Zones of one policy or more, with nodes by name, at a time when all buckets are full."""

    def __init__(self, *policies: Policy) -> None:
        self.freed = FreedKeys()
        self.zones = Zones(self.freed)
        self.rates = Rates(None, self.zones)
        self.seconds = 1_000.0
        self.policies = policies or (limited(zone_health=HEALTH),)
        self.configure(*self.policies)

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.seconds), MonotonicTime(self.seconds))

    def configure(self, *policies: Policy) -> None:
        self.zones.configure(policies, self.now)
        self.freed.take()

    def count(self, node: str, zone: str = "z1", *, bad: bool = False, policies: str = "p") -> None:
        self.zones.count_node(node, {ZONE: zone}, dict.fromkeys(policies, bad))

    def fill(self, zone: str = "z1", *, nodes: int, bad: int, policies: str = "p") -> "Bench":
        """Add `nodes` nodes to a zone, named ``z1-0`` and so on; the first `bad` of them are unhealthy."""
        for number in range(nodes):
            self.count(f"{zone}-{number}", zone, bad=number < bad, policies=policies)
        self.freed.take()
        return self

    def states(self, policy: str = "p") -> dict[str, ZoneState]:
        return {name: state for name, state, _, _ in self.zones.table(policy)}

    def request(self, zone: str = "z1", **more: Any) -> EvictionRequest:
        policy = more.pop("policy", self.policies[0])
        return ask(Pod("a", "a", "n1", SHARED, 0.0, 1), policy, zone=zone, now=self.now, **more)

    def refuse(self, **more: Any) -> Refusal | None:
        return self.zones.admit(self.request(**more))

    def count_admitted(self, zone: str = "z1") -> int:
        """Number of pods of a zone that are admitted at once."""
        for number in range(100):
            request = self.request(zone)
            if self.rates.admit(request) is not None:
                return number
            self.rates.reserve(request)
        return 100


# -- which zone a node is in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({REGION_LABEL: "eu", ZONE: "a"}, "eu/a"),
        ({REGION_LABEL: "us", ZONE: "a"}, "us/a"),
        ({ZONE: "a"}, "a"),
        ({REGION_LABEL: "eu"}, "eu"),
        ({REGION_LABEL: "eu", ZONE: ""}, "eu"),
        ({}, "none"),
    ],
)
def test_a_zone_is_the_pair_of_region_and_zone(labels, name):
    assert zone_of(labels) == name


# -- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "bad", "state"),
    [
        (3, 0, NORMAL),
        (3, 1, NORMAL),
        (3, 2, DEGRADED),
        (3, 3, FULL),
        (20, 10, NORMAL),
        (20, 11, DEGRADED),
        (20, 19, DEGRADED),
        (20, 20, FULL),
        (1, 1, NORMAL),
        (2, 2, NORMAL),
    ],
)
def test_the_share_of_unhealthy_nodes_decides_the_state(nodes, bad, state):
    assert Bench().fill(nodes=nodes, bad=bad).zones.table("p") == [("z1", state, nodes, bad)]


@pytest.mark.parametrize(("threshold", "state"), [(0.25, DEGRADED), (0.26, NORMAL), (1.0, NORMAL)])
def test_a_zone_is_degraded_from_its_threshold_on(threshold, state):
    bench = Bench(limited(zone_health=ZoneHealth((), threshold=threshold)))
    assert bench.fill(nodes=4, bad=1).states() == {"z1": state}


# -- nodes come, change and go -----------------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_zone_without_nodes():
    bench = Bench().fill(nodes=3, bad=3)
    for number in range(3):
        bench.zones.forget_node(f"z1-{number}")
    bench.zones.forget_node("unknown")
    assert bench.freed.take() == [key_of("p", "z1"), policy_key("p")]
    assert bench.zones.table("p") == []
    assert not bench.zones.all_unhealthy("p")
    assert kept(bench.zones, "z1", "z1-0") == []


# -- all nodes are unhealthy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [{"z1": 3, "z2": 4}, {"z1": 1, "z2": 1, "z3": 1}, {"z1": 3, "z2": 2}])
def test_when_all_nodes_are_unhealthy_no_pod_goes(zones):
    bench = Bench()
    for zone, nodes in zones.items():
        bench.fill(zone, nodes=nodes, bad=nodes)
    detail = "all nodes are unhealthy, which looks like a fault of the monitoring"
    assert bench.refuse() == Refusal(ZONE_LIMIT, detail=detail)
    assert bench.zones.all_unhealthy("p")


def test_when_all_nodes_are_unhealthy_pods_before_a_hard_deadline_go():
    bench = Bench(msgspec.structs.replace(limited(zone_health=HEALTH), reclaim=Reclaim(120)))
    assert bench.fill(nodes=3, bad=3).refuse() is None
    assert bench.zones.table("p") == []


@pytest.mark.parametrize(("nodes", "bad"), [(3, 2), (1, 0)], ids=["degraded", "one node"])
def test_one_healthy_node_lets_the_pods_of_all_others_go(nodes, bad):
    bench = Bench().fill("z1", nodes=3, bad=3).fill("z2", nodes=nodes, bad=bad)
    assert bench.refuse() is None


def test_two_unhealthy_nodes_say_nothing_of_the_monitoring():
    bench = Bench().fill("z1", nodes=1, bad=1).fill("z2", nodes=1, bad=1)
    assert bench.refuse() is None


def test_the_zones_of_another_policy_hold_no_pod():
    bench = Bench(limited(zone_health=HEALTH), limited("q", zone_health=HEALTH))
    bench.fill(nodes=3, bad=3, policies="q")
    assert bench.refuse() is None
    assert bench.refuse(policy=limited("q")) is not None


# -- a Degraded zone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bad", "pods"), [(1, 100), (2, 2), (3, 2)], ids=["Normal", "Degraded", "Full"])
def test_degraded_and_full_zones_have_a_rate(bad, pods):
    bench = Bench().fill("z1", nodes=3, bad=bad).fill("z2", nodes=3, bad=0)
    assert bench.zones.is_slowed("p", "z1") == (pods < 100)
    assert bench.count_admitted() == pods
    assert bench.count_admitted("z2") == 100
    assert bench.count_admitted("of no node") == 100
    bench.seconds += 0.5
    assert bench.count_admitted() == (1 if pods < 100 else 100)


def test_the_refusal_names_the_zone_and_when_its_next_pod_may_go():
    bench = Bench().fill(nodes=3, bad=2)
    bench.count_admitted()
    refused = bench.rates.admit(bench.request())
    detail = "zone z1 is Degraded: 2 of 3 nodes are unhealthy"
    assert refused == Refusal(ZONE_LIMIT, MonotonicTime(bench.seconds + 0.5), RefusalScope.PODS, "zone/p/z1", detail)


def test_one_unhealthy_node_of_a_degraded_zone_is_one():
    bench = Bench(limited(zone_health=ZoneHealth((), threshold=0.3))).fill(nodes=3, bad=1)
    assert bench.zones.describe("p", "z1") == "zone z1 is Degraded: 1 of 3 nodes is unhealthy"


def test_a_zone_that_recovers_and_is_degraded_again_has_spent_its_tokens():
    bench = Bench().fill(nodes=3, bad=2)
    assert bench.count_admitted() == 2
    bench.fill(nodes=3, bad=0).fill(nodes=3, bad=2)
    assert bench.count_admitted() == 0


def test_a_degraded_zone_has_no_tokens_when_the_replica_begins_to_lead():
    bench = Bench().fill(nodes=3, bad=2)
    bench.rates.restart(bench.now.monotonic)
    assert bench.count_admitted() == 0
    assert bench.refuse() is None
    bench.seconds += 60
    assert bench.count_admitted() == 2
    bench.seconds += 60
    bench.rates.restart(bench.now.monotonic)
    assert bench.count_admitted() == 0


def test_another_rate_of_a_degraded_zone_applies_at_once_and_adds_no_tokens():
    bench = Bench().fill(nodes=3, bad=2)
    assert bench.count_admitted() == 2
    bench.policies = (limited(zone_health=ZoneHealth((), evictions_per_second=4.0)),)
    bench.configure(*bench.policies)
    assert bench.count_admitted() == 0
    bench.seconds += 0.5
    assert bench.count_admitted() == 2


# -- what is freed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "freed"),
    [(2, 1, ["zone/p/z1"]), (1, 2, ["zone/p/z1"]), (0, 1, []), (3, 2, ["zone/p/z1", "policy/p"])],
)
def test_pods_of_a_zone_are_retried_when_its_state_changes(before, after, freed):
    bench = Bench().fill(nodes=3, bad=before)
    bench.count(f"z1-{min(before, after)}", bad=after > before)
    assert bench.freed.take() == freed


def test_a_policy_is_retried_when_a_healthy_node_comes():
    bench = Bench().fill(nodes=3, bad=3)
    bench.count("new", "z2")
    assert bench.freed.take() == [policy_key("p")]


def test_a_policy_is_retried_when_too_few_nodes_are_left_to_judge():
    bench = Bench().fill(nodes=3, bad=3)
    bench.freed.take()
    bench.zones.forget_node("z1-0")
    assert policy_key("p") in bench.freed.take()


# -- settings ----------------------------------------------------------------------------------------------------------


def test_without_zone_health_there_are_no_zones():
    bench = Bench(limited()).fill(nodes=3, bad=3)
    assert bench.zones.table("p") == []
    assert not bench.zones.concerns(bench.policies[0])
    assert bench.refuse() is None
    assert bench.count_admitted() == 100


@pytest.mark.parametrize("policies", [[], [limited()]], ids=["deleted", "switched off"])
@pytest.mark.parametrize(("nodes", "freed"), [(3, ["zone/p/z1", "policy/p"]), (5, ["zone/p/z1"])])
def test_zone_health_that_is_removed_ends_at_once(policies, nodes, freed):
    bench = Bench().fill(nodes=nodes, bad=3)
    bench.zones.configure(policies, bench.now)
    assert bench.freed.take() == freed
    assert bench.zones.table("p") == []
    assert not bench.zones.all_unhealthy("p")
    assert kept(bench.zones, "z1", "p") == []


@pytest.mark.parametrize(("threshold", "state"), [(0.2, DEGRADED), (0.55, NORMAL)])
def test_another_threshold_applies_at_once(threshold, state):
    bench = Bench(limited(zone_health=ZoneHealth((), threshold=0.4))).fill("z1", nodes=4, bad=1)
    bench.fill("z2", nodes=4, bad=2)
    assert bench.states() == {"z1": NORMAL, "z2": DEGRADED}
    bench.zones.configure([limited(zone_health=ZoneHealth((), threshold=threshold))], bench.now)
    assert bench.states() == {"z1": state, "z2": state}
    assert bench.freed.take() == [key_of("p", "z1" if state is DEGRADED else "z2")]


# -- random histories --------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["z1", "z2", ""]), st.booleans()), max_size=60))
def test_the_table_is_that_of_the_nodes_as_they_are(changes):
    """However nodes came there: each is added, moved, unhealthy or, in no zone here, gone."""
    bench, nodes = Bench(), {}
    for number, zone, bad in changes:
        if zone:
            nodes[f"n{number}"] = zone, bad
            bench.count(f"n{number}", zone, bad=bad)
        else:
            nodes.pop(f"n{number}", None)
            bench.zones.forget_node(f"n{number}")
    fresh = Bench()
    for node, (zone, bad) in nodes.items():
        fresh.count(node, zone, bad=bad)
    assert bench.zones.table("p") == fresh.zones.table("p")
    assert bench.zones.all_unhealthy("p") == (len(nodes) >= 3 and all(bad for _, bad in nodes.values()))
