"""The scenario fits together: expectations name pods that are there, and leave time to be judged."""

import pytest

from taintwarden_demo.replicas import may_stay
from taintwarden_demo.scenario import Scenario, make_scenario

PACES = [0.3, 0.5, 1.0, 3.0]


def taint(value: str) -> dict[str, str]:
    return {"key": "sla", "value": value, "effect": "NoExecute"}


def test_every_pod_starts_where_it_may_stay(scenario: Scenario) -> None:
    values = {node.name: node.sla for node in scenario.nodes}
    misplaced = [
        (one.name, node)
        for one in scenario.workloads
        if not one.daemon_set
        for node in one.nodes
        if not may_stay(one, taint(values[node]))
    ]
    assert misplaced == []


@pytest.mark.parametrize("pace", PACES)
def test_all_pods_of_a_workload_leave_a_node(pace: float) -> None:
    scenario = make_scenario(pace)
    nodes = {one.name: one.nodes for one in scenario.workloads}
    expected = [(change.node, group) for change in scenario.changes for group in change.expected]
    assert expected
    for node, group in expected:
        assert nodes[group.workload].count(node) == group.pods


@pytest.mark.parametrize("pace", PACES)
def test_the_recovery_comes_well_before_the_deadline(pace: float) -> None:
    scenario = make_scenario(pace)
    fell, recovered = (change.at for change in scenario.changes if change.node == "b1")
    assert recovered + 0.75 <= fell + scenario.grace_seconds


@pytest.mark.parametrize("pace", PACES)
def test_the_mistake_lasts_longer_than_any_grace(pace: float) -> None:
    scenario = make_scenario(pace)
    mistyped, mended = (change.at for change in scenario.changes if change.node == "c1")
    assert mended - mistyped > scenario.grace_seconds + 1


def test_it_ends_after_the_last_change_and_gives_up_later(scenario: Scenario) -> None:
    assert scenario.changes[-1].at < scenario.ends_at < scenario.gives_up_at < 50


@pytest.mark.parametrize(
    ("name", "stays_at", "leaves_at"), [("payments", "951", "950"), ("catalog", "901", "900"), ("search", "931", "930")]
)
def test_extended_tolerations_narrow(scenario: Scenario, name: str, stays_at: str, leaves_at: str) -> None:
    workload = next(one for one in scenario.workloads if one.name == name)
    assert may_stay(workload, taint(stays_at))
    assert not may_stay(workload, taint(leaves_at))
