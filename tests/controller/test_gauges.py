"""Gauges of one round of reports count what holds pods now, and drop what held them before."""

import pytest
from msgspec.structs import replace

from controller import NOW, policy
from taintwarden.controller.status.gauges import Gauges
from taintwarden.engine import events
from taintwarden.engine.commands import GuardReport
from taintwarden.engine.limits.zones import ZoneState
from taintwarden.engine.machine import DevicesReport, Machine, PlacesReport, PolicyReport
from taintwarden.engine.model import Instant, MonotonicTime, WallTime
from taintwarden.engine.records import GuardRecord, Pace, Place
from taintwarden.engine.reported_status import BlockedBudget, LimitStatus, ReportedStatus, ZoneStatus
from taintwarden.telemetry.metrics import Metrics


def guard(record: GuardRecord) -> GuardReport:
    return GuardReport(record, halts=False, due=0, evicted=0, allowance=50)


FULL = PolicyReport(
    policy(),
    ReportedStatus(
        pending=9,
        evicting_nodes=2,
        leaving=6,
        limits=(LimitStatus("policy-rate", 5, ""), LimitStatus("budget", 3, "")),
        blocked_budgets=(BlockedBudget("shop", "web", 3),),
        zones=(
            ZoneStatus("eu/a", ZoneState.FULL, 3, 3),
            ZoneStatus("eu/b", ZoneState.DEGRADED, 9, 6),
            ZoneStatus("eu/c", ZoneState.NORMAL, 9, 0),
        ),
    ),
    bouncing=4,
    stuck_pods=2,
    invalid_taints=3,
    blocked_by={"refused": 1},
    guard=guard(GuardRecord(NOW, "taint sla", (("shop", 120),))),
)


class Measured:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.machine = Machine()
        self.gauges = Gauges(self.metrics, self.machine.view)
        self.lead(leading=True)

    def lead(self, *, leading: bool) -> None:
        self.machine.step(events.LeadershipChanged(leading), Instant(WallTime(NOW), MonotonicTime(0.0)))
        self.gauges.measure([FULL])

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"taintwarden_{name}", {"policy": "sla", **labels})


@pytest.fixture
def measured() -> Measured:
    return Measured()


def test_a_replica_that_led_before_says_no_more_what_its_guard_and_limits_held(measured):
    measured.lead(leading=False)
    assert measured.value("guard_tripped") is None
    assert measured.value("limited_evictions", limit="policy-rate") is None
    assert (measured.value("pending_evictions"), measured.value("policy_mode", mode="Enforce")) == (9, 1)


def test_terminating_and_stuck_pods_are_counted(measured):
    assert (measured.value("leaving_pods"), measured.value("stuck_pods")) == (6, 2)


def test_each_limit_and_budget_counts_the_pods_that_it_holds(measured):
    assert measured.value("limited_evictions", limit="policy-rate") == 5
    assert measured.value("limited_evictions", limit="budget") == 3
    assert measured.value("budget_blocked_evictions", budget="shop/web") == 3


@pytest.mark.parametrize(("zone", "state"), [("eu/a", 2), ("eu/b", 1), ("eu/c", 0)])
def test_a_worse_state_of_a_zone_is_a_higher_number(measured, zone, state):
    assert measured.value("zone_state", zone=zone) == state


@pytest.mark.parametrize(("mode", "value"), [("Enforce", 1), ("DryRun", 0), ("Paused", 0)])
def test_the_mode_of_a_policy_is_1(measured, mode, value):
    assert measured.value("policy_mode", mode=mode) == value


def test_policy_accepted_is_1_if_its_newest_version_is_in_force(measured):
    measured.gauges.measure([FULL], [("sla", False), ("other", True)])
    assert measured.value("policy_accepted") == 1
    assert measured.value("policy_accepted", policy="other") == 0


@pytest.mark.parametrize(
    ("devices", "value"),
    [
        (None, None),
        (DevicesReport(7), 1),
        (DevicesReport(0, problem="not served"), 0),
        (DevicesReport(7, blind=("resourceslices",)), 0),
    ],
)
def test_devices_known_is_1_if_no_kind_of_them_is_missing(measured, devices, value):
    measured.gauges.measure([PolicyReport(policy(), ReportedStatus(), devices=devices)])
    assert measured.value("devices_known") == value


def test_invalid_taints_and_all_nodes_unhealthy_are_gauges(measured):
    assert (measured.value("invalid_taints"), measured.value("all_nodes_unhealthy")) == (3, 0)
    measured.gauges.measure([replace(FULL, all_nodes_unhealthy=True)])
    assert measured.value("all_nodes_unhealthy") == 1


def test_counters_of_a_policy_exist_before_anything_happens(measured):
    for outcome in ("evicted", "past-budget", "blocked", "failed", "dry-run"):
        assert measured.value("evictions_total", outcome=outcome) == 0
    assert measured.value("evictions_cancelled_total") == 0
    assert measured.value("missed_deadlines_total", reason="not-evicted") == 0


@pytest.mark.parametrize(
    ("pace", "pods", "ends_at"), [(None, None, None), (Pace(80, NOW + 60), 80, NOW + 60), (Pace(3, None), 3, None)]
)
def test_a_guard_that_paces_has_its_pods_and_its_end(measured, pace, pods, ends_at):
    measured.gauges.measure([replace(FULL, guard=replace(FULL.guard, pace=pace))])
    assert measured.value("guard_paced_pods") == pods
    assert measured.value("guard_pace_end_timestamp_seconds") == ends_at


def test_bouncing_workloads_are_counted(measured):
    assert measured.value("bouncing_workloads") == 4


def test_a_tripped_guard_is_1_and_an_armed_one_0(measured):
    assert measured.value("guard_tripped") == 1
    measured.gauges.measure([PolicyReport(policy(), ReportedStatus(), guard=guard(GuardRecord()))])
    assert measured.value("guard_tripped") == 0


def test_nodes_with_a_place_and_nodes_that_wait_are_counted(measured):
    assert measured.value("nodes_with_place") is None
    places = PlacesReport((Place("a1", NOW), Place("a2", NOW)), 14)
    measured.gauges.measure([PolicyReport(policy(), ReportedStatus(), places=places)])
    assert (measured.value("nodes_with_place"), measured.value("nodes_waiting_for_place")) == (2, 14)


def test_gauges_of_a_report_that_ended_are_removed(measured):
    measured.gauges.measure([PolicyReport(policy(), ReportedStatus())])
    assert measured.value("limited_evictions", limit="policy-rate") is None
    assert measured.value("budget_blocked_evictions", budget="shop/web") is None
    assert measured.value("blocked_evictions", reason="refused") is None
    assert measured.value("zone_state", zone="eu/a") is None
    assert measured.value("guard_tripped") is None
    assert measured.value("pending_evictions") == 0
    assert measured.value("bouncing_workloads") == 0
