"""Which state a zone is in, and how fast pods leave it."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import AT_ONCE
from engine.rig import ZONE, limited
from taintwarden.engine.limits import Freed
from taintwarden.engine.limits.protocol import policy_key
from taintwarden.engine.limits.refusal import ZONE_DEGRADED, ZONE_FULL, ZONE_HALTED
from taintwarden.engine.limits.zones import EXCLUDE_LABEL, REGION_LABEL, Zones, ZoneState, classify, zone_of
from taintwarden.engine.model import ZoneHealth

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scenarios.json").read_text())
UPSTREAM = {"Normal": "Normal", "PartialDisruption": "Degraded", "FullDisruption": "Full"}
ANY_SIZE = ZoneHealth(min_nodes=0)


class Bench:
    """Zones under one policy ``p``, and which of them were said to have changed."""

    def __init__(self, health: ZoneHealth = ANY_SIZE) -> None:
        self.freed = Freed()
        self.zones = Zones(self.freed)
        self.zones.configure([limited(zone_health=health)], AT_ONCE)

    def count(self, node: str, zone: str = "z1", *, bad: bool = False, **labels: str) -> None:
        self.zones.count(node, {ZONE: zone} | labels, {"p": bad})

    def fill(self, zone: str, good: int, bad: int) -> None:
        for number in range(good + bad):
            self.count(f"{zone}-{number}", zone, bad=number >= good)
        self.freed.take()

    def changed(self) -> list[str]:
        """The zones whose pods are asked again."""
        return [one for one in self.freed.take() if one.startswith("zone/") and one.count("/") == 2]

    def table(self) -> dict[str, tuple[str, int, int]]:
        return {name: (str(state), nodes, bad) for name, state, nodes, bad in self.zones.table("p")}


# -- as Kubernetes classifies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vector", [one for one in VECTORS["scenarios"] if one.get("kind") == "zone_state"], ids=lambda vector: vector["id"]
)
def test_states_are_those_of_the_node_lifecycle_controller(vector):
    bench = Bench(ZoneHealth(threshold=vector["params"]["unhealthy_zone_threshold"], min_nodes=0))
    for zone, nodes in vector["zones"].items():
        bench.fill(zone, nodes["ready"], nodes["not_ready"])
        for number in range(nodes.get("excluded_ready", 0)):
            bench.zones.count(f"excluded-{number}", {ZONE: zone, EXCLUDE_LABEL: ""}, {"p": False})
    states = {zone: state for zone, (state, _, _) in bench.table().items()}
    assert states == {zone: UPSTREAM[state] for zone, state in vector["expect_state"].items()}
    assert bench.zones.all_full("p") == vector["expect_all_evictions_stopped"]


@pytest.mark.parametrize(
    ("nodes", "bad", "state"),
    [
        (3, 0, "Normal"),
        (3, 2, "Normal"),
        (3, 3, "Full"),
        (1, 1, "Full"),
        (5, 3, "Degraded"),
        (20, 10, "Normal"),
        (20, 11, "Degraded"),
        (20, 19, "Degraded"),
        (20, 20, "Full"),
        (0, 0, "Normal"),
    ],
)
def test_a_zone_degrades_with_more_than_two_bad_nodes_and_the_share(nodes, bad, state):
    assert classify(nodes, bad, ANY_SIZE) == state


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_zone_of_any_size_is_full_if_all_its_nodes_are_drained(nodes):
    assert classify(nodes, nodes, ZoneHealth(min_nodes=3)) == "Full"


@pytest.mark.parametrize(("nodes", "state"), [(9, "Normal"), (10, "Degraded")])
def test_a_zone_that_is_too_small_does_not_degrade(nodes, state):
    assert classify(nodes, nodes - 1, ZoneHealth(min_nodes=10)) == state


@pytest.mark.parametrize(("nodes", "paced"), [(2, None), (3, (ZONE_FULL, 1.0))])
def test_a_small_zone_is_not_slowed_down(nodes, paced):
    bench = Bench(ZoneHealth(min_nodes=3))
    bench.fill("z1", 0, nodes)
    assert bench.zones.pace("p", "z1") == paced


def test_a_small_zone_beside_another_is_reported_as_normal():
    bench = Bench(ZoneHealth(min_nodes=3))
    bench.fill("z1", 0, 2)
    bench.fill("z2", 3, 0)
    assert bench.table() == {"z1": ("Normal", 2, 2), "z2": ("Normal", 3, 0)}


@given(st.integers(1, 3_000), st.data())
def test_a_share_exactly_at_the_threshold_counts(nodes, data):
    bad = data.draw(st.integers(0, nodes))
    hundredths = data.draw(st.integers(1, 100))
    health = ZoneHealth(threshold=float(f"{hundredths / 100:.2f}"), min_nodes=0)
    if bad == nodes:
        expected = ZoneState.FULL
    elif bad > 2 and Fraction(bad, nodes) >= Fraction(hundredths, 100):
        expected = ZoneState.DEGRADED
    else:
        expected = ZoneState.NORMAL
    assert classify(nodes, bad, health) is expected


# -- which zone -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({}, "none"),
        ({ZONE: "a"}, "a"),
        ({REGION_LABEL: "eu"}, "eu"),
        ({ZONE: "a", REGION_LABEL: "eu"}, "eu/a"),
        ({ZONE: "", REGION_LABEL: ""}, "none"),
    ],
)
def test_a_zone_is_named_with_its_region(labels, name):
    assert zone_of(labels) == name


def test_nodes_without_a_zone_form_one():
    bench = Bench()
    for number in range(3):
        bench.zones.count(f"n{number}", {}, {"p": True})
    assert bench.table() == {"none": ("Full", 3, 3)}


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_excluded_nodes_are_not_counted_whatever_the_labels_value(value):
    bench = Bench()
    bench.zones.count("n1", {ZONE: "z1", EXCLUDE_LABEL: value}, {"p": True})
    assert bench.table() == {}


# -- counting as nodes change -----------------------------------------------------------------------------------------


def test_a_node_seen_again_is_counted_once():
    bench = Bench()
    bench.count("n1", bad=True)
    bench.count("n1", bad=True)
    assert bench.table() == {"z1": ("Full", 1, 1)}


def test_a_node_that_recovers_is_good_again():
    bench = Bench()
    bench.fill("z1", 0, 3)
    bench.count("z1-0")
    assert bench.table() == {"z1": ("Normal", 3, 2)}


def test_a_node_that_moves_is_counted_where_it_is():
    bench = Bench()
    bench.fill("z1", 2, 0)
    bench.count("z1-0", "z2")
    assert bench.table() == {"z1": ("Normal", 1, 0), "z2": ("Normal", 1, 0)}


def test_a_zone_is_forgotten_with_its_last_node():
    bench = Bench()
    bench.fill("z1", 0, 1)
    bench.zones.forget("z1-0")
    assert bench.table() == {}
    assert bench.changed() == ["zone/p/z1"]
    assert kept(bench.zones, "z1") == []


def test_forgetting_a_node_that_was_never_counted_changes_nothing():
    bench = Bench()
    bench.fill("z1", 1, 0)
    bench.zones.forget("stranger")
    assert bench.table() == {"z1": ("Normal", 1, 0)}


def test_a_node_that_is_excluded_later_is_counted_no_more():
    bench = Bench()
    bench.fill("z1", 1, 1)
    bench.zones.count("z1-1", {ZONE: "z1", EXCLUDE_LABEL: ""}, {"p": True})
    assert bench.table() == {"z1": ("Normal", 1, 0)}


def test_a_node_that_a_policy_selects_no_more_is_counted_no_more():
    bench = Bench()
    bench.fill("z1", 1, 1)
    bench.zones.count("z1-0", {ZONE: "z1"}, {})
    assert bench.table() == {"z1": ("Full", 1, 1)}


def test_policies_count_apart():
    bench = Bench()
    bench.zones.configure(
        [limited("p", zone_health=ANY_SIZE), limited("q", zone_health=ANY_SIZE), limited("r")], AT_ONCE
    )
    bench.zones.count("n1", {ZONE: "z1"}, {"p": True, "q": False, "r": True})
    assert bench.zones.table("q") == [("z1", ZoneState.NORMAL, 1, 0)]
    assert bench.zones.table("p") == [("z1", ZoneState.FULL, 1, 1)]
    assert bench.zones.table("r") == []


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["z1", "z2", None]), st.booleans()), max_size=40))
def test_what_was_counted_step_by_step_is_what_counting_at_once_gives(steps):
    bench, last = Bench(), {}
    for number, zone, bad in steps:
        if zone is None:
            bench.zones.forget(f"n{number}")
            last.pop(number, None)
        else:
            bench.count(f"n{number}", zone, bad=bad)
            last[number] = (zone, bad)
    fresh = Bench()
    for number, (zone, bad) in last.items():
        fresh.count(f"n{number}", zone, bad=bad)
    assert bench.table() == fresh.table()


# -- settings change ---------------------------------------------------------------------------------------------------


def test_other_settings_hold_at_once():
    bench = Bench()
    bench.fill("z1", 6, 4)
    bench.zones.configure([limited(zone_health=ZoneHealth(threshold=0.4, min_nodes=0))], AT_ONCE)
    assert bench.table() == {"z1": ("Degraded", 10, 4)}
    assert bench.changed() == ["zone/p/z1"]


def test_zone_health_switched_off_limits_nothing():
    bench = Bench()
    bench.fill("z1", 0, 3)
    bench.zones.configure([limited()], AT_ONCE)
    assert bench.zones.pace("p", "z1") is None
    assert not bench.zones.all_full("p")


def test_zone_health_switched_off_and_on_again_counts_everybody_once():
    bench = Bench()
    bench.fill("z1", 2, 1)
    bench.zones.configure([limited()], AT_ONCE)
    bench.zones.configure([limited(zone_health=ANY_SIZE)], AT_ONCE)
    bench.count("z1-0")
    bench.count("z1-1")
    bench.count("z1-2")
    assert bench.table() == {"z1": ("Normal", 3, 0)}


def test_nothing_is_remembered_of_nodes_after_zone_health_was_switched_off():
    bench = Bench()
    bench.fill("z1", 2, 1)
    bench.zones.configure([limited()], AT_ONCE)
    bench.changed()
    assert kept(bench.zones, "z1") == []


# -- how fast ----------------------------------------------------------------------------------------------------------


def test_a_normal_zone_has_no_pace():
    bench = Bench()
    bench.fill("z1", 3, 1)
    assert bench.zones.pace("p", "z1") is None


def test_a_zone_that_is_not_counted_has_no_pace():
    assert Bench().zones.pace("p", "nowhere") is None


def test_each_state_has_its_pace():
    bench = Bench(ZoneHealth(min_nodes=0, degraded_evictions_per_second=0.5, full_evictions_per_second=0.25))
    bench.fill("z1", 1, 9)
    bench.fill("z2", 0, 9)
    assert bench.zones.pace("p", "z1") == (ZONE_DEGRADED, 0.5)
    assert bench.zones.pace("p", "z2") == (ZONE_FULL, 0.25)


@pytest.mark.parametrize(("nodes", "pace"), [(5, (ZONE_HALTED, 0.0)), (6, (ZONE_DEGRADED, 1.0))])
def test_small_degraded_zones_halt_if_wanted(nodes, pace):
    bench = Bench(ZoneHealth(min_nodes=0, halt_small_zones=True, small_zone=5))
    bench.fill("z1", 1, nodes - 1)
    assert bench.zones.pace("p", "z1") == pace


def test_a_small_full_zone_does_not_halt():
    bench = Bench(ZoneHealth(min_nodes=0, halt_small_zones=True, small_zone=5))
    bench.fill("z1", 0, 5)
    assert bench.zones.pace("p", "z1") == (ZONE_FULL, 1.0)


def test_a_zone_that_is_not_small_any_more_is_told():
    bench = Bench(ZoneHealth(threshold=0.5, min_nodes=0, halt_small_zones=True, small_zone=5))
    bench.fill("z1", 2, 3)
    bench.count("another")
    assert bench.zones.pace("p", "z1") == (ZONE_DEGRADED, 1.0)
    assert bench.changed() == ["zone/p/z1"]


# -- all zones ---------------------------------------------------------------------------------------------------------


def test_no_zones_are_not_all_full():
    assert not Bench().zones.all_full("p")


def test_one_good_node_anywhere_ends_it():
    bench = Bench()
    bench.fill("z1", 0, 5)
    bench.fill("z2", 0, 5)
    assert bench.zones.all_full("p")
    bench.count("z2-0", "z2")
    assert not bench.zones.all_full("p")
    assert bench.changed() == ["zone/p/z2"]


def test_small_zones_can_all_be_full():
    bench = Bench(ZoneHealth(min_nodes=3))
    for zone in ("z1", "z2", "z3"):
        bench.fill(zone, 0, 2)
    assert bench.zones.all_full("p")


@pytest.mark.parametrize(("nodes", "full"), [(2, False), (3, True)])
def test_few_nodes_in_all_say_nothing(nodes, full):
    bench = Bench(ZoneHealth(min_nodes=3))
    bench.fill("z1", 0, nodes)
    assert bench.zones.all_full("p") == full


def test_a_new_good_zone_ends_it_and_is_told():
    bench = Bench()
    bench.fill("z1", 0, 5)
    bench.count("n1", "z2")
    assert not bench.zones.all_full("p")
    assert bench.changed() == ["zone/p/z2"]


def test_who_is_refused_for_the_state_of_a_zone_is_asked_again_when_it_changes():
    bench = Bench()
    bench.fill("z1", 1, 2)
    bench.count("z1-0", bad=True)
    assert bench.freed.take() == ["zone/p/z1", "zone/p/z1/zone-degraded", "zone/p/z1/zone-full", policy_key("p")]


def test_a_zone_in_the_same_state_is_not_told_again():
    bench = Bench()
    bench.fill("z1", 2, 8)
    bench.count("z1-0", bad=True)
    assert bench.freed.take() == []
